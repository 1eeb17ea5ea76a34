"""Number of items that are measured: the usual one, the fewest that are judged, and what fits under a total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.config import MeasureConfig
from mixwright.estimates.cell_states import MIN_ITEMS

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

USUAL_ITEMS, MIN_USUAL_CELL_ITEMS = 200, 32
"""Items that are measured over all cells, and of each cell at least, where nobody asked for a number."""


def usual_items(corpus: Corpus) -> int:
    """Items per cell where nobody asked for a number."""
    return max(MIN_USUAL_CELL_ITEMS, math.ceil(USUAL_ITEMS / len(corpus.measured().cells())))


def count_items(counts: Sequence[int], most_per_cell: int) -> int:
    """Items over all cells of these counts, at most `most_per_cell` of one cell."""
    return sum(min(count, most_per_cell) for count in counts)


def most_items_within(counts: Sequence[int], items: float) -> int:
    """The largest number per cell with which at most so many items are measured over all cells; 0 where one is too many."""
    low, high = 0, max(counts, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_items(counts, middle) <= items else (low, middle - 1)
    return low


def least_items(counts: Sequence[int]) -> int:
    """Items per cell from which a cell is judged; fewer only where no cell has so many."""
    return min(MIN_ITEMS, max(counts, default=0))


def training_probes(config: MeasureConfig) -> tuple[str, ...]:
    """Probes that train copies of the model: what they cost, and need, does not follow from a few items."""
    return tuple(name for name in config.probes if catalog.load("probes", name).TRAINS)
