"""Items and samples that fit into a time: from what one completion takes, before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.config import MeasureConfig
from mixwright.estimates.cell_states import MIN_ITEMS

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

USUAL_ITEMS, MIN_USUAL_CELL_ITEMS = 200, 32
"""Items that are measured over all cells, and of each cell at least, where nobody asked for a number."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    items: int
    """Items per cell, as far as a cell has so many."""
    samples: int
    """Sampled completions per item, beside the greedy one."""


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


@dataclass(frozen=True, slots=True)
class ItemCost:
    """What measuring one item takes, all models together."""

    greedy_seconds: float
    """Seconds of its greedy completion, and of what is read beside it."""
    sample_seconds: float
    """Seconds that each sampled completion adds: at temperature 1 they are often longer than the greedy one."""

    def item_seconds(self, samples: int) -> float:
        """Seconds of one item with so many samples."""
        return self.greedy_seconds + samples * self.sample_seconds

    def scaled(self, factor: float) -> ItemCost:
        """The same, where everything takes so many times as long."""
        return ItemCost(self.greedy_seconds * factor, self.sample_seconds * factor)


def fit_sizes(
    counts: Sequence[int], seconds: float, cost: ItemCost, *, wanted_sizes: Sizes, fewest_samples: int = 0
) -> Sizes | None:
    """The sizes that a time allows, or None where it is too short for any cell to be judged.

    Samples are fewer before there are fewer items than are wanted; with them gone, items are fewer. Where time is left,
    items are more than are wanted.

    Args:
        counts: items that each cell has.
        seconds: that are left.
        cost: of an item.
        wanted_sizes: sizes without a limit of time.
        fewest_samples: where a sampled decoding is judged, which needs them.
    """
    samples, items = wanted_sizes.samples, count_items(counts, wanted_sizes.items)
    while samples > fewest_samples and items * cost.item_seconds(samples) > seconds:
        samples -= 1
    most_items = most_items_within(counts, seconds / max(cost.item_seconds(samples), 1e-12))
    return Sizes(most_items, samples) if most_items >= least_items(counts) else None


def training_probes(config: MeasureConfig) -> tuple[str, ...]:
    """Probes that train copies of the model: what they cost, and need, does not follow from a few items."""
    return tuple(name for name in config.probes if catalog.load("probes", name).TRAINS)
