"""Adjusted change of success: what items that were only read say about those that were answered.

A change of success is uncertain because few items were answered. Where a covariate that moves with success (the change of
the probability of the gold answer) was read on more items, the difference of its mean between those answered and all that
were read says how lucky the choice of items was, and is taken off, times a regression coefficient. The estimand stays the
same (CUPED, Deng et al., 2013). The coefficient used for an item is fitted without it, in folds, so that no item adjusts
itself. With r what the regression leaves of a difference d, n items answered and N read in a cell, the variance of its mean
is that of r times 1 / n - 1 / N, and that of d times 1 / N. Where nothing more was read, it is the plain change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_of, items_variance, squares_for
from mixwright.estimates.items import Items
from mixwright.estimates.outcome import ItemScores

FOLDS = 10
"""Parts of the answered items; the coefficient of each is fitted on the others."""
MIN_ANSWERED_ITEMS = 25
"""Answered items below which nothing is adjusted: a coefficient would be noise."""
GOLD_MEASUREMENT = "gold"
Array = NDArray[np.float64]


def estimate_adjusted(
    difference: Array, covariate: Array, cells: NDArray[np.int64], read_covariate: Array, read_cells: NDArray[np.int64]
) -> Estimate | None:
    """The mean change over cells that count by their answered items; None where too few were answered.

    Args:
        difference: of each answered item, after minus before, 0 or 1 each.
        covariate: of the same items.
        cells: of the same items, whole numbers.
        read_covariate: covariate of items that were read and not answered.
        read_cells: cells of those; items of cells in which none was answered are left out.
    """
    items = len(difference)
    if items < MIN_ANSWERED_ITEMS:
        return None
    groups, cell_index = np.unique(cells, return_inverse=True)
    counts = np.bincount(cell_index).astype(float)
    is_known_cell = np.isin(read_cells, groups)
    read_cell_index = np.searchsorted(groups, read_cells[is_known_cell])
    read_counts = counts + np.bincount(read_cell_index, minlength=len(groups))
    read_mean = (
        np.bincount(cell_index, covariate) + np.bincount(read_cell_index, read_covariate[is_known_cell], len(groups))
    ) / read_counts
    covariate_in_cell, difference_in_cell = (
        values - (np.bincount(cell_index, values) / counts)[cell_index] for values in (covariate, difference)
    )
    fold = np.arange(items) % FOLDS
    products, squares = (
        np.bincount(fold, covariate_in_cell * difference_in_cell, FOLDS),
        np.bincount(fold, covariate_in_cell * covariate_in_cell, FOLDS),
    )
    other_folds_squares = (
        squares.sum() - squares
    )  # of the other folds; the coefficient is 0 where the covariate does not differ in them
    slopes = np.where(
        other_folds_squares > 1e-12, (products.sum() - products) / np.maximum(other_folds_squares, 1e-12), 0.0
    )[fold]
    share = np.full(items, 1 / items)
    value = float(share @ (difference - slopes * (covariate - read_mean[cell_index])))
    answered = (counts / read_counts)[cell_index]
    added_squares = squares_for(difference)
    adjusted_variance, adjusted_df = items_variance(
        difference - slopes * covariate_in_cell, cell_index, share * np.sqrt(1 - answered), added_squares
    )
    plain_variance, plain_df = items_variance(difference, cell_index, share * np.sqrt(answered), added_squares)
    df_terms = adjusted_variance**2 / adjusted_df + plain_variance**2 / plain_df
    df = (adjusted_variance + plain_variance) ** 2 / df_terms if df_terms > 0 else items - 1.0
    return estimate_of(value, adjusted_variance + plain_variance, df, 1, items)


def adjusted_change(before: ItemScores, after: ItemScores, items: Items) -> Estimate | None:
    """Of greedy success over these items, each counted once, by the change of the probability of the gold answer.

    None where that was not read of some of them, or of nothing else in their cells, which leaves nothing to learn.

    Args:
        before: one checkpoint.
        after: the other.
        items: that both answered.
    """
    read = before.having(GOLD_MEASUREMENT).common(after.having(GOLD_MEASUREMENT))
    more = read.of_cells(set(items.cells)).without(items)
    if not len(more) or not items.are_in(read).all():
        return None
    number = {cell: place for place, cell in enumerate(sorted(items.cells, key=str))}

    def moved(name: str, own: Items) -> Array:
        return after.column(name, own) - before.column(name, own)

    cells, more_cells = (np.array([number[cell] for cell in own.cells], np.int64)[own.cell] for own in (items, more))
    return estimate_adjusted(
        moved("greedy", items), moved(GOLD_MEASUREMENT, items), cells, moved(GOLD_MEASUREMENT, more), more_cells
    )
