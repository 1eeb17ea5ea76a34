"""Reliability of a ranking of candidates from a few runs of each, how many runs one takes, and its sentences. Pure.

A candidate is anything that is tried by training: a data set, a rewrite, an arm. Its measured mean is its true worth plus
the noise of its runs. Reliability is the share of the variance of these means that is true worth (intraclass correlation);
of the mean of n runs it is n r / (1 + (n - 1) r), where r is that of one run (Spearman 1910, Brown 1910). Candidates are
compared within their group (an article, a task), whose mean is taken out. The interval is that of the F test, exact for
normal scores and equal numbers of runs (McGraw and Wong 1996); for unequal numbers their harmonic mean stands in.

Where runs are paired (the same seeds for every candidate), what a seed does to all candidates alike is no noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixwright.extend import COVERAGE, Interval, gauss_legendre

TARGET_RELIABILITY = 0.8
"""Reliability from which a ranking is commonly used."""
NOISE_RELIABILITY = 0.5
"""Reliability below which more than half of what sets candidates apart is noise."""
QUADRATURE_NODES = 256
RankingWord = Literal["ranking noise", "uncertain", "reliable"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How far a ranking by the means of a few runs can be believed."""

    groups: int
    """Groups within which candidates are compared."""
    candidates: int
    """Of all groups."""
    runs: float
    """Runs of a candidate; their harmonic mean where they differ."""
    worth: float
    """Variance of true worth among the candidates of a group; below 0 where noise alone would spread them more."""
    noise: float
    """Variance of one run."""
    reliability: Interval
    """Of the mean of the runs that there are, with its 95 % interval; below 0 as `worth` is."""
    target: float
    """Reliability that is wanted."""
    needed: int | None
    """Runs of each candidate for it; None where the candidates are not shown to differ at all."""
    needed_low: int
    """The least number that the interval allows."""
    needed_high: int | None
    """The largest number that the interval allows; None: no number."""

    @property
    def kept_gain_share(self) -> float:
        """Of what the truly best candidate would gain over the mean, the share that the one ranked first does on average."""
        return math.sqrt(min(max(self.reliability.value, 0.0), 1.0))

    @property
    def word(self) -> RankingWord:
        """What the ranking may be called; reliable only where the interval, too, excludes that most of it is noise."""
        interval = self.reliability
        if interval.value < NOISE_RELIABILITY:
            return "ranking noise"
        return "reliable" if interval.value >= self.target and interval.low >= NOISE_RELIABILITY else "uncertain"


def ranking(
    scores: Sequence[Sequence[Sequence[float]]], *, paired: bool = False, target: float = TARGET_RELIABILITY
) -> Ranking:
    """The reliability of ranking candidates by their means.

    Args:
        scores: per group, per candidate, one score per run; every candidate has at least 2 runs and a group 2 candidates.
        paired: whether run number n of every candidate of a group had the same seed; needs equal numbers of runs.
        target: reliability that is wanted, above 0 and below 1.

    Raises:
        ValueError: fewer runs or candidates, or paired runs of unequal number.
    """
    if not 0 < target < 1:
        raise ValueError("a target between 0 and 1")
    tables = [[np.asarray(runs, dtype=float) for runs in group] for group in scores]
    if not tables or any(len(group) < 2 for group in tables) or any(len(runs) < 2 for group in tables for runs in group):
        raise ValueError("at least one group of two candidates with two runs each")
    if paired and any(len({len(runs) for runs in group}) > 1 for group in tables):
        raise ValueError("paired runs of unequal number")
    squares, df = 0.0, 0
    for group in tables:
        residuals = [runs - runs.mean() for runs in group]
        if paired:
            residuals = list(np.array(residuals) - np.array(residuals).mean(axis=0))
        squares += float(sum((row**2).sum() for row in residuals))
        df += (len(group) - 1) * (len(group[0]) - 1) if paired else sum(len(runs) - 1 for runs in group)
    means = [np.array([runs.mean() for runs in group]) for group in tables]
    counts = [len(runs) for group in tables for runs in group]
    noise = squares / df
    candidate_df = sum(len(group) - 1 for group in means)
    spread = float(sum(((group - group.mean()) ** 2).sum() for group in means)) / candidate_df
    runs = len(counts) / math.fsum(1 / count for count in counts)
    of_mean = noise / runs
    if spread <= 0:
        reliability = Interval(0.0, 0.0, 1.0, len(counts))
    elif of_mean <= 0:
        reliability = Interval(1.0, 1.0, 1.0, len(counts))
    else:
        ratio, tail = spread / of_mean, (1 - COVERAGE) / 2
        low = 1 - f_quantile(tail, candidate_df, df) / ratio
        high = 1 - 1 / (ratio * f_quantile(tail, df, candidate_df))
        reliability = Interval(1 - 1 / ratio, low, high, len(counts))
    runs_needed, low, high = (
        _needed(value, runs, target) for value in (reliability.value, reliability.high, reliability.low)
    )
    return Ranking(len(means), len(counts), runs, spread - of_mean, noise, reliability, target, runs_needed, low or 1, high)


