"""Size of a loss that some items can exclude: how often an unharmed checkpoint would be shown to have lost less.

A checkpoint that lost nothing still answers some items otherwise. With a share `CHURN_SHARE` of the items changing, as many
up as down, the lower end of the mean change lies above -margin in a share of cases that needs no data, so that it can be
told before anything is measured. The error is that of `crossed`, each cell counted once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from mixwright.estimates.cell_states import MIN_ITEMS
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
