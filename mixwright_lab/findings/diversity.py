"""Finding on diversity: reward on prompts that can be solved takes answers away from prompts that never earned any.

Source: Song, Kempe, Munos, Outcome-based Exploration for LLM Reasoning, 2509.06941.
Unit: expected number of different answers among 8 samples, on prompts that never earn a reward.
Cost: about 60 CPU seconds per seed.
Blind spot: different wrong answers are of use only where the right one is among them; a bandit and a tiny model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar

import numpy as np

from mixwright.contracts import Finding
from mixwright.records import Example, Expectation, Term, difference
from mixwright_lab.training import bandit
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import UniformRule, drive
from mixwright_lab.worlds.chain import Chain

NEVER = "none"
"""An answer that nothing can be."""


@dataclass(frozen=True)
class Settings:
    """Of both runs."""

    bandit: bandit.Settings
    base: Recipe
    model: Grpo
    rollouts: int
    """Of the language model."""
    problems: int
    """Of its pool, a third of which never earns; as many are read."""
    samples: int = 32
    """Per problem that is read."""


BASE = Recipe(steps=700, styles=(("full", 0.7), ("direct", 0.3)))
ARMS: Mapping[str, Mapping[str, Any]] = {
    "bandit, start": {},
    "bandit, GRPO": {},
    "bandit, permuted": {"permute": True},
    "bandit, UCB": {"count": 0.0},
    "bandit, UCB-Con": {"count": 0.5},
    "bandit, batch": {"crowded": True},
    "bandit, batch in the reward": {"in_reward": True},
    "bandit, KL on failed groups": {"beta_failed": 1.0},
    "bandit, KL": {"beta": 0.02},
    "bandit, own features, GRPO": {"harmonics": 0},
    "bandit, own features, permuted": {"harmonics": 0, "permute": True},
    "model, start": {},
    "model, GRPO": {},
    "model, permuted": {"permute": True},
}
"""What each arm differs in."""


class Diversity(Finding):
    """A bandit whose prompts share features, and a tiny model of chain arithmetic; a third of the prompts never earns."""

    CLAIM = "Reward on solved prompts lowers the number of different answers on prompts that never earned a reward."
    SOURCE = "Song, Kempe, Munos, Outcome-based Exploration for LLM Reasoning, 2509.06941"
    WHAT_IT_SHOWS = (
        "Llama-3.1-8B and Qwen-2.5-7B on MATH: different answers among 8 on unsolved questions 4.8 under GRPO, 5.4 with a "
        "penalty on answers that a group has twice, 4.9 with counts over the run. Temperatures are not swept."
    )
    POPULAR_READING = (
        "The loss on unsolved prompts is put down to the reward; steps along permuted rewards are not compared."
    )
    REMARKS = (
        "Prompts that never earn are ordinary ones whose key is broken, so that GRPO also gets better at them and the "
        "loss is in part success: not the source's unsolved questions. Permuted rewards raise diversity of the model over "
        "its start (as they ruin it); start - GRPO is +2.0. Without shared features permuted - GRPO is +0.1 [-0.2, 0.5]: "
        "then it is drift."
    )
    RUN_TWICE = ("model, GRPO", "bandit, GRPO")
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(bandit.Settings(20, 40, base_steps=20), replace(BASE, steps=15), Grpo(4, 4), 32, 12, 8),
        "laptop": Settings(bandit.Settings(), BASE, Grpo(16, 8, rate=3e-4, longest=7), 12_800, 600),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    EXPECT = (
        Expectation(
            "bandit: start - GRPO, different answers where nothing is earned",
            difference("bandit, start", "bandit, GRPO", "never"),
            1.0,
            "Prompts that never earn keep their answers.",
            "answers of 8",
        ),
        Expectation(
            "bandit: permuted rewards - GRPO",
            difference("bandit, permuted", "bandit, GRPO", "never"),
            0.5,
            "Steps along permuted rewards take as many answers: the loss is drift, not reward.",
            "answers of 8",
        ),
        Expectation(
            "bandit: start at temperature 0.7 - GRPO at 1.3",
            (Term("bandit, start", "never, T .7"), Term("bandit, GRPO", "never, T 1.3", -1.0)),
            0.5,
            "A higher temperature gives the answers back.",
            "answers of 8",
        ),
        Expectation(
            "bandit: penalty on answers of one group - GRPO",
            difference("bandit, batch", "bandit, GRPO", "never"),
            0.1,
            "The penalty keeps no more answers.",
            "answers of 8",
        ),
        Expectation(
            "model: start - GRPO, different answers where nothing is earned",
            difference("model, start", "model, GRPO", "model, never"),
            0.5,
            "A language model keeps its answers.",
            "answers of 8",
        ),
        Expectation(
            "model: permuted rewards - GRPO",
            difference("model, permuted", "model, GRPO", "model, never"),
            0.25,
            "Steps along permuted rewards take as many answers.",
            "answers of 8",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Of the bandit and of the model."""
        return tuple(ARMS)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The model that all arms of the seed start from."""
        base_model(seed, settings.base)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Different answers of 8 and success on trained prompts that never earn, on others, and on held-out ones."""
        own = dict(ARMS[arm])
        train_seed = seed + 10_000 * again
        if arm.startswith("model"):
            return _model(arm, own, seed, train_seed, settings)
        setting = replace(settings.bandit, harmonics=own.pop("harmonics", settings.bandit.harmonics))
        prompts, policy = bandit.prompts_of(seed), bandit.base_policy(seed, setting)
        if arm != "bandit, start":
            policy = bandit.train(policy, prompts, setting, train_seed, **_bonuses(own))
        solved, found = np.setdiff1d(prompts.trained, prompts.never), {}
        for name, temperature in (("never, T .7", 0.7), ("never", 1.0), ("never, T 1.3", 1.3)):
            found[name] = bandit.distinct(bandit.probabilities(policy, prompts.never, temperature))
        for name, some in (("solved", solved), ("held out", prompts.held_out)):
            chances = bandit.probabilities(policy, some)
            found[name] = bandit.distinct(chances)
            found[f"success, {name}"] = float(chances[np.arange(len(some)), prompts.right_outcome[some]].mean())
        return found


