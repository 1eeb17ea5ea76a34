"""Estimate of a mean of differences over seeds x items, both random: one interval that holds both variances.

Seeds of a trial share their held-out items, so an interval over seeds alone speaks about these items only and covers too
little for the cell (82 to 89 % in simulations). With d[s, i] the difference of seed s on item i: V = max(V_seed + V_item -
V_res, V_seed, V_item), the two-way random-effects variance, never less than either part, and t with Satterthwaite's degrees
of freedom. Seeds that share starting models speak about these models, not about others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import COVERAGE, Z, t_quantile, t_tail
from mixwright.records import Interval

UNMOVED_SHARE = 0.02
"""Move of an item, a share, up to which it did not move."""
Values = Mapping[str, Sequence[float]]
MIN_PROMPTS = 20
"""Shared prompts from which on two sides are paired."""
DETECTION_POWER = 0.8
"""Chance of seeing the detectable effect."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean difference with all that is needed to judge it."""

    value: float
    """The mean."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of it."""
    p: float
    """Two-sided p value of "no difference"."""
    error: float
    """Standard error."""
    df: float
    """Satterthwaite's degrees of freedom."""
    seeds: int
    """Seeds it rests on; 1 for a plain before and after."""
    items: int
    """Items it rests on."""

    @property
    def interval(self) -> Interval:
        """As a record; n is the number of seeds, or of items where there is one seed."""
        return Interval(self.value, self.low, self.high, self.seeds if self.seeds > 1 else self.items)

    def detectable(self, family: int = 1) -> float:
        """Size of a true difference seen in `DETECTION_POWER` of such trials, as the first of `family` under Holm."""
        quantile = t_quantile(self.df, 1 - (1 - COVERAGE) / max(family, 1))
        return (quantile + t_quantile(self.df, 2 * DETECTION_POWER - 1)) * self.error


def estimate_crossed(
    differences: NDArray[np.float64],
    strata: Sequence[int] | NDArray[np.int64],
    weights: Sequence[float] | NDArray[np.float64] | None = None,
    *,
    counted: bool = True,
    moves: NDArray[np.float64] | None = None,
    pseudo_quantile: float = Z,
) -> Estimate:
    """The weighted mean over items, averaged over seeds.

    Args:
        differences: shape (seeds, items).
        strata: of each item, whole numbers: the cell it was drawn from, so that differences between cells are no error.
        weights: of each item, summing to 1; None counts every item the same.
        counted: differences of shares, which may all be 0 by luck; false for readings without a least step, such as nats.
        moves: differences of the same shape that say how far an item moves, where the values are parts of a success (S, D),
            of which every item's moves a little when one item does; None takes the values.
        pseudo_quantile: quantile whose square is added for items that were not seen to move; that of the interval that is
            asked for.

    Raises:
        ValueError: no seeds or no items.
    """
    values = np.atleast_2d(np.asarray(differences, dtype=float))
    seeds, items = values.shape
    if not seeds or not items:
        raise ValueError("no seeds or no items")
    share = np.full(items, 1 / items) if weights is None else np.asarray(weights, dtype=float)
    groups = np.asarray(strata)
    if groups.min() or not np.bincount(groups).all():  # they are not numbered from 0 as they are
        groups = np.unique(groups, return_inverse=True)[1]
    per_seed, per_item = values @ share, _mean_of_rows(values)
    value = float(per_seed.mean())
    item_moves = per_item if moves is None else _mean_of_rows(np.atleast_2d(moves))
    added_squares = squares_for(item_moves, pseudo_quantile) if counted else 0.0
    of_items, items_df = items_variance(per_item, groups, share, added_squares)
    if seeds < 2:
        return estimate_of(value, of_items, items_df, 1, items)
    of_seeds = float(per_seed.var(ddof=1)) / seeds
    residuals = values - per_item - _by_group(values, groups) + _by_group(per_item[None], groups)
    of_rest = items_variance(residuals, groups, share, 0.0)[0] / (seeds * (seeds - 1))
    variance = of_seeds + of_items - of_rest
    if variance >= max(of_seeds, of_items):
        variance_parts = ((of_seeds, seeds - 1), (of_items, items_df), (of_rest, (seeds - 1) * items_df))
        df = variance**2 / max(sum(part**2 / part_df for part, part_df in variance_parts), 1e-300)
        return estimate_of(value, variance, df, seeds, items)
    if of_seeds > of_items:
        return estimate_of(value, of_seeds, seeds - 1, seeds, items)
    return estimate_of(value, of_items, items_df, seeds, items)


