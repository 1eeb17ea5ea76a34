"""Bins of many-valued levels: a level of its own for every row has no cell that could be judged."""

from __future__ import annotations

import numpy as np

MAX_LEVELS = 12
"""Different levels of a task up to which each is a cell."""
MAX_BINS = 8
"""Bins that more are put into, at most."""
MIN_ROWS_PER_BIN = 20
"""Rows of a bin, about."""


def bin_levels(tasks: np.ndarray, levels: np.ndarray, counted: np.ndarray | None = None) -> tuple[np.ndarray, list[str]]:
    """Levels with those of tasks that have more than `MAX_LEVELS` binned by quantile, and one sentence per such task.

    A bin is named by the median level of its rows; rows outside the counted ones' range go to the first or last bin.

    Args:
        tasks: of each row, names or numbers.
        levels: of each row, float; NaN where there is none.
        counted: which rows the quantiles are of (the training split); None for all.
    """
    has_level = ~np.isnan(levels)
    counted = has_level if counted is None or not (counted & has_level).any() else counted & has_level
    binned, notes = levels.copy(), []
    has_many_levels = len(np.unique(levels[has_level])) > MAX_LEVELS  # else no task can have more
    for task in np.unique(tasks[counted]) if has_many_levels else ():
        of_task = has_level & (tasks == task)
        values = levels[of_task & counted]
        distinct_count = len(np.unique(values))
        if distinct_count <= MAX_LEVELS:
            continue
        count = int(min(MAX_BINS, max(1, len(values) // MIN_ROWS_PER_BIN)))
        edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1], method="higher"))
        bin_index = np.searchsorted(edges, levels[of_task], side="right")
        bin_of_value = np.searchsorted(edges, values, side="right")
        used_bins = np.unique(bin_of_value)
        medians = np.array([np.quantile(values[bin_of_value == bin], 0.5, method="lower") for bin in used_bins])
        nearest = [np.abs(used_bins - bin).argmin() for bin in range(len(edges) + 1)]
        binned[of_task] = medians[nearest][bin_index]
        notes.append(
            f"{task}: {distinct_count} different levels were grouped into {len(used_bins)} bins of about equal size by "
            "quantile, each named by its median level"
        )
    return binned if notes else levels, notes
