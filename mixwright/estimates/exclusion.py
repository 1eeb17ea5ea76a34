"""Size of a loss that some items can exclude: how often an unharmed checkpoint would be shown to have lost less.

A checkpoint that lost nothing still answers some items otherwise. With a share `CHURN_SHARE` of the items changing, as many
up as down, the lower end of the mean change lies above -margin in a share of cases that needs no data, so that it can be
told before anything is measured. The error is that of `crossed`, each cell counted once.

The mean over cells says little about one of them: with 40 cells a loss of 20 points in one moves it by half a point, and
gains elsewhere hide it. So every cell has to exclude a loss by itself, one-sided at 95 %, under any margin: of
`EXCLUDED_CELL_LOSS`, and where cells are too small for that, of the least loss that unharmed ones exclude. No correction
over cells is needed, because every cell has to. Which loss it is follows from the numbers of items and from the churn of the
other tasks (`estimate_churn_of_others`), never from what a task lost.

Source: non-inferiority with a discordant pair's variance, as in `crossed`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import Z, find_least, t_quantile

CHURN_SHARE, MAX_CHURN_SHARE = 0.2, 0.5
"""Share of items whose answer changes for no reason, and the most that is believed of a few items."""
MEAN_LOSS_MARGIN = 0.05
"""Mean loss over what is protected that a gate must exclude where nobody names another, a share."""
MIN_UNHARMED_PASS_SHARE = 0.875
"""Share of unharmed checkpoints that must be shown to have lost less than the margin: about nine of ten, as 800 items show
it for 5 points."""
MAX_ITEMS_PER_CELL = 1_000_000
"""Items of a cell beyond which none are proposed."""
EXCLUDED_CELL_LOSS = 0.2
"""Loss of one cell that must be excluded, a share."""
CELL_INTERVAL_LEVEL = 0.9
"""Two-sided level of the interval whose lower end excludes it: 5 % on one side."""
Z_CELL = NormalDist().inv_cdf(0.95)
"""Normal quantile of that one-sided 5 %; its square is added to a cell's squared changes, so that a cell in which no item
changed has a standard error above 0, too."""
MIN_CHURN_SHARE = 0.08
"""Least share of items that is taken to change for no reason: few items do not show that fewer do."""
LOSS_STEP = 0.05
"""Losses are spoken of in steps of 5 points."""


def unharmed_pass_share(items_per_cell: Sequence[int], margin: float, churn: float = CHURN_SHARE) -> float:
    """Share of unharmed checkpoints whose mean loss is shown to be less than `margin`.

    Args:
        items_per_cell: items of each cell; cells count the same.
        margin: loss, a share.
        churn: share of the items that change.
    """
    judged_sizes = [size for size in items_per_cell if size > 1]
    if not judged_sizes:
        return 0.0
    total, cells = sum(judged_sizes), len(judged_sizes)
    variances_by_cell = [(churn * n + Z * Z * n / total) / (n - 1) / n / cells**2 for n in judged_sizes]
    df = sum(variances_by_cell) ** 2 / sum(
        variance**2 / (n - 1) for variance, n in zip(variances_by_cell, judged_sizes, strict=True)
    )
    half = t_quantile(df) * math.sqrt(sum(variances_by_cell))
    spread = math.sqrt(sum(churn / n for n in judged_sizes)) / cells
    return NormalDist().cdf((margin - half) / spread)


def churn_for_error(error: float, items_per_cell: Sequence[int]) -> float:
    """Share of items that change, of which `unharmed_pass_share` would assume such a standard error of the mean; 0 for less
    than any.

    Args:
        error: standard error of the mean change over cells that count the same.
        items_per_cell: items of each cell.
    """
    judged_sizes = [size for size in items_per_cell if size > 1]
    if not judged_sizes:
        return 0.0
    total, cells = sum(judged_sizes), len(judged_sizes)
    fixed = sum(Z * Z * n / total / (n - 1) / n / cells**2 for n in judged_sizes)
    return max(error**2 - fixed, 0.0) / sum(1 / (n - 1) / cells**2 for n in judged_sizes)


def items_to_exclude(margin: float, cells: int, churn: float = CHURN_SHARE) -> int:
    """Items per cell that exclude a mean loss of `margin` over so many cells in `MIN_UNHARMED_PASS_SHARE` of cases."""

    def passes(items: int) -> bool:
        return unharmed_pass_share([items] * cells, margin, churn) >= MIN_UNHARMED_PASS_SHARE

    return find_least(passes, MIN_ITEMS, MAX_ITEMS_PER_CELL) or MAX_ITEMS_PER_CELL


def estimate_churn_of_others(changes: NDArray[np.float64], task: NDArray[np.int64]) -> NDArray[np.float64]:
    """Estimate for each task the share of the other tasks' items that change for no reason: twice the smaller of what rose
    and what fell. With its own items, a loss beside gains elsewhere would look like churn, and excuse itself.

    Args:
        changes: of each item, after minus before; a change of less than 1 counts with its square.
        task: number of each item's task, from 0.

    Returns:
        Shares, shape (tasks,); `CHURN_SHARE` for a task without others.
    """
    items = len(changes) - np.bincount(task)
    squares = (np.clip(sign * changes, 0, None) ** 2 for sign in (1, -1))
    rose, fell = (values.sum() - np.bincount(task, values) for values in squares)
    return np.where(items > 0, np.round(2 * np.minimum(rose, fell) / np.maximum(items, 1), 2), CHURN_SHARE)


def excludes_cell_loss(estimate: Estimate, limit: float, confidence: float = CELL_INTERVAL_LEVEL) -> bool:
    """Whether a cell's change excludes a loss of this size, a share."""
    return estimate.value - t_quantile(estimate.df, confidence) * estimate.error > -limit


