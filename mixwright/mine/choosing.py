"""Rows that a miner may choose, with their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.errors import InputError

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


@dataclass(frozen=True)
class TrainRows:
    """Training rows of a corpus, in its order."""

    ids: tuple[str, ...]
    """Of the rows."""
    tasks: np.ndarray
    """Name of the task of each row, shape (rows,)."""
    corpus_indices: np.ndarray
    """Place of each row in the corpus, int64 of shape (rows,)."""
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Values of each row, shape (rows,) or (rows, dimensions), by name."""
    made_from: Mapping[str, Any] = field(default_factory=dict)
    """Corpus, model and settings that the values come from, as JSON."""

    def by_task(self) -> dict[str, np.ndarray]:
        """Places among these rows, per task."""
        return {str(task): np.flatnonzero(self.tasks == task) for task in np.unique(self.tasks)}


def train_rows(corpus: Corpus, base: str = "") -> TrainRows:
    """Return the training rows; `base` is the checkpoint that a miner reads. Raises InputError without any."""
    table = corpus.table.select(["id", "task", "split"]).to_pydict()
    places = [number for number, split in enumerate(table["split"]) if split == "train"]
    if not places:
        raise InputError("training rows", "none", "Name some under corpus.train.")
    tasks = np.array([table["task"][number] for number in places], dtype=object).astype(str)
    files = sorted(Path(base).iterdir()) if base and Path(base).is_dir() else []
    model = [base, *([path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files)]
    made_from = {"corpus": corpus.digest(), "model": model}
    return TrainRows(tuple(table["id"][number] for number in places), tasks, np.array(places), made_from=made_from)


def check_row_count(count: int, needed_count: int) -> None:
    """Raises InputError where there are fewer rows than short trainings and the rows that they are read on take."""
    if count < needed_count:
        raise InputError(
            f"{needed_count} training rows or more, to hold some back",
            str(count),
            "Keep all rows, because there are so few.",
        )