def _needed(reliability: float, runs: float, target: float) -> int | None:
    """Runs for the target, where that many have this reliability; None where it is 0 or less."""
    if reliability <= 0:
        return None
    single = runs * (1 - reliability) / reliability  # noise of one run per true worth
    return max(1, math.ceil(target / (1 - target) * single - 1e-9))


def format_ranking(result: Ranking) -> list[str]:
    """What a ranking is worth, in sentences."""
    value = result.reliability
    lead = "You are ranking noise" if result.word == "ranking noise" else f"The ranking is {result.word}"
    shape = f"{result.candidates:,} candidates" + (f" in {result.groups:,} groups" if result.groups > 1 else "")
    ends = [f"{max(number, 0.0):.2f}" for number in (value.value, value.low, value.high)]  # a share
    lines = [
        f"{lead}: with {result.runs:.3g} runs of each of {shape}, reliability {ends[0]} [{ends[1]}, {ends[2]}]; the one "
        f"ranked first has on average {100 * result.kept_gain_share:.0f} % of what the truly best would gain."
    ]
    low, high = f"{result.needed_low:,}", "no number of runs" if result.needed_high is None else f"{result.needed_high:,}"
    if result.needed is None:
        return [*lines, "The candidates differ no more than runs of one candidate do: no number of runs can be named."]
    return [*lines, f"Runs of each for a reliability of {result.target:g}: about {result.needed:,} ({low} to {high})."]


def f_tail(ratio: float, df1: float, df2: float) -> float:
    """P(F > ratio) of Fisher's F with `df1` and `df2` degrees of freedom, each at least 1.

    With F = (df2 / df1) tan(a)^2 the density is that of sin(a)^(df1 - 1) cos(a)^(df2 - 1), which is integrated by
    Gauss and Legendre.
    """
    if ratio <= 0:
        return 1.0
    angle = math.atan(math.sqrt(df1 * ratio / df2))
    scale = math.lgamma((df1 + df2) / 2) - math.lgamma(df1 / 2) - math.lgamma(df2 / 2) + math.log(2)
    nodes, weights = gauss_legendre(QUADRATURE_NODES)
    angles = angle / 2 * (nodes + 1)
    logs = scale + (df1 - 1) * np.log(np.sin(angles)) + (df2 - 1) * np.log(np.cos(angles))
    return min(max(1 - float(angle / 2 * (weights @ np.exp(logs))), 0.0), 1.0)


@functools.cache
def f_quantile(tail: float, df1: float, df2: float) -> float:
    """The ratio that F exceeds with probability `tail`."""
    low, high = 0.0, 1.0
    while f_tail(high, df1, df2) > tail and high < 1e12:
        high *= 4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if f_tail(middle, df1, df2) > tail else (low, middle)
    return high
