"""Pool of the examples a run may draw, from a corpus or from the columns of a dataset."""

from __future__ import annotations

import functools
import hashlib
import logging
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.corpus.cells import check_keys
from mixwright.corpus.levels import bin_levels
from mixwright.errors import InputError
from mixwright.final_answer import final_answer
from mixwright.records import Cell

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


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
) -> Pool:
    """A pool from columns; the position in the columns is the index drawn.

    Args:
        ids: example ids, unique.
        tasks: task name per example.
        levels: level per example; None where there is none.
        answers: gold answer per example, None where unknown; tells in the run how much answers depend on their prompts.

    Raises:
        InputError: no examples, columns of different lengths, duplicate ids, or a level that is no finite number.
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
    task_levels = list(zip(tasks, level_of, strict=True))
    names, counts = sorted(set(tasks)), Counter(task_levels)
    check_keys(counts)
    cells = sorted((Cell(task, level, count) for (task, level), count in counts.items()), key=lambda cell: cell.key)
    cell_of = _places(task_levels, [(cell.task, cell.level) for cell in cells])
    return Pool(tuple(ids), tuple(names), _places(tasks, names), tuple(cells), cell_of, _golds(answers))


def _places(values: Sequence[Hashable], distinct: Sequence[Hashable]) -> np.ndarray:
    """Return the place of each value among the distinct ones, int32."""
    place_of = {value: place for place, value in enumerate(distinct)}
    return np.array([place_of[value] for value in values], dtype=np.int32)


def _levels(ids: Sequence[str], levels: Sequence[float | None], tasks: Sequence[str]) -> np.ndarray:
    """Levels as numbers, NaN where there is none, many-valued ones binned with a warning. Raises as `make_pool` does."""
    try:
        level_numbers = np.array(levels, dtype=float)
    except (TypeError, ValueError) as error:
        remedy = "Make them numbers, or leave them out; a trainer reads others by SteeringConfig(columns={'level': ...})."
        raise InputError("numbers in the level column", str(error)[:120], remedy) from None
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


def answer_key(text: str) -> int:
    """An answer as a 31-bit number, which any two of a window share by chance in 1 of 60,000 cases; 0 is no answer."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).digest(), "big") >> 1 or 1


def corpus_pool(corpus: Corpus) -> Pool:
    """The pool of a corpus's rows. Raises InputError as `make_pool` does."""
    names = ("id", "task", "level", "answer")
    return make_pool(*(corpus.table[name].to_pylist() for name in names))
