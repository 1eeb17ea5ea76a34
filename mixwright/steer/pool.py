"""Pool of the examples a run may draw, from a corpus or from the columns of a dataset."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.corpus.cells import check_keys
from mixwright.corpus.levels import bin_levels
from mixwright.errors import InputError
from mixwright.final_answer import final_answer
from mixwright.graders.choice import option_texts, position
from mixwright.records import Cell, cell_key
from mixwright.steer.answers import answer_key
from mixwright.steer.ids import Ids

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


@dataclass(frozen=True)
class Pool:
    """The training examples that a run may draw, as arrays."""

    ids: tuple[str, ...] | Ids
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
    """int32 of shape (examples,): gold answer as `steer.answers.answer_key`, 0 where there is none; None: nobody knows."""
    options: Sequence[Any] | None = None
    """The options of each example, where it has some: answers are compared by the place of the option."""
    content: str = ""
    """Digest of what the rows hold, where it is known: a state is taken over for the same rows only."""


def make_pool(
    ids: Sequence[str],
    tasks: Sequence[str],
    levels: Sequence[float | None] | None = None,
    answers: Sequence[Any] | None = None,
    options: Sequence[Any] | None = None,
    *,
    cells: Sequence[Cell] = (),
) -> Pool:
    """A pool from columns; the position in the columns is the index drawn.

    Args:
        ids: example ids, unique.
        tasks: task name per example.
        levels: level per example; None where there is none.
        answers: gold answer per example, None where unknown; tells in the run how much answers depend on their prompts.
        options: options per example, where rows have some.
        cells: cells with known chance level (for instance `corpus.cells()`).

    Raises:
        InputError: no examples, columns of different lengths, duplicate ids, or a level that is not finite.
    """
    size = len(ids)
    answers = [None] * size if answers is None else answers
    lengths = {len(tasks), size if levels is None else len(levels), len(answers), size}
    if size == 0 or len(lengths) > 1:
        raise InputError("columns of one length, at least 1", f"lengths {sorted(lengths)}", "Give one value per example.")
    unique = Ids(ids)
    names, task_of = np.unique(np.asarray(tasks, dtype=object), return_inverse=True)
    known = _levels(ids, [None] * size if levels is None else levels, task_of, names)
    values, level_of = np.unique(known, return_inverse=True)  # NaN, which is no level, sorts last
    places, cell_of = np.unique(task_of * len(values) + level_of, return_inverse=True)
    found = _named([(names[place // len(values)], values[place % len(values)]) for place in places])
    order = sorted(range(len(found)), key=lambda number: cell_key(*found[number]))
    rank = np.argsort(order)
    counts = np.bincount(rank[cell_of], minlength=len(order))
    numbers = task_of.astype(np.int32), rank[cell_of].astype(np.int32)
    golds = _golds(answers, options)
    known_cells = {cell.key: cell for cell in cells}
    made = []
    for number, (task, level) in enumerate(found[place] for place in order):
        cell = known_cells.get(cell_key(task, level)) or Cell(task, level, 0, *_constant(golds, numbers[1] == number))
        made.append(replace(cell, task=task, level=level, count=int(counts[number])))
    return Pool(unique, tuple(map(str, names)), numbers[0], tuple(made), numbers[1], golds, options)


def _levels(ids: Sequence[str], levels: Sequence[float | None], task_of: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Levels as numbers, NaN where there is none, many-valued ones binned with a warning. Raises as `make_pool` does."""
    known = np.array(levels, dtype=float)
    for index in np.flatnonzero(~np.isfinite(known)).tolist():
        if levels[index] is not None:
            raise InputError(f"a finite level of example {ids[index]!r}", str(levels[index]), "Correct it or leave it out.")
    known, notes = bin_levels(task_of, known)
    for note in notes:
        place, _, rest = note.partition(":")
        logging.getLogger("mixwright").warning("task %s:%s", names[int(place)], rest)
    return known


def _golds(answers: Sequence[Any], options: Sequence[Any] | None) -> np.ndarray | None:
    """Gold answers as numbers; None when there are none."""
    known: dict[str, int] = {}
    found = np.zeros(len(answers), dtype=np.int32)
    for row, answer in enumerate(answers):
        if answer is not None:
            text = read_answer(str(answer), options[row] if options is not None else None)
            found[row] = known.get(text) or known.setdefault(text, answer_key(text))
    return found if found.any() else None


def _constant(golds: np.ndarray | None, here: np.ndarray) -> tuple[float, str]:
    """How often the commonest gold answer of the *other* rows of a cell is right: (m - 1) / (n - 1) for m of n rows."""
    known = golds[here & (golds > 0)] if golds is not None else np.zeros(0)
    if len(known) < 2:
        return 0.0, ""
    return float((np.unique(known, return_counts=True)[1].max() - 1) / (len(known) - 1)), "constant answer"


def read_answer(text: str, options: Any = None) -> str:
    """What is compared of an answer: the place of the option that it names, else its final answer."""
    place = position(options, text) if options else None
    return final_answer(text) if place is None else f"option {place + 1}"


def _named(places: Sequence[tuple[Any, Any]]) -> list[tuple[str, float | None]]:
    """Task and level of each cell. Raises InputError when two of them have one name."""
    found = [(str(task), None if np.isnan(level) else float(level)) for task, level in places]
    check_keys(found)
    return found


def corpus_pool(corpus: Corpus) -> Pool:
    """The pool of a corpus's rows, with the chance levels its graders know. Raises InputError as `make_pool` does."""
    columns = corpus.table.select(["id", "task", "level", "answer"]).to_pydict()
    options = [option_texts(example) for example in corpus]
    found = options if any(options) else None
    return make_pool(columns["id"], columns["task"], columns["level"], columns["answer"], found, cells=corpus.cells())
