"""Items of a comparison in columns: an array per fact, no Python object per item.

Items are sorted by task, level and id, so the items of a cell or a task are a slice, and equal sets have equal order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

pc: Any = pyarrow.compute
TaskLevel = tuple[str, float | None]
"""(task, level): which cell; `cell_key` makes a name of it."""
Item = tuple[str, float | None, str]
"""(task, level, example id)."""
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


def cell_order(cell: TaskLevel) -> tuple[str, float]:
    """Sorts cells by task and level, those without a level first."""
    return cell[0], -math.inf if cell[1] is None else cell[1]


@dataclass(frozen=True, eq=False)
class Items:
    """A sorted set of items."""

    cells: tuple[TaskLevel, ...] = ()
    """Their cells, sorted; each has items."""
    counts: Places = field(default_factory=lambda: np.zeros(0, np.int64))
    """Items of each cell."""
    ids: pa.StringArray = field(default_factory=lambda: pa.array([], pa.string()))
    """Id of each item, sorted within its cell."""

    @classmethod
    def sort(cls, cells: Sequence[TaskLevel], cell: Places, ids: pa.StringArray) -> tuple[Items, Places]:
        """Sort items, and return them with the place that each had.

        Args:
            cells: that items can be of.
            cell: number of each item's cell.
            ids: of the items.
        """
        rank = {cell: place for place, cell in enumerate(sorted(set(cells), key=cell_order))}
        own = np.array([rank[cell] for cell in cells], np.int64)[cell]
        keys = [("cell", "ascending"), ("id", "ascending")]
        places = pc.sort_indices(pa.table({"cell": own, "id": ids}), sort_keys=keys).to_numpy().astype(np.int64)
        counts = np.bincount(own, minlength=len(rank))
        known = tuple(cell for cell, count in zip(rank, counts.tolist(), strict=True) if count)
        return cls(known, counts[counts > 0], ids.take(pa.array(places))), places

    @classmethod
    def of(cls, items: Iterable[Item]) -> Items:
        """Make the set of single items."""
        rows = list(dict.fromkeys(items))
        number_by_cell: dict[TaskLevel, int] = {}
        cell = np.array([number_by_cell.setdefault(row[:2], len(number_by_cell)) for row in rows], np.int64)
        return cls.sort(list(number_by_cell), cell, pa.array([row[2] for row in rows], pa.string()))[0]

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self.ids)

    def __iter__(self) -> Iterator[Item]:
        """Yield each item."""
        for (task, level), own in zip(self.cells, self.split(), strict=True):
            yield from ((task, level, name) for name in own.ids.to_pylist())

    @cached_property
    def starts(self) -> Places:
        """Place of the first item of each cell."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def cell(self) -> Places:
        """Number of each item's cell."""
        return np.repeat(np.arange(len(self.cells)), self.counts)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Their tasks, sorted."""
        return tuple(dict.fromkeys(task for task, _ in self.cells))

    @cached_property
    def _task_of_cell(self) -> Places:
        number = {task: place for place, task in enumerate(self.tasks)}
        return np.array([number[task] for task, _ in self.cells], np.int64)

    @property
    def task(self) -> Places:
        """Number of each item's task."""
        return np.repeat(self._task_of_cell, self.counts)

    @cached_property
    def number_by_cell(self) -> Mapping[TaskLevel, int]:
        """Cell -> its number."""
        return {cell: number for number, cell in enumerate(self.cells)}

    def take(self, mask: Mask) -> Items:
        """Return the items of a mask."""
        if mask.all():
            return self
        counts = np.bincount(self.cell[mask], minlength=len(self.cells))
        cells = tuple(cell for cell, count in zip(self.cells, counts.tolist(), strict=True) if count)
        return Items(cells, counts[counts > 0], self.ids.filter(pa.array(mask)))

    def slice_cells(self, first: int, stop: int) -> Items:
        """Return the items of neighbouring cells, `stop` not among them."""
        counts, start = self.counts[first:stop], int(self.starts[first])
        return Items(self.cells[first:stop], counts, self.ids.slice(start, int(counts.sum())))

    def split(self) -> list[Items]:
        """Return the items of each cell."""
        return [self.slice_cells(number, number + 1) for number in range(len(self.cells))]

    def places_of(self, others: Items) -> Places:
        """Shape (others,): place of each of them here; -1 where it is none of these."""
        if self is others or (self.cells == others.cells and self.ids.equals(others.ids)):
            return np.arange(len(self))
        found = np.full(len(others), -1, np.int64)
        bounds = zip(others.cells, others.starts.tolist(), others.counts.tolist(), strict=True)
        for cell, start, count in bounds:
            if (number := self.number_by_cell.get(cell)) is None:
                continue
            first, ids = int(self.starts[number]), others.ids.slice(start, count)
            own = self.ids.slice(first, int(self.counts[number]))
            if own.equals(ids):
                found[start : start + count] = first + np.arange(count)
            else:
                inside = pc.fill_null(pc.index_in(ids, value_set=own), -1).to_numpy()
                found[start : start + count] = np.where(inside < 0, -1, first + inside)
        return found

    def are_in(self, others: Items) -> Mask:
        """Shape (items,): which of these are among others."""
        return others.places_of(self) >= 0

    def common(self, others: Items) -> Items:
        """Return those that are among others, too."""
        return self.take(self.are_in(others))

    def without(self, others: Items) -> Items:
        """Return those that are not among others."""
        return self.take(~self.are_in(others))

    def joined(self, others: Items) -> Items:
        """Return these and others."""
        new = others.without(self)
        cell = np.concatenate([self.cell, len(self.cells) + new.cell])
        return Items.sort((*self.cells, *new.cells), cell, pa.concat_arrays([self.ids, new.ids]))[0]

    def of_cells(self, cells: Collection[TaskLevel]) -> Items:
        """Return those of these cells."""
        if len(cells) == 1:
            number = self.number_by_cell.get(next(iter(cells)), -1)
            return self.slice_cells(number, number + 1) if number >= 0 else Items()
        return self.take(np.repeat(np.array([cell in cells for cell in self.cells], np.bool_), self.counts))

    def of_tasks(self, names: Collection[str]) -> Items:
        """Return those of these tasks."""
        return self.of_cells({cell for cell in self.cells if cell[0] in names})

    def by_task(self) -> dict[str, Items]:
        """Task -> its items."""
        found, first = dict[str, Items](), 0
        for task, cells in itertools.groupby(self.cells, key=lambda cell: cell[0]):
            stop = first + len(list(cells))
            found[task], first = self.slice_cells(first, stop), stop
        return found

    def ending(self, text: str) -> Items:
        """Return those whose id ends with a text."""
        return self.take(pc.ends_with(self.ids, text).to_numpy(zero_copy_only=False))
