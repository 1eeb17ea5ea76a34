"""Loss of a single cell that a gate can exclude, and how often it would pass: simulated from numbers of items alone.

The mean over cells says little about one of them: with 40 cells a loss of 20 points in one moves it by half a point, and
gains elsewhere hide it. So every cell has to exclude a loss by itself, one-sided at 95 %, under any margin: of
`EXCLUDED_CELL_LOSS`, and where cells are too small for that, of the least loss that unharmed ones exclude. No correction
over cells is needed, because every cell has to. Which loss it is follows from the numbers of items, never from outcomes.

An answer is right with a chance `START_SUCCESS`; after training a share of the answers is drawn anew; a loss turns right
answers into wrong ones. Source: non-inferiority with a discordant pair's variance, as in `crossed`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.exclusion import CHURN_SHARE, MAX_ITEMS_PER_CELL, MEAN_LOSS_MARGIN, MIN_UNHARMED_PASS_SHARE
from mixwright.estimates.intervals import Z, t_quantile

EXCLUDED_CELL_LOSS = 0.2
"""Loss of one cell that must be excluded, a share."""
CELL_INTERVAL_LEVEL = 0.9
"""Two-sided level of the interval whose lower end excludes it: 5 % on one side."""
Z_CELL = NormalDist().inv_cdf(0.95)
"""Normal quantile of that one-sided 5 %; its square is added to a cell's squared changes, so that a cell in which no item
changed has a standard error above 0, too."""
REDRAWN_SHARE, START_SUCCESS = 0.2, 0.7
"""Share of answers drawn anew, and success before, of the unharmed checkpoint that the rule is chosen for."""
REDRAWN_SHARES = (0.0, REDRAWN_SHARE, 0.5)
"""Shares of answers drawn anew beside a loss; a limit sees it worse where fewer change, a test where more do."""
LOSS_STEP = 0.05
"""Losses are spoken of in steps of 5 points."""
MIN_PASSING_SHARE = 0.5
"""Share of unharmed checkpoints that must pass for the rule of single cells to apply."""
MIN_DETECTED_SHARE = 0.95
"""Share of checkpoints with a loss of one cell that must be stopped for the gate to see such a loss."""
LOSS_ALPHA = 0.05
"""Level of a significant loss, corrected over the cells."""
SIMULATED_RUNS = 2000
"""Simulated checkpoints."""
CANDIDATE_LOSSES = tuple(round(0.05 * step, 2) for step in range(2, 15))
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SimulatedCheckpoint:
    """A checkpoint that is simulated."""

    start: float = START_SUCCESS
    """Success before, 0..1."""
    redrawn: float = REDRAWN_SHARE
    """Share of answers drawn anew."""
    smallest_cell_loss: float = 0.0
    """Loss of the smallest cell alone, at most `start`."""

    def changes(self, cells: int) -> NDArray[np.float64]:
        """Chances of an item to become right, to become wrong and to stay, of each cell, the smallest last: (cells, 3)."""
        keep = 1 - self.smallest_cell_loss * (np.arange(cells) == cells - 1) / self.start
        up = (1 - self.start) * self.redrawn * self.start * keep
        down = self.start * (1 - (1 - self.redrawn + self.redrawn * self.start) * keep)
        return np.stack([up, down, 1 - up - down], axis=1)


def excludes_cell_loss(estimate: Estimate, limit: float, confidence: float = CELL_INTERVAL_LEVEL) -> bool:
    """Whether a cell's change excludes a loss of this size, a share."""
    return estimate.value - t_quantile(estimate.df, confidence) * estimate.error > -limit


@functools.cache
def cell_loss_limits(sizes: tuple[int, ...], margin: float = MEAN_LOSS_MARGIN) -> dict[int, float]:
    """Items of a cell -> loss that it has to exclude by itself, a share; sizes that can exclude none are left out.

    Args:
        sizes: items of each cell, sorted, at least two each.
        margin: mean loss that is to be excluded, a share; no cell has to exclude less.
    """
    large = find_min_items_for_cell_rule(sizes, MEAN_LOSS_MARGIN) if sizes else None
    limits = {
        size: EXCLUDED_CELL_LOSS if large is not None and size >= large else _least_excluded_loss(size, len(sizes))
        for size in set(sizes)
    }
    return {size: max(limit, margin) for size, limit in limits.items() if limit is not None}


@functools.cache
def _least_excluded_loss(size: int, cells: int) -> float | None:
    """Least loss that all of so many unharmed cells exclude in about nine of ten cases; None for none."""
    steps = range(round(EXCLUDED_CELL_LOSS / LOSS_STEP), round(1 / LOSS_STEP))
    needed = _excluded_by_unharmed(size, cells, CHURN_SHARE, MIN_UNHARMED_PASS_SHARE)
    return next((round(step * LOSS_STEP, 2) for step in steps if step * LOSS_STEP >= needed), None)


def _excluded_by_unharmed(items: int, cells: int, churn: float, pass_share: float) -> float:
    """Loss that each of so many unharmed cells excludes, all of them in a share `pass_share` of cases."""
    error = math.sqrt((churn + Z_CELL * Z_CELL / items) / (items - 1))
    z_all_cells = NormalDist().inv_cdf(pass_share ** (1 / cells))
    return t_quantile(items - 1.0, CELL_INTERVAL_LEVEL) * error + z_all_cells * math.sqrt(churn / items)


