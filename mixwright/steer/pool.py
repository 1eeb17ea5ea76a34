"""Pool of the examples a run may draw, from a corpus or from the columns of a dataset."""

from __future__ import annotations

import functools
import hashlib
import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mixwright.corpus.cells import check_keys
from mixwright.corpus.levels import bin_levels
from mixwright.errors import InputError
from mixwright.final_answer import final_answer
from mixwright.records import Cell, cell_key

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """The training examples that a run may draw, as arrays."""

    ids: tuple[str, ...]
    """Example ids, unique; position = index drawn."""
    tasks: tuple[str, ...]
    """Task names, sorted."""
    task_of: np.ndarray
    """int32 of shape (examples,): index into `tasks`."""
    cells: tuple[Cell, ...]
    """Cells, sorted by key."""
    cell_of: np.ndarray
    """int32 of shape (examples,): index into `cells`."""
    golds: np.ndarray | None = None
    """int32 of shape (examples,): gold answer as `answer_key`, 0 where there is none; None: nobody knows."""
    content_digest: str = ""
    """Of what the rows hold, where it is known: a state is taken over for the same rows only."""

    @functools.cached_property
    def task_of_cell(self) -> np.ndarray:
        """Index into `tasks` of each cell."""
        return np.array([self.tasks.index(cell.task) for cell in self.cells])

    @functools.cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids)}

    def find(self, names: Sequence[str]) -> np.ndarray:
        """Numbers of the examples of these ids, int64; -1 for what is no id of the pool."""
        return np.array([self._row_of.get(name, -1) for name in names], dtype=np.int64)


def make_pool(
    ids: Sequence[str],
    tasks: Sequence[str],
    levels: Sequence[float | None] | None = None,
    answers: Sequence[Any] | None = None,
    *,
    cells: Sequence[Cell] = (),
) -> Pool:
    """A pool from columns; the position in the columns is the index drawn.

    Args:
        ids: example ids, unique.
        tasks: task name per example.
        levels: level per example; None where there is none.
        answers: gold answer per example, None where unknown; tells in the run how much answers depend on their prompts.
        cells: cells with known chance level (for instance `corpus.cells()`).

    Raises:
        InputError: no examples, columns of different lengths, duplicate ids, or a level not finite.
    """
    size = len(ids)
    levels, answers = ([None] * size if column is None else column for column in (levels, answers))
    lengths = {size, len(tasks), len(levels), len(answers)}
    if size == 0 or len(lengths) > 1:
        raise InputError("columns of one length, at least 1", f"lengths {sorted(lengths)}", "Pass one value per example.")
    if len(set(ids)) < size:
        ((name, _),) = Counter(ids).most_common(1)
        remedy = "Make them unique, or ignore the column: columns={'id': ''}."
        raise InputError("unique example ids", f"{name!r} more than once", remedy)
    level_of = [None if math.isnan(level) else level for level in _levels(ids, levels, tasks).tolist()]
    names, task_of = _number(tasks, sorted(set(tasks)))
    all_task_levels = list(zip(tasks, level_of, strict=True))
    task_levels, cell_of = _number(all_task_levels, sorted(set(all_task_levels), key=lambda cell: cell_key(*cell)))
    check_keys(task_levels)
    golds, counts = _golds(answers), np.bincount(cell_of)
    known_cells = {cell.key: cell for cell in cells}
    pool_cells = []
    for number, (task, level) in enumerate(task_levels):
        cell = known_cells.get(cell_key(task, level)) or Cell(
            task, level, 0, *_success_of_constant_answer(golds, cell_of == number)
        )
        pool_cells.append(replace(cell, task=task, level=level, count=int(counts[number])))
    return Pool(tuple(ids), tuple(names), task_of, tuple(pool_cells), cell_of, golds)


def _number(values: Sequence[T], distinct: list[T]) -> tuple[list[T], np.ndarray]:
    """Return the distinct values, and the place of each value among them, int32."""
    place_of = {value: place for place, value in enumerate(distinct)}
    return distinct, np.array([place_of[value] for value in values], dtype=np.int32)


def _levels(ids: Sequence[str], levels: Sequence[float | None], tasks: Sequence[str]) -> np.ndarray:
    """Levels as numbers, NaN where there is none, many-valued ones binned with a warning. Raises as `make_pool` does."""
    level_numbers = np.array(levels, dtype=float)
    for index in np.flatnonzero(~np.isfinite(level_numbers)).tolist():
        if levels[index] is not None:
            raise InputError(f"a finite level of example {ids[index]!r}", str(levels[index]), "Correct it, or leave it out.")
    level_numbers, notes = bin_levels(np.asarray(tasks, dtype=object), level_numbers)
    for note in notes:
        logging.getLogger("mixwright").warning("task %s", note)
    return level_numbers


def _golds(answers: Sequence[Any]) -> np.ndarray | None:
    """Gold answers as numbers; None when there are none."""
    key_by_text: dict[str, int] = {}
    gold_keys = np.zeros(len(answers), dtype=np.int32)
    for row, answer in enumerate(answers):
        if answer is not None:
            text = final_answer(str(answer))
            gold_keys[row] = key_by_text.get(text) or key_by_text.setdefault(text, answer_key(text))
    return gold_keys if gold_keys.any() else None


def _success_of_constant_answer(golds: np.ndarray | None, of_cell: np.ndarray) -> tuple[float, str]:
    """How often the commonest gold answer of the *other* rows of a cell is right: (m - 1) / (n - 1) for m of n rows."""
    known_golds = golds[of_cell & (golds > 0)] if golds is not None else np.zeros(0)
    if len(known_golds) < 2:
        return 0.0, ""
    return float((np.unique(known_golds, return_counts=True)[1].max() - 1) / (len(known_golds) - 1)), "constant answer"


def answer_key(text: str) -> int:
    """An answer as a 31-bit number, which any two of a window share by chance in 1 of 60,000 cases; 0 is no answer."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).digest(), "big") >> 1 or 1


def corpus_pool(corpus: Corpus) -> Pool:
    """The pool of a corpus's rows, with the chance levels its graders know. Raises InputError as `make_pool` does."""
    columns = corpus.table.select(["id", "task", "level", "answer"]).to_pydict()
    ids, tasks, levels, answers = (columns[name] for name in ("id", "task", "level", "answer"))
    return make_pool(ids, tasks, levels, answers, cells=corpus.cells())