@functools.cache
def cell_loss_limits(
    sizes: tuple[int, ...], margin: float = MEAN_LOSS_MARGIN, churn: float = CHURN_SHARE
) -> dict[int, float]:
    """Items of a cell -> loss that it has to exclude by itself, a share: the least, in steps of 5 points from
    `EXCLUDED_CELL_LOSS`, that all of so many unharmed cells exclude in about nine of ten cases. Where that is more, at least
    `CHURN_SHARE` is taken as the churn: of cells so small a low one is known too badly.

    Args:
        sizes: items of each cell, at least two each; sizes that can exclude none are left out.
        margin: mean loss that is to be excluded, a share; no cell has to exclude less.
        churn: share of items that change, as many up as down, where nothing is lost.
    """
    steps = range(round(EXCLUDED_CELL_LOSS / LOSS_STEP), round(1 / LOSS_STEP))
    limits = dict[int, float]()
    for size in set(sizes):
        needed = _excluded_by_unharmed(size, len(sizes), max(churn, MIN_CHURN_SHARE))
        if needed > EXCLUDED_CELL_LOSS:
            needed = _excluded_by_unharmed(size, len(sizes), max(churn, CHURN_SHARE))
        least = next((step * LOSS_STEP for step in steps if step * LOSS_STEP >= needed), None)
        if least is not None:
            limits[size] = max(round(least, 2), margin)
    return limits


def _excluded_by_unharmed(items: int, cells: int, churn: float) -> float:
    """Loss that each of so many unharmed cells excludes, all of them in `MIN_UNHARMED_PASS_SHARE` of cases."""
    error = math.sqrt((churn + Z_CELL * Z_CELL / items) / (items - 1))
    z_all_cells = NormalDist().inv_cdf(MIN_UNHARMED_PASS_SHARE ** (1 / cells))
    return t_quantile(items - 1.0, CELL_INTERVAL_LEVEL) * error + z_all_cells * math.sqrt(churn / items)


@functools.cache
def items_excluding_cell_loss(cells: int, churn: float) -> int:
    """Items with which each of so many unharmed cells excludes `EXCLUDED_CELL_LOSS`, all of them in
    `MIN_UNHARMED_PASS_SHARE` of cases.

    Args:
        cells: at least one.
        churn: share of items that change, as many up as down.
    """
    return next(
        items for items in range(2, MAX_ITEMS_PER_CELL) if _excluded_by_unharmed(items, cells, churn) <= EXCLUDED_CELL_LOSS
    )