def estimate_of(value: float, variance: float, df: float, seeds: int, items: int) -> Estimate:
    """From a mean, its variance and degrees of freedom."""
    error, df = math.sqrt(variance), max(round(df, 3), 1.0)
    half = t_quantile(df, COVERAGE) * error
    if seeds == items == 1 and error <= 1e-12:  # one reading has no spread: nothing is known of another item
        return Estimate(value, value, value, 1.0, error, df, seeds, items)
    p = float(abs(value) < 1e-12) if error <= 1e-12 else t_tail(value / error, df) if math.isfinite(error) else 1.0
    return Estimate(value, value - half, value + half, p, error, df, seeds, items)


def compare_prompts(first: Values, second: Values, shares: int) -> tuple[list[float], list[float], list[float], bool]:
    """Compare two sides by prompt, paired if they share `MIN_PROMPTS` or more, and half of those of the smaller side.

    Return the means of both, two-sided p values, and whether they are paired. The first `shares` measures are from 0 to 1.
    """
    shared = sorted(first.keys() & second.keys())
    is_paired = len(shared) >= max(MIN_PROMPTS, min(len(first), len(second)) / 2)
    ours, theirs = (np.array([side[name] for name in (shared if is_paired else side)], float) for side in (first, second))
    if is_paired:
        values, strata, weights = theirs - ours, np.zeros(len(shared), np.int64), None
    else:
        values, sizes = np.concatenate([ours, theirs]), (len(ours), len(theirs))
        strata, weights = np.repeat((0, 1), sizes), np.repeat((-1 / sizes[0], 1 / sizes[1]), sizes)
    p_values = [estimate_crossed(row, strata, weights, counted=place < shares).p for place, row in enumerate(values.T)]
    return ours.mean(axis=0).tolist(), theirs.mean(axis=0).tolist(), p_values, is_paired


def squares_for(item_moves: NDArray[np.float64], pseudo_quantile: float = Z) -> float:
    """Squares that are added beside these moves of items, each its mean over seeds; a probability always moves a little."""
    return pseudo_squares(float((item_moves**2).sum()), float((np.abs(item_moves) > UNMOVED_SHARE).sum()), pseudo_quantile)


def pseudo_squares(squares: float, moved_count: float, pseudo_quantile: float = Z) -> float:
    """Squares that are added for items that were not seen to move: `Z` squared of them, each as large as a move is.

    As in Agresti and Min's interval (2005), but with `Z` squared pseudo-items, as wide as Wilson's interval of 0 in n: with
    one, a gate at a true loss of 5 points passes in 2.6 % and changes of 1 item in 100 are covered in 86 %. How large a move
    is, is the mean square of those that were seen and of `Z` squared whole ones: an answer that turns from wrong to right
    moves by 1; a share of several samples, or the mean over several seeds, mostly by less. The least step (one divided by
    the number of samples) does not say it: samples that are all alike move by 1 as well, and with squares of the least step
    such changes of 1 item in 100 are covered in 37 % at 50 items.

    Args:
        squares: sum of the squared moves of items, each its mean over seeds.
        moved_count: how many items moved.
        pseudo_quantile: quantile whose square they are.
    """
    square = pseudo_quantile * pseudo_quantile
    return square * min((square + squares) / (square + moved_count), 1.0)


def _mean_of_rows(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over rows; of one row, which most comparisons have, itself: thousands of tasks are estimated one by one."""
    return values[0] if len(values) == 1 else values.mean(axis=0)


def _by_group(values: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each value replaced by the mean of its row over its group; shape kept."""
    counts = np.bincount(groups).astype(float)
    means = [np.bincount(groups, row) / counts for row in values]
    return (means[0][None] if len(means) == 1 else np.stack(means))[:, groups]


def items_variance(
    values: NDArray[np.float64], groups: NDArray[np.int64], share: NDArray[np.float64], added_squares: float
) -> tuple[float, float]:
    """Variance of the weighted sum over items drawn anew within their groups, and its degrees of freedom.

    A group of one item takes the spread of the others; where all are such groups, and nothing is added, they are one group.

    Args:
        values: shape (items,) or (rows, items); rows are added up.
        groups: of each item.
        share: weight of each item.
        added_squares: squares that are added to all items together, so that items none of which differ keep an honest width.
    """
    rows = np.atleast_2d(values)
    if not added_squares and groups.max() == len(groups) - 1:
        groups = np.zeros_like(groups)
    counts = np.bincount(groups).astype(float)
    centred = rows - _by_group(rows, groups)
    squares = np.bincount(groups, (centred**2).sum(axis=0))
    added = added_squares * counts / counts.sum()
    df = counts - 1
    pooled = (squares.sum() + added.sum()) / max(df.sum(), 1.0)
    spread = np.where(df > 0, (squares + added) / np.maximum(df, 1), pooled)
    group_variances = np.bincount(groups, share**2) * spread
    total = float(group_variances.sum())
    df_terms = float((group_variances[df > 0] ** 2 / df[df > 0]).sum())
    return total, total**2 / df_terms if df_terms > 0 else max(float(df.sum()), 1.0)
