"""Mixes of answer styles, the arms that train from them, and one run of each, for `formats`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixwright.records import Example, Plan, Stage
from mixwright_lab.format_races import examples, foretell, pass_at_ks, recipe_of, summarise_styles
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena, Learnt, Rollouts, Settings
from mixwright_lab.training.rules import EngineRule, pool_of, unique_examples
from mixwright_lab.worlds.chain import MODULUS, STYLES

STEPS = 60
LOOKS = (0, 10, 20, 40, 60)
POOL, PROBED, SAMPLES, ITEMS, TRIES = 400, 64, 8, 64, 16
SHARES = (
    (0.55, 0.30, 0.15),
    (0.62, 0.28, 0.10),
    (0.80, 0.14, 0.06),
    (0.45, 0.40, 0.15),
    (0.70, 0.26, 0.04),
    (0.34, 0.33, 0.33),
)
"""Of the commonest, the middle and the rarest style."""
NOISE = ((0.0, 0.1, 0.2, 0.3), (0.0, 0.1, 0.2), (0.0, 0.0, 0.1))
"""Label noise per running value to draw from, for the same three: the commonest style is often the noisiest."""
GUARDED: Mapping[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "even": ((0.4, 0.4, 0.2), (0.05, 0.05, 0.0)),
    "minority is better": ((0.62, 0.28, 0.10), (0.25, 0.0, 0.0)),
    "majority is better": ((0.62, 0.28, 0.10), (0.0, 0.1, 0.0)),
}
"""Mix -> shares and noise of full, verbose and direct."""


@dataclass(frozen=True)
class Arm:
    """One way to train."""

    beta: float = 0.0
    """KL coefficient at the start."""
    alarm: bool = False
    """An alarm of the monitor tightens; else it is only listened to."""
    balanced: bool = False
    """Advantages within format: a completion is compared with those of its own style only."""
    permute: bool = False
    """Rewards shuffled within groups."""


ARMS: Mapping[str, Arm] = {
    "none": Arm(),
    "beta 0.04": Arm(0.04),
    "beta 0.1": Arm(0.1),
    "alarm, beta 0": Arm(alarm=True),
    "alarm, beta 0.04": Arm(0.04, alarm=True),
    "balanced": Arm(balanced=True),
    "permuted": Arm(permute=True),
}


@dataclass(frozen=True)
class Job:
    """One base model and what is done from it."""

    mix: str
    seed: int
    recipe: Recipe
    arms: tuple[str, ...]


class BalancedArena(Arena):
    """Compares each completion with those of its own format in its group only."""

    def learn(
        self,
        rollouts: Rollouts,
        admitted: Sequence[bool] | None = None,
        *,
        lr_factor: float = 1.0,
        beta: float | None = None,
    ) -> Learnt:
        """One update; no group is refused here."""
        self.steps += 1
        return self.update(
            rollouts, balanced(rollouts), lr_factor=lr_factor, beta=self.settings.beta if beta is None else beta
        )


def balanced(rollouts: Rollouts) -> np.ndarray:
    """Advantages that sum to 0 over each format of each group: what is left of rewards less the mean of their format.

    A trainer that normalises by group makes the same of rewards from which that mean was subtracted beforehand.
    """
    centred = rollouts.rewards.copy()
    styles = np.array(rollouts.formats)
    for rewards, own in zip(centred, styles, strict=True):
        for style in set(own):
            rewards[own == style] -= rewards[own == style].mean()
    return centred / (centred.std(1, ddof=1, keepdims=True) + 1e-4)


def mix(seed: int) -> Recipe:
    """A drawn mix: which style is common, which rare, and how noisy each is in the SFT data."""
    rng = np.random.default_rng((seed, 5))
    places, shares = rng.permutation(len(STYLES)), SHARES[rng.integers(len(SHARES))]
    noise = [rng.choice(choices) for choices in NOISE]
    return recipe_of(*([column[list(places).index(place)] for place in range(len(STYLES))] for column in (shares, noise)))


def rule_of(examples: Sequence[Example], arm: Arm, seed: int) -> EngineRule:
    """Our engine: the same uniform draws in every arm, and a monitor that tightens or is only listened to."""
    engine = {"min_informative_share": 0.0, "canaries": 0, "on_alarm": "tighten" if arm.alarm else "log"}
    stage = Stage("training", "grpo", STEPS, {"chain": 1.0}, monitors=("formats",), options={"engine": engine})
    return EngineRule(Plan("hand", (stage,)), pool_of(examples, lambda _: 1 / MODULUS), seed)


def run_job(job: Job) -> list[dict[str, Any]]:
    """Every arm of one base."""
    model, rows = base_model(job.seed, job.recipe), []
    held, probe = examples(ITEMS, "eval"), examples(PROBED, "eval", 10_000)
    train = unique_examples(examples(POOL, "train", job.seed * 10_000))
    for name in job.arms:
        arm = ARMS[name]
        kind = BalancedArena if arm.balanced else Arena
        arena = kind([*train, *probe], model, Settings(beta=arm.beta, permute=arm.permute), job.seed)
        probed = arena.roll(range(len(train), len(train) + PROBED), SAMPLES)
        foretold = foretell(probed, STEPS) if name == "none" else {}
        rule, seen, ends = rule_of(train, arm, job.seed), {}, {}
        for step in range(STEPS + 1):
            if step in LOOKS:
                rolled = arena.look(held, TRIES)
                seen[step] = summarise_styles(rolled)
                if step in (0, STEPS):
                    ends[step] = pass_at_ks(rolled)
            if step < STEPS:
                rule.step(arena)
        said = [decision.because for decision in rule.decisions if decision.what == "alarm.formats"]
        shown = {"looks": seen, "pass": ends, "alarms": said, "charged": arena.charged}
        rows.append({"mix": job.mix, "seed": job.seed, "arm": name, "foretold": foretold, **shown})
    return rows