@functools.cache
def items_excluding_cell_loss(cells: int, churn: float, pass_share: float = MIN_UNHARMED_PASS_SHARE) -> int:
    """Items with which each of so many unharmed cells excludes `EXCLUDED_CELL_LOSS`, all of them in a share `pass_share` of
    cases.

    Args:
        cells: at least one.
        churn: share of items that change, as many up as down.
        pass_share: 0..1.
    """
    return next(
        items
        for items in range(2, MAX_ITEMS_PER_CELL)
        if _excluded_by_unharmed(items, cells, churn, pass_share) <= EXCLUDED_CELL_LOSS
    )


@functools.cache
def find_min_items_for_cell_rule(sizes: tuple[int, ...], margin: float) -> int | None:
    """Items from which on a cell has to exclude a loss by itself: the least by which unharmed checkpoints pass often enough.

    Args:
        sizes: items of each cell, sorted, at least two each.
        margin: mean loss that is to be excluded, a share.

    Returns:
        One of the sizes; None where an unharmed checkpoint passes with none in `MIN_PASSING_SHARE` of cases.
    """
    for size in sorted(set(sizes)):
        if share_passing(sizes, margin, SimulatedCheckpoint(), min_items_for_cell_rule=size) >= MIN_PASSING_SHARE:
            return size
    return None


@functools.cache
def largest_undetected_loss(size: int, limit: float | None, claims: int, margin: float = math.inf) -> float | None:
    """Largest loss of one cell that more than 1 - `MIN_DETECTED_SHARE` of checkpoints would pass with; None where none does.

    Other cells may gain as much as it takes for their mean to hide it. In steps of 5 points from 10 to `START_SUCCESS`, of
    whichever of `REDRAWN_SHARES` passes most.

    Args:
        size: items of the cell, at least two.
        limit: loss that the cell has to exclude, a share.
        claims: how many changes are judged together.
        margin: mean loss that is to be excluded, a share, where there is no other cell to hide the loss.
    """
    for loss in reversed(CANDIDATE_LOSSES):
        passing = max(
            share_passing(
                (size,),
                margin,
                SimulatedCheckpoint(redrawn=redrawn, smallest_cell_loss=loss),
                min_items_for_cell_rule=None if limit is None else size,
                limit=limit or EXCLUDED_CELL_LOSS,
                claims=claims,
            )
            for redrawn in REDRAWN_SHARES
        )
        if passing > 1 - MIN_DETECTED_SHARE:
            return loss
    return None


def share_passing(
    sizes: Sequence[int],
    margin: float,
    checkpoint: SimulatedCheckpoint,
    *,
    min_items_for_cell_rule: int | None,
    limit: float = EXCLUDED_CELL_LOSS,
    claims: int | None = None,
) -> float:
    """Share of simulated checkpoints that pass; the same numbers give the same share.

    Args:
        sizes: items of each cell, at least two each.
        margin: mean loss that is to be excluded, a share; infinite for any.
        checkpoint: what happens to the checkpoint.
        min_items_for_cell_rule: cells of so many items have to exclude a loss by themselves; of others, and for None of
            all, only a significant loss stops the gate.
        limit: that loss, a share.
        claims: how many changes are judged together; None for as many as there are cells.
    """
    rng, ordered = np.random.default_rng(0), np.array(sorted(sizes, reverse=True))
    cell_draws = zip(ordered, checkpoint.changes(len(ordered)), strict=True)
    counts = np.stack([rng.multinomial(size, chances, size=SIMULATED_RUNS) for size, chances in cell_draws], axis=1)
    limits = np.where(ordered >= (math.inf if min_items_for_cell_rule is None else min_items_for_cell_rule), limit, math.inf)
    return float(_passes(counts[..., 0], counts[..., 1], ordered, margin, limits, claims or len(ordered)).mean())


def _passes(
    up: Counts, down: Counts, sizes: Counts, margin: float, limits: NDArray[np.float64], claims: int
) -> NDArray[np.bool_]:
    """Whether each checkpoint passes, from items that became right and wrong, each of shape (runs, cells)."""
    cells, change = len(sizes), (up - down) / sizes
    squares = up + down - sizes * change**2
    variances = (squares + Z * Z * sizes / sizes.sum()) / (sizes - 1) / sizes / cells**2
    variance = variances.sum(axis=1)
    df = variance**2 / (variances**2 / (sizes - 1)).sum(axis=1)
    mean_low = change.mean(axis=1) - _quantiles(df) * np.sqrt(variance)
    corrected_error = np.sqrt((squares + Z * Z) / (sizes - 1) / sizes)
    corrected_quantiles = np.array([t_quantile(float(size - 1), 1 - LOSS_ALPHA / claims) for size in sizes])
    uncorrected_quantiles = np.array([t_quantile(float(size - 1), CELL_INTERVAL_LEVEL) for size in sizes])
    uncorrected_error = np.sqrt((squares + Z_CELL * Z_CELL) / (sizes - 1) / sizes)
    is_lost = change < -corrected_quantiles * corrected_error
    is_excluded = change - uncorrected_quantiles * uncorrected_error > -limits
    return (mean_low > -margin) & (is_excluded & ~is_lost).all(axis=1)


def _quantiles(df: NDArray[np.float64]) -> NDArray[np.float64]:
    """95 % quantiles of t, interpolated in 1 / df, in which they are nearly straight."""
    tabulated = np.array([1.0, 2, 3, 4, 6, 8, 12, 20, 40, 100, 1e6])
    values = np.array([t_quantile(float(tabulated_value)) for tabulated_value in tabulated])
    return np.interp(-1 / np.maximum(df, 1.0), -1 / tabulated, values)