def _bonuses(own: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `bandit.train`; every bonus has the weight 0.2."""
    found = {name: own[name] for name in ("beta", "beta_failed") if name in own}
    if "permute" in own:
        found["permute_rewards"] = own["permute"]
    if "count" in own:
        counts = bandit.CountBonus(own["count"])
        found["bonus"] = lambda *seen: 0.2 * counts(*seen)
    if "crowded" in own:
        found["bonus"] = lambda *seen: 0.2 * bandit.crowding(*seen)
    if "in_reward" in own:
        found["bonus_in_reward"] = lambda *seen: 0.2 * bandit.crowding(*seen)
    return found


def _model(arm: str, own: Mapping[str, Any], seed: int, train_seed: int, settings: Settings) -> dict[str, float]:
    """The language model: what it reads like after its rollouts."""
    world, rng = Chain(), np.random.default_rng((seed, 0xD1))
    made = [world.make(int(rng.integers(2**31)), float(3 + n % 3), "train") for n in range(settings.problems)]
    pool = [replace(one, answer=NEVER) if n % 3 == n // 3 % 3 else one for n, one in enumerate(made)]
    model = base_model(seed, settings.base)
    arena = Arena(pool, model, replace(settings.model, permute=own.get("permute", False)), train_seed)
    if arm != "model, start":
        drive(arena, UniformRule(len(pool), train_seed), settings.rollouts, settings.rollouts, lambda _: {})
    never = [one for one in pool if one.answer == NEVER]
    solved = [one for one in pool if one.answer != NEVER]
    return {
        "model, never": _distinct(arena, never, settings.samples),
        "model, solved": _distinct(arena, solved, settings.samples),
        "model, success": float(arena.look(solved, 4).rewards.mean()),
    }


def _distinct(arena: Arena, examples: list[Example], samples: int, draws: int = 8) -> float:
    """Different answers among `draws` samples, without bias from `samples` of them, mean over examples."""
    found = []
    for answers in arena.look(examples, samples).answers:
        counts = [answers.count(answer) for answer in set(answers)]
        found.append(sum(1 - comb(samples - count, draws) / comb(samples, draws) for count in counts))
    return float(np.mean(found))
