"""Finding on adapters: what singular-value scales gain, what they cost other tasks, and whether such experts mix.

Source: Sun et al., Transformer-squared: Self-adaptive LLMs, 2501.06252.
Unit: probability of the right response when sampling, mean over held-out problems and over three experts.
Cost: about 130 CPU seconds per seed.
Blind spot: chains of look-ups in a tiny GPT whose matrices have 48 singular values; routing by prompt is not tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mixwright.contracts import Finding
from mixwright.records import Curve, Expectation, Plot, Term, difference
from mixwright_lab.experts import MIXED_BY, SINGLE, held_out, loss_at, mixtures, success, trained
from mixwright_lab.training.adapted import adapted
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.worlds.families import FAMILIES, LENGTH

ADAPTERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "full": ("full", {}),
    "LoRA": ("lora", {"rank": 4}),
    "small LoRA": ("lora", {"rank": 1, "targets": ["down"]}),
    "SVF": ("svf", {}),
}
"""Small LoRA has 240 parameters in a block, SVF 192."""
SFT, REWARDS, BEFORE = "SFT", "policy gradient", "before training"
GAIN, LOST, AT, UNSEEN = "gain", "lost by others", "lost by others at equal gain", "unseen"


@dataclass(frozen=True)
class Settings:
    """Of base, experts and mixtures."""

    base: int = 260
    """Steps of SFT of the base, which then solves a good quarter of the problems."""
    steps: int = 160
    """Of each expert."""
    rates: tuple[tuple[str, float], ...] = (
        *(("full, SFT", 1e-4), ("LoRA, SFT", 3e-4), ("small LoRA, SFT", 3e-3), ("SVF, SFT", 3e-3)),
        *(("full, policy gradient", 3e-4), ("LoRA, policy gradient", 3e-3)),
        *(("small LoRA, policy gradient", 1e-2), ("SVF, policy gradient", 1e-2)),
    )
    """Tried on two other seeds: of SFT the lowest that reaches the gain, of rewards the one that gains most."""
    every: int = 5
    """Steps between readings."""
    gain: float = 0.05
    """On the own family, at which losses are compared."""
    tested: int = 128
    """Held-out problems of each family, and of the mixed task."""
    rounds: int = 10
    """Of the search of a mixture."""


class Adapters(Finding):
    """An expert per family of operations, by four adapters with SFT and with GRPO, and mixtures of the three experts."""

    CLAIM = (
        "Scales of singular values trained by policy gradient gain more than LoRA, cost other tasks less at the same gain, "
        "and experts made of them mix: on a task that none was trained on, a mixture found on ten examples beats the best "
        "single expert."
    )
    SOURCE = "Sun et al., Transformer-squared: Self-adaptive LLMs, 2501.06252"
    WHAT_IT_SHOWS = (
        "Llama3-8B: GSM8K 75.9 -> 79.2 (LoRA 77.2), MBPP-Pro 64.7 -> 66.7 (LoRA 67.7); unseen tasks by ten-shot mixing: "
        "MATH 24.5 -> 25.5, HumanEval 61.0 -> 63.0, ARC-C 80.6 -> 82.6; 0.16 to 0.58 million parameters, LoRA 7 to 35."
    )
    POPULAR_READING = (
        "It is said that singular-value experts compose where LoRA does not. The paper gives no seeds and no intervals, "
        "takes the best of several ways of mixing on the test, and has no LoRA of the same number of parameters."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "adapters/lora": (
            "-gain by policy gradient: SVF - LoRA",
            "-lost by other families at equal gain, SFT: small LoRA - SVF",
        ),
        "adapters/svf": (
            "gain by policy gradient: SVF - LoRA",
            "lost by other families at equal gain, SFT: small LoRA - SVF",
            "lost by other families at equal gain, SFT: full - SVF",
            "unseen task: SVF's mixture found on ten examples - the single expert chosen on them",
        ),
    }
    REMARKS = (
        "A LoRA of as many parameters costs others more than SVF, but training all weights costs them less at the same "
        "gain, so that few parameters are not what protects. By policy gradient LoRA of rank 4 gains three times as much as "
        "SVF, and LoRA of SVF's size 1.1 points less. The mixture beats the base by 1.5 points, the even mean of the same "
        "experts by 2.0, so the search was worse than none; the single expert chosen on ten examples is 2.2 below the base, "
        "which is what the mixture is compared with. The plain mean of three fully trained experts beats the base by 5."
    )
    RUN_TWICE = ("SVF, SFT",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(base=10, steps=4, every=2, tested=8, rounds=1),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    EXPECT = (
        Expectation(
            "lost by other families at equal gain, SFT: small LoRA - SVF",
            difference("small LoRA, SFT", "SVF, SFT", AT),
            0.01,
            "LoRA of as many parameters costs others no more.",
        ),
        Expectation(
            "lost by other families at equal gain, SFT: full - SVF",
            difference("full, SFT", "SVF, SFT", AT),
            0.01,
            "Training all weights costs others no more.",
        ),
        Expectation(
            "gain by policy gradient: SVF - LoRA",
            difference("SVF, policy gradient", "LoRA, policy gradient", GAIN),
            0.02,
            "LoRA gains as much from the same rollouts.",
        ),
        Expectation(
            "unseen task: SVF's mixture found on ten examples - the single expert chosen on them",
            (Term("SVF, SFT", f"{UNSEEN}, {MIXED_BY} 10"), Term("SVF, SFT", f"{UNSEEN}, {SINGLE} 10", -1.0)),
            0.02,
            "One expert does as well as a mixture.",
        ),
        Expectation(
            "unseen task: SVF's mixture found on ten examples - the base",
            (Term("SVF, SFT", f"{UNSEEN}, {MIXED_BY} 10"), Term(BEFORE, UNSEEN, -1.0)),
            0.02,
            "No expert does as well as a mixture.",
        ),
    )
    PLOTS = (
        Plot(
            "Own family and others after training",
            "SFT: full, LoRA, small, SVF; then by rewards",
            "change of right responses",
            (
                Curve("own: gain", tuple((float(n), arm, GAIN) for n, arm in enumerate(dict(Settings.rates), 1))),
                Curve("others: loss", tuple((float(n), arm, LOST) for n, arm in enumerate(dict(Settings.rates), 1))),
            ),
        ),
        Plot(
            "Unseen task, by what SVF experts are mixed by",
            "base; one, mixture by 10; by 64; even; sum",
            "right responses, sampled",
            (
                Curve(
                    "SVF, SFT",
                    (
                        (0.0, BEFORE, UNSEEN),
                        *(
                            (float(n), "SVF, SFT", f"{UNSEEN}, {way}")
                            for n, way in enumerate((f"{SINGLE} 10", f"{MIXED_BY} 10", f"{MIXED_BY} 64", "even", "sum"), 1)
                        ),
                    ),
                ),
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Four adapters with two objectives, and the base."""
        return (*dict(settings.rates), BEFORE)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train an expert per family, read what it changed, and mix the three."""
        base, held = _base(seed, settings), held_out(seed, settings.tested)
        before = [float(success(base, rows).mean()) for rows in held]
        if arm == BEFORE:
            return {UNSEEN: before[-1]} | {f"family {place}": value for place, value in enumerate(before[:-1], 1)}
        adapter, objective = arm.split(", ")
        name, options = ADAPTERS[adapter]
        number = 2 * seed + again
        options = dict(options) | ({"seed": number} if name == "lora" else {})
        experts, read = [], []
        for family in range(len(FAMILIES)):
            path = [(0.0, 0.0)]

            def look(step: int, model: GPT, family: int = family, path: list[tuple[float, float]] = path) -> None:
                if step % settings.every == 0:
                    after = [float(success(model, held[place]).mean()) - before[place] for place in range(len(FAMILIES))]
                    own = after.pop(family)
                    path.append((own, -sum(after) / len(after)))

            model, rate = adapted(base, name, options), dict(settings.rates)[arm]
            experts.append(trained(model, family, objective == SFT, settings.steps, rate, number, look))
            read.append(loss_at(path, settings.gain) | {GAIN: path[-1][0], LOST: path[-1][1]})
        found = {key: sum(each[key] for each in read) / len(read) for key in read[0]}
        return found | mixtures(base, experts, adapter == "SVF", held[-1], seed, settings.rounds)


def _base(seed: int, settings: Settings) -> GPT:
    return base_model(seed, Recipe(((float(LENGTH), 1.0),), (("full", 1.0),), steps=settings.base))
