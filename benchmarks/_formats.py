"""Mixes of answer styles, the arms that train from them, and one run of each, for `benchmarks.formats`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.peers._arena import Arena, Learnt, Rollouts, Settings
from benchmarks.peers._base import Recipe, base_model
from benchmarks.peers._rules import Engined, Plain, distinct, pool_of
from mixwright.measure._estimates import pass_at_k
from mixwright.measure.formats import format_rows, normalised_entropy
from mixwright.plan._race import crossing, foresee, formats_of, winner
from mixwright.records import Example, Plan, Signals, Stage
from mixwright.steer.monitors.formats import Formats
from mixwright_lab.worlds.chain import MODULUS, STYLES, Chain

STEPS = 60
LOOKS = (0, 10, 20, 40, 60)
POOL, PROBED, SAMPLES, ITEMS, TRIES = 400, 64, 8, 64, 16
LEVELS = (1, 2, 3, 4)
KS = (1, 2, 4, 8, 16)
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
"""Label noise per running value to draw from, for the same three: the commonest style is often the worst taught."""
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
    """Our engine with the monitor, which tightens."""
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


class Watched(Plain):
    """Uniform choice, watched by the monitor, which is only listened to.

    Args:
        size: examples of the pool.
        seed: of the order.
        arm: how advantages are made.
    """

    def __init__(self, size: int, seed: int, arm: Arm) -> None:
        super().__init__(size, seed)
        self._arm, self._monitor = arm, Formats()
        self.alarms: list[str] = []
        """What the monitor said."""

    def learn(self, arena: Arena, rollouts: Rollouts) -> Learnt:
        """One update, and a look by the monitor."""
        self._monitor.observe(arena.steps, rollouts.outcomes(arena.steps))
        self.alarms += [alarm.message for alarm in self._monitor.inspect(Signals(arena.steps))]
        if self._arm.balanced:
            return arena.update(rollouts, balanced(rollouts), beta=arena.settings.beta)
        return arena.learn(rollouts)


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


def recipe_of(shares: Sequence[float], noise: Sequence[float]) -> Recipe:
    """SFT with these shares and noises of `STYLES`."""
    named = (tuple(zip(STYLES, map(float, column), strict=True)) for column in (shares, noise))
    return Recipe(tuple((level, 1.0) for level in LEVELS), *named, steps=700)


def mix(seed: int) -> Recipe:
    """A drawn mix: which style is common, which rare, and how noisy each was taught."""
    rng = np.random.default_rng((seed, 5))
    places, shares = rng.permutation(len(STYLES)), SHARES[rng.integers(len(SHARES))]
    noise = [rng.choice(choices) for choices in NOISE]
    return recipe_of(*([column[list(places).index(place)] for place in range(len(STYLES))] for column in (shares, noise)))


def examples(count: int, split: str, first: int = 0) -> list[Example]:
    """Problems of all levels in turn."""
    return [Chain().make(first + number, LEVELS[number % len(LEVELS)], split) for number in range(count)]


def rule_of(arena: Arena, arm: Arm, seed: int) -> Watched | Engined:
    """What draws and learns in this arm."""
    if not arm.alarm:
        return Watched(len(arena.examples) - PROBED, seed, arm)
    stage = Stage("training", "grpo", STEPS, {"chain": 1.0}, monitors=("formats",), options={"engine": {"survivors": 0.0}})
    pool = pool_of(arena.examples[:-PROBED], lambda _: 1 / MODULUS)
    return Engined(Plan("hand", (stage,)), pool, seed)


def table(rollouts: Rollouts) -> dict[str, Any]:
    """Shares, accuracies and entropy of the styles."""
    styles, rewards = np.array(rollouts.formats), rollouts.rewards
    counts = {style: int((styles == style).sum()) for style in STYLES}
    rights = {style: float(rewards[styles == style].sum()) for style in STYLES}
    return {
        "shares": {style: counts[style] / styles.size for style in STYLES},
        "accuracies": {style: rights[style] / counts[style] if counts[style] else None for style in STYLES},
        "entropy": normalised_entropy(np.array(list(counts.values()), dtype=float)),
        "pass@1": float(rewards.mean()),
    }


def passes(rollouts: Rollouts) -> dict[str, float]:
    """pass@k, unbiased."""
    right = rollouts.rewards.sum(1).astype(int)
    tries = rollouts.rewards.shape[1]
    return {f"pass@{k}": fmean(pass_at_k(tries, count, k) for count in right) for k in KS}


def foretell(rollouts: Rollouts) -> dict[str, Any]:
    """The product's forecast and its nulls, from the rows that its probe writes."""
    gold = Counter(["direct"])
    rows = format_rows("chain", np.array(rollouts.formats, dtype=object), rollouts.rewards, gold, 5)
    runners = formats_of(rows).get("chain", [])
    if not runners:
        return {}
    said = foresee("chain", runners, STEPS)
    most = runners[0]
    return {
        "race": said[0].name.partition(":")[2],
        "said": winner(said),
        "share": most.form,
        "accuracy": max(runners, key=lambda r: r.accuracy).form,
        "share x accuracy": max(runners, key=lambda r: r.share * r.accuracy).form,
        "expected": {f.name.partition(":")[2]: [f.before, f.expected, f.low, f.high] for f in said},
        "crossing": {r.form: c if math.isfinite(c := crossing(r, most)) else None for r in runners[1:]},
    }


def work(job: Job) -> list[dict[str, Any]]:
    """Every arm of one base."""
    model, rows = base_model(job.seed, job.recipe), []
    held, probe = examples(ITEMS, "eval"), examples(PROBED, "eval", 10_000)
    train = distinct(examples(POOL, "train", job.seed * 10_000))
    for name in job.arms:
        arm = ARMS[name]
        arena = Arena([*train, *probe], model, Settings(beta=arm.beta, permute=arm.permute), job.seed)
        foretold = foretell(arena.roll(range(len(train), len(train) + PROBED), SAMPLES)) if name == "none" else {}
        rule, seen, ends = rule_of(arena, arm, job.seed), {}, {}
        for step in range(STEPS + 1):
            if step in LOOKS:
                rolled = arena.look(held, TRIES)
                seen[step] = table(rolled)
                if step in (0, STEPS):
                    ends[step] = passes(rolled)
            if step < STEPS:
                rule.step(arena)
        said = [d.because for d in rule.decisions if d.what == "alarm.formats"] if isinstance(rule, Engined) else rule.alarms
        shown = {"looks": seen, "pass": ends, "alarms": said, "charged": arena.charged}
        rows.append({"mix": job.mix, "seed": job.seed, "arm": name, "foretold": foretold, **shown})
    return rows
