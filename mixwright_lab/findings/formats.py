"""Finding on answer formats: reinforcement learning makes one of several the only one, by share and accuracy.

Source: Zhao et al., Echo chamber: RL post-training amplifies behaviors learned in pretraining, 2504.07912.
Unit: entropy of the answer styles over its largest value, and shares of styles; sampled at temperature 1.
Cost: about 100 CPU seconds per seed, and 45 for its bases.
Blind spot: one model size, so that what the source says of scale is not tried; three styles of one skill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import numpy as np

from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.format_races import examples, foretell, pass_at_ks, recipe_of, summarise_styles
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena, Rollouts
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import UniformRule, unique_examples
from mixwright_lab.training.sft import Schedule, fit_rows

MIXES: Mapping[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "commonest is best": ((0.62, 0.28, 0.10), (0.0, 0.15, 0.0)),
    "rarer is better": ((0.62, 0.28, 0.10), (0.25, 0.0, 0.0)),
    "direct is commonest": ((0.28, 0.10, 0.62), (0.0, 0.0, 0.0)),
}
"""Shares, and label noise per running value, of the styles full, verbose and direct."""
RULES = ("race", "share", "accuracy", "share x accuracy")
PLAIN, RANDOM, IMITATED, FROZEN = "GRPO", "random rewards", "expert iteration", "before training"
BETAS: Mapping[str, float] = {PLAIN: 0.0, "KL 0.1": 0.1, "KL 1": 1.0, RANDOM: 0.0}


@dataclass(frozen=True)
class Settings:
    """Of one scale."""

    base: int = 700
    """Steps of SFT before, per mix."""
    steps: int = 60
    """Of GRPO; one pass over the pool."""
    rounds: int = 4
    """Of expert iteration, with as many rollouts in all."""
    expert_steps: int = 40
    """Steps of SFT per round of it."""
    items: int = 64
    """Held-out problems."""
    samples: int = 16
    """Responses to each."""


class Formats(Finding):
    """GRPO from bases that answer in three styles, share and accuracy of which are crossed."""

    CLAIM = (
        "Reinforcement learning makes one of several answer formats the only one, the one that share and accuracy together "
        "foretell and not the commonest as such; a KL leash and expert iteration keep more of the others."
    )
    SOURCE = "Zhao et al., Echo Chamber: RL Post-training Amplifies Behaviors Learned in Pretraining, 2504.07912"
    WHAT_IT_SHOWS = (
        "Models of 150M and 1B parameters, trained from scratch: within the first pass over GSM8K nearly all answers have "
        "one format, as pass@1 rises and pass@64 falls. At 150M it usually is the most accurate one (62 % and 28 % at the "
        "start end with the rarer one), at 1B another. KL 0.01 keeps some of the rest, expert iteration shifts formats only "
        "mildly (tables read in a secondary source)."
    )
    POPULAR_READING = (
        "It is said that reinforcement learning amplifies what is most frequent. The source's own mixes show otherwise, and "
        "the winner at 1B was neither the most frequent nor the most accurate at the start."
    )
    REMARKS = (
        "The worked-out style wins 14 of 15 races, from a share of .3 too. Where another is right more often at the start "
        "(.6 to .4), it keeps its lead in 4 of 5 seeds; where it holds .94 of the answers and more, .45 and .74 of them "
        "are right, after .29 and .41. Five seeds cannot tell the forecast from the most common format."
    )
    RUN_TWICE = (PLAIN,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(60, 8, 2, 2, 12, 4), "laptop": Settings()}
    PRIMARY = "random rewards - GRPO, entropy of formats, mean of mixes"
    PUBLISHED = (
        "GRPO - random rewards, share of the better format where a worse one is commoner",
        "expert iteration - GRPO, entropy of formats, mean of mixes",
    )
    CONTROL = "KL 1 - no KL, entropy of formats, mean of mixes"
    EXPECT = (
        Expectation(
            "random rewards - GRPO, entropy of formats, mean of mixes",
            difference(RANDOM, PLAIN, "entropy"),
            0.20,
            "Random rewards narrow the formats as much: it is drift.",
        ),
        Expectation(
            "GRPO - random rewards, share of the better format where a worse one is commoner",
            difference(PLAIN, RANDOM, "rarer is better: share of verbose"),
            0.20,
            "The commonest format holds its place although another is right more often.",
        ),
        Expectation(
            "mixes whose winner is foretold: share and accuracy (the product's forecast) - share alone",
            (Term(PLAIN, "hit: race"), Term(PLAIN, "hit: share", -1.0)),
            0.20,
            "The commonest format at the start wins as often as the forecast says.",
        ),
        Expectation(
            "KL 0.1 - no KL, entropy of formats, mean of mixes",
            difference("KL 0.1", PLAIN, "entropy"),
            0.10,
            "A KL leash of 0.1 keeps no more formats in use.",
        ),
        Expectation(
            "KL 1 - no KL, entropy of formats, mean of mixes",
            difference("KL 1", PLAIN, "entropy"),
            0.20,
            "A KL leash of 1 keeps no more formats in use.",
        ),
        Expectation(
            "expert iteration - GRPO, entropy of formats, mean of mixes",
            difference(IMITATED, PLAIN, "entropy"),
            0.10,
            "Learning from own right answers by SFT narrows the formats as much as GRPO.",
        ),
    )
    PLOTS = (
        Plot(
            "Entropy of the answer formats while training, mean of the mixes",
            "share of the rollouts",
            "entropy over its largest value",
            tuple(
                Curve(arm, tuple((quarter / 4, arm, f"entropy at {quarter}/4") for quarter in range(5)))
                for arm in (PLAIN, "KL 0.1", IMITATED, RANDOM)
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Ways to train."""
        return (FROZEN, *BETAS, IMITATED)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The bases of the mixes."""
        for mix in MIXES:
            base_model(seed, _recipe(mix, settings))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Entropy, shares and pass@k of each mix, and their means."""
        found = {mix: _race(arm, mix, seed, settings, again=again) for mix in MIXES}
        means = {name: fmean(found[mix][name] for mix in MIXES) for name in found["rarer is better"]}
        return {f"{mix}: {name}": value for mix, own in found.items() for name, value in own.items()} | means


