"""Crossover test of pruning: which end of a score beats random rows of the same count, by short trainings. Pure numpy.

A score says which rows are hard; it does not say which to keep. Where data are scarce the easy end wins, where they are
abundant the hard one, and often neither. So a proxy is trained on the hard, the easy and random rows of each fraction, with
the same steps and seeds, and an end is named only where it beats random rows beyond chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import COVERAGE, Estimate, estimate_crossed, holm, report_share

End = Literal["hard", "easy", "random"]
PruningWord = Literal["hard", "easy", "keep all"]
ENDS: tuple[End, ...] = ("hard", "easy", "random")
ENDS_AGAINST_RANDOM: tuple[Literal["hard", "easy"], ...] = ("hard", "easy")
"""Ends that may beat random rows."""
TrainOnRows = Callable[[NDArray[np.int64], int], NDArray[np.float64]]
"""(places of the rows that are kept, seed) -> error of every held-out item after training on them; lower is better."""


@dataclass(frozen=True)
class FractionResult:
    """What one kept fraction showed."""

    kept_share: float
    """Share of the rows, 0..1."""
    errors: dict[str, float]
    """End -> mean error over items and seeds."""
    gains: dict[str, Estimate]
    """hard and easy -> error on random rows minus error on that end: above 0, it beats random rows."""
    p_by_end: dict[str, float]
    """hard and easy -> two-sided p value of that, by Holm over both."""

    @property
    def winner(self) -> PruningWord:
        """The end that beats random rows, the better one where both do; else keep all."""
        won: list[PruningWord] = [
            end for end in ENDS_AGAINST_RANDOM if self.gains[end].value > 0 and self.p_by_end[end] < 1 - COVERAGE
        ]
        return min(won, key=lambda end: self.errors[end]) if won else "keep all"


@dataclass(frozen=True)
class Crossover:
    """The test at each fraction; the first decides."""

    fractions: tuple[FractionResult, ...]
    """The one that is asked for first."""
    error_on_all_rows: float
    """Mean error after as many steps on all rows."""
    trainings: int
    """Short trainings that it took."""

    @property
    def word(self) -> PruningWord:
        """Which end to keep at the first fraction, or keep all."""
        return self.fractions[0].winner

    def notes(self, unit: str) -> list[str]:
        """What was seen, a sentence per fraction."""
        sentences = []
        for fraction in self.fractions:
            gains = "; ".join(f"the {e} end {g.value:+.3g} [{g.low:.3g}, {g.high:.3g}]" for e, g in fraction.gains.items())
            error = f"error on random rows is {fraction.errors['random']:.3g} {unit}"
            sentences.append(
                f"At {fraction.kept_share:.0%} kept, {error}; less by: {gains}. All rows: {self.error_on_all_rows:.3g}."
            )
        other_winners = {fraction.winner for fraction in self.fractions[1:]} - {"keep all", self.word}
        if self.word != "keep all" and other_winners:
            sentences.append(
                f"At another fraction the {other_winners.pop()} end wins, so you are near the crossover: let a trial decide."
            )
        return sentences


def kept_rows(
    score: NDArray[np.float64],
    groups: NDArray[np.int64],
    kept_share: float,
    end: End,
    rng: np.random.Generator,
    *,
    random_share: float = 0.0,
) -> NDArray[np.int64]:
    """Places of the rows of one end, sorted: the same share of every group as nearly as whole rows allow, one at least.

    Args:
        score: of each row, high is hard; rows of NaN are taken at random only.
        groups: of each row: its task, and its answer where a task has few; shares between groups stay.
        kept_share: share of the rows, 0..1.
        end: highest scores, lowest ones, or any.
        rng: of ties and of random rows.
        random_share: share of what is kept that is drawn at random all the same.
    """
    chosen: list[NDArray[np.int64]] = []
    names, sizes = np.unique(groups, return_counts=True)
    for group, count in zip(names, _rows_per_group(sizes, kept_share).tolist(), strict=True):
        group_rows = rng.permutation(np.flatnonzero(groups == group))
        if end != "random":
            values = np.nan_to_num(score[group_rows] if end == "easy" else -score[group_rows], nan=np.inf)
            order = group_rows[np.argsort(values, kind="stable")]  # permuted before, so ties are in random order
            scored_count = min(count - int(random_share * count), int(np.isfinite(values).sum()))
            group_rows = np.concatenate((order[:scored_count], rng.permutation(order[scored_count:])))
        chosen.append(group_rows[:count])
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def _rows_per_group(sizes: NDArray[np.int64], kept_share: float) -> NDArray[np.int64]:
    """Rows that each group keeps: its share rounded down, one at least; those that are left go to the largest remainders."""
    exact = kept_share * sizes
    counts = np.maximum(np.floor(exact + 1e-9), 1).astype(np.int64)
    rows_left = max(round(kept_share * int(sizes.sum())) - int(counts.sum()), 0)
    counts[np.argsort(counts - exact, kind="stable")[:rows_left]] += 1
    return counts


def crossover(
    score: NDArray[np.float64],
    groups: NDArray[np.int64],
    train: TrainOnRows,
    strata: Sequence[int] | NDArray[np.int64],
    *,
    fractions: Sequence[float],
    seeds: Sequence[int],
    random_share: float = 0.0,
) -> Crossover:
    """Train on every end of every fraction with every seed, and read which beats random rows.

    Args:
        score: of each row, as in `kept_rows`.
        groups: of each row.
        train: the proxy; the same seed means the same initial state and order of draws, as far as the rows allow.
        strata: of each held-out item: its task. Tasks count the same.
        fractions: kept shares; the first decides.
        seeds: two at least; random rows are drawn anew with each.
        random_share: as in `kept_rows`.

    Raises:
        ValueError: no fraction, or fewer than two seeds.
    """
    if not fractions or len(seeds) < 2:
        raise ValueError("the crossover test takes a fraction and two seeds at least")
    stratum_of_item = np.unique(np.asarray(strata), return_inverse=True)[1]
    weights = 1 / np.bincount(stratum_of_item)[stratum_of_item]
    weights = weights / weights.sum()
    trainings_in_all = len(seeds) * (3 * len(fractions) + 1)
    trainings_done = itertools.count(1)

    def train_and_report(rows: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
        values = train(rows, seed)
        report_share(next(trainings_done) / trainings_in_all)
        return values

    results = []
    for kept_share in fractions:
        errors: dict[End, NDArray[np.float64]] = {}
        for end in ENDS:
            rngs = [np.random.default_rng([seed, 1]) for seed in seeds]
            chosen = [kept_rows(score, groups, kept_share, end, rng, random_share=random_share) for rng in rngs]
            errors[end] = np.array([train_and_report(rows, seed) for rows, seed in zip(chosen, seeds, strict=True)])
        gains = {
            e: estimate_crossed(errors["random"] - errors[e], stratum_of_item, weights, counted=False)
            for e in ENDS_AGAINST_RANDOM
        }
        adjusted = dict(zip(gains, holm([gain.p for gain in gains.values()]), strict=True))
        means = {end: float((values @ weights).mean()) for end, values in errors.items()}
        results.append(FractionResult(kept_share, means, gains, adjusted))
    error_on_all_rows = np.mean([train_and_report(np.arange(len(score)), seed) @ weights for seed in seeds])
    return Crossover(tuple(results), float(error_on_all_rows), trainings_in_all)
