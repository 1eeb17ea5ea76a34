"""What paired seeds can and cannot say: intervals, noise floor, verdict word, censored runs.

Seeds carry the inference. Intervals are paired t over seeds, because a percentile bootstrap over 3, 5 or 8 seeds covers
about 74, 82 and 89 % where it promises 95 (measured again in `tests/test_statistics.py`). scipy is imported when first
needed.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mixwright.records import Interval, VerdictWord

Better = Literal["higher", "lower"]

FEWEST_SEEDS = 5
"""Below this many pairs every word is "inconclusive"."""
LEVEL = 0.95
"""Coverage of every interval here."""


def paired_interval(differences: Sequence[float], *, bound: float) -> Interval:
    """Mean paired difference with its 95 % t interval over seeds.

    Args:
        differences: one per seed, arm minus reference.
        bound: largest size a difference can have (1 for shares); the interval is cut at +-bound, and spans all of it
            when there are fewer than two differences, for then nothing is known.
    """
    n = len(differences)
    value = statistics.fmean(differences) if n else 0.0
    if n < 2:
        return Interval(value, -bound, bound, n)
    half = t_quantile(n - 1) * statistics.stdev(differences) / math.sqrt(n)
    return Interval(value, max(value - half, -bound), min(value + half, bound), n)


def noise_floor(arms: Sequence[Sequence[float]], bases: Sequence[Sequence[int]], *, pairs: int, bound: float) -> float:
    """Size that the mean difference of two identical arms stays below in 95 % of trials of `pairs` seeds.

    Two runs of one arm from one base still differ, in data order and sampling. The spread of single runs is pooled
    within arm and base; identical arms then differ by t(degrees of freedom) x spread x sqrt(2 / pairs). It uses no
    pairing, so it may exceed the paired interval's half-width where pairing helps. When every seed has its own base the
    base effect cannot be removed and stays in the spread: the floor is then an upper estimate, unless the values are
    gains over the base. Null arms are not used: a null drifts and is not identical to the reference; its difference is
    an effect of its own.

    Args:
        arms: per arm, the number of each seed.
        bases: per arm, which base each of those seeds started from.
        pairs: how many seeds the compared mean rests on.
        bound: what is returned when nothing can be estimated.
    """
    squares, freedom = _spread(arms, bases)
    if freedom == 0:
        squares, freedom = _spread(arms, [[0] * len(values) for values in arms])
    if freedom == 0 or pairs == 0:
        return bound
    return min(bound, t_quantile(freedom) * math.sqrt(squares / freedom * 2 / pairs))


def _spread(arms: Sequence[Sequence[float]], bases: Sequence[Sequence[int]]) -> tuple[float, int]:
    """Sum of squares around the mean of each arm and base, and its degrees of freedom."""
    squares, freedom = 0.0, 0
    for values, labels in zip(arms, bases, strict=True):
        for label in set(labels):
            own = [value for value, base in zip(values, labels, strict=True) if base == label]
            mean = statistics.fmean(own)
            squares += sum((value - mean) ** 2 for value in own)
            freedom += len(own) - 1
    return squares, freedom


def verdict_word(difference: Interval, *, better: Better, margin: float) -> VerdictWord:
    """The word for a difference.

    helps, harms: at least five pairs and the whole interval on one side of 0. no measurable effect: at least five pairs
    and the whole interval, 0 included, within +-margin. inconclusive: everything else. The noise floor is not used as
    the margin, for then a noisier trial would earn the stronger word.
    """
    if difference.n < FEWEST_SEEDS:
        return "inconclusive"
    if difference.low > 0 or difference.high < 0:
        return "helps" if (difference.low > 0) == (better == "higher") else "harms"
    if -margin <= difference.low and difference.high <= margin:
        return "no measurable effect"
    return "inconclusive"


@dataclass(frozen=True, slots=True)
class Race:
    """Who reached the target first, seed by seed: no censored run is thrown away."""

    wins: int
    """Seeds where the arm was first, or the only one to arrive."""
    losses: int
    """Seeds where the reference was."""
    ties: int
    """Both at the same count, or neither arrived: no information on the order."""
    difference: Interval
    """Wins minus losses as a share of decided seeds (n), -1..1, with the exact (Clopper-Pearson) 95 % interval."""
    floor: float
    """What a coin would show: size that the difference of two identical arms stays within in at least 95 % of trials."""
    p_value: float
    """Two-sided sign test."""


def race(arm: Sequence[float | None], reference: Sequence[float | None]) -> Race:
    """Compare counts to a target in order only; None is a run that missed it. Pairs stand at the same place in both."""
    pairs = [(math.inf if a is None else a, math.inf if b is None else b) for a, b in zip(arm, reference, strict=True)]
    wins, losses = sum(a < b for a, b in pairs), sum(b < a for a, b in pairs)
    decided = wins + losses
    if decided == 0:
        return Race(0, 0, len(pairs), Interval(0.0, -1.0, 1.0, 0), 1.0, 1.0)
    from scipy import stats

    test = stats.binomtest(wins, decided)
    interval = test.proportion_ci(LEVEL, method="exact")
    floor = 2 * float(stats.binom.ppf(0.5 + LEVEL / 2, decided, 0.5)) / decided - 1
    difference = Interval((wins - losses) / decided, 2 * float(interval.low) - 1, 2 * float(interval.high) - 1, decided)
    return Race(wins, losses, len(pairs) - decided, difference, floor, float(test.pvalue))


@dataclass(frozen=True, slots=True)
class Pairs:
    """One number of two arms, matched by seed."""

    seeds: tuple[int, ...]
    """Seeds where both sides have a value."""
    arm: tuple[float, ...]
    """Of the arm, one per seed."""
    reference: tuple[float, ...]
    """Of the reference, one per seed."""
    censored: int
    """Seeds left out because a side has none (target missed, or not measurable)."""

    @property
    def differences(self) -> tuple[float, ...]:
        """Arm minus reference, one per seed."""
        return tuple(a - b for a, b in zip(self.arm, self.reference, strict=True))


def match(arm: Mapping[int, float | None], reference: Mapping[int, float | None]) -> Pairs:
    """Pair two arms by seed; seeds that only one of them ran are no pairs and not censored."""
    both = sorted(arm.keys() & reference.keys())
    complete = [(seed, a, b) for seed in both if (a := arm[seed]) is not None and (b := reference[seed]) is not None]
    return Pairs(
        tuple(seed for seed, _, _ in complete),
        tuple(a for _, a, _ in complete),
        tuple(b for _, _, b in complete),
        len(both) - len(complete),
    )


@functools.cache
def t_quantile(freedom: int) -> float:
    """The t value that leaves 2.5 % on each side at these degrees of freedom."""
    from scipy import stats

    return float(stats.t.ppf(0.5 + LEVEL / 2, freedom))
