"""Rows that a miner may choose, with their places in the scan, and rows repeated by weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.scan.table import Scan


COPIES_PER_ROW = 4
"""Rows that rows of unequal weights are resampled to, per row, so that small weights count."""


@dataclass(frozen=True)
class TrainRows:
    """Training rows of a corpus that the scan holds, in the order of the corpus."""

    ids: tuple[str, ...]
    """Of the rows."""
    tasks: np.ndarray
    """Name of the task of each row, shape (rows,)."""
    corpus_indices: np.ndarray
    """Place of each row in the corpus, int64 of shape (rows,)."""
    scan_indices: np.ndarray
    """Place of each row in the scan, int64 of shape (rows,)."""

    def column(self, scan: Scan, name: str) -> np.ndarray:
        """Values of these rows."""
        return np.asarray(scan.column(name))[self.scan_indices]

    def by_task(self) -> dict[str, np.ndarray]:
        """Places among these rows, per task."""
        return {str(task): np.flatnonzero(self.tasks == task) for task in np.unique(self.tasks)}


def train_rows(corpus: Corpus, scan: Scan) -> TrainRows:
    """The rows that may be chosen. Raises InputError where the scan holds no training row of the corpus."""
    scan_index_by_id = {name: number for number, name in enumerate(scan.ids)}
    table = corpus.table.select(["id", "task", "split"]).to_pydict()
    numbers = [
        number
        for number, (name, split) in enumerate(zip(table["id"], table["split"], strict=True))
        if split == "train" and name in scan_index_by_id
    ]
    if not numbers:
        raise InputError("training rows that were scanned", "none", "Run `mixwright scan` on this corpus.")
    ids = tuple(table["id"][number] for number in numbers)
    tasks = np.array([table["task"][number] for number in numbers], dtype=object).astype(str)
    return TrainRows(ids, tasks, np.array(numbers), np.array([scan_index_by_id[name] for name in ids]))


def check_row_count(count: int, needed_count: int) -> None:
    """Raises InputError where there are fewer rows than short trainings and the rows that they are read on take."""
    if count < needed_count:
        raise InputError(
            f"{needed_count} training rows or more, to hold some back",
            str(count),
            "Keep all rows, because there are so few.",
        )


def count_to_keep(count: int, keep: float) -> int:
    """How many of `count` rows a share is: one at least."""
    return min(max(round(keep * count), 1), count)


def draw_few_rows(rows: Sequence[Example], limit: int, rng: np.random.Generator) -> list[Example]:
    """At most so many rows, drawn at random, in the order of the corpus."""
    return [rows[at] for at in np.sort(rng.permutation(len(rows))[:limit]).tolist()]


def resample_by_weight(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Places of rows of one task, each as often as its weight says: `COPIES_PER_ROW` per row on average, in order.

    Systematic resampling: a share w of n draws gives floor or ceil of w n copies.
    """
    ends, count = np.cumsum(weights) / weights.sum(), COPIES_PER_ROW * len(weights)
    ticks = (np.arange(count) + rng.random()) / count
    return np.minimum(np.searchsorted(ends, ticks), len(weights) - 1)