def _recipe(mix: str, settings: Settings) -> Recipe:
    return recipe_of(*MIXES[mix], steps=settings.base)


def _race(arm: str, mix: str, seed: int, settings: Settings, *, again: bool) -> dict[str, float]:
    """One way to train from the base of one mix."""
    grpo = Grpo(beta=BETAS.get(arm, 0.0), permute=arm == RANDOM)
    count, held = settings.steps * grpo.prompts, examples(settings.items, "eval")
    train = unique_examples(examples(count, "train", seed * 10_000))
    arena = Arena([*train, *held], base_model(seed, _recipe(mix, settings)), grpo, 2 * seed + again)
    foretold = foretell(arena.roll(range(len(train), len(train) + len(held)), 8), settings.steps)
    rule, places = (
        UniformRule(np.arange(len(train)), 2 * seed + again),
        [settings.steps * quarter // 4 for quarter in range(5)],
    )
    seen = [arena.look(held, settings.samples)]
    for quarter in range(4):
        if arm == IMITATED:
            _imitate(arena, rule, (places[quarter + 1] - places[quarter]) * grpo.prompts, grpo.group, settings)
        for _ in range(places[quarter + 1] - places[quarter] if arm in BETAS else 0):
            rule.step(arena)
        seen.append(arena.look(held, settings.samples) if arm != FROZEN else seen[0])
    return _format_row(seen, foretold)


def _imitate(arena: Arena, rule: UniformRule, prompts: int, group: int, settings: Settings) -> None:
    """A round of expert iteration: SFT from the start on right answers of the model as it is."""
    rolled = arena.roll(rule.take(prompts), group)
    right = [(str(e.prompt), text) for e, texts in zip(rolled.examples, rolled.texts, strict=True) for text in texts]
    right = [pair for pair, reward in zip(right, rolled.rewards.flatten(), strict=True) if reward]
    rng = np.random.default_rng((arena.charged, len(right)))
    arena.model.load_state_dict(arena.start.state_dict())
    if right:
        fit_rows(arena.model, right, Schedule(settings.expert_steps, arena.settings.rate, 5), rng)


def _format_row(seen: Sequence[Rollouts], foretold: Mapping[str, str]) -> dict[str, float]:
    """Readings of one run: at every quarter the entropy, at the end shares, pass@k, and which rule foretold the winner."""
    tables = [summarise_styles(rolled) for rolled in seen]
    first, last = tables[0], tables[-1]
    shares: Mapping[str, float] = last["shares"]
    won = max(shares, key=lambda style: shares[style])
    found = {f"entropy at {quarter}/4": one["entropy"] for quarter, one in enumerate(tables)}
    found |= {"entropy": last["entropy"], "largest share": shares[won], **pass_at_ks(seen[-1])}
    found |= {f"share of {style}": share for style, share in shares.items()}
    found |= {f"accuracy of {style} before": first["accuracies"][style] or 0.0 for style in shares}
    return found | {f"hit: {rule}": float(foretold.get(rule) == won) for rule in RULES} | {"hit: full": float(won == "full")}
