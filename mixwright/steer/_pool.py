"""The pool of examples a run may draw, from a corpus or from the columns of a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.contracts import Pool
from mixwright.errors import InputError
from mixwright.records import Cell, cell_key
from mixwright.steer._ids import Ids

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


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
        answers: gold answer per example, used to compute luck of cells that `cells` does not know; None where unknown.
        cells: cells with known luck (for instance `corpus.cells()`).

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
    known = np.full(size, np.nan) if levels is None else np.array(levels, dtype=float)
    for index in np.flatnonzero(~np.isfinite(known)).tolist():
        if levels is not None and levels[index] is not None:
            raise InputError(f"a finite level of example {ids[index]!r}", str(levels[index]), "Correct it or leave it out.")
    values, level_of = np.unique(known, return_inverse=True)  # NaN, which is no level, sorts last
    places, cell_of = np.unique(task_of * len(values) + level_of, return_inverse=True)
    found = _named([(names[place // len(values)], values[place % len(values)]) for place in places])
    order = sorted(range(len(found)), key=lambda number: cell_key(*found[number]))
    rank = np.argsort(order)
    members = np.split(np.argsort(rank[cell_of], kind="stable"), np.cumsum(np.bincount(rank[cell_of]))[:-1])
    lucks = {cell.key: (cell.luck, cell.luck_from) for cell in cells}
    made = []
    for where, (task, level) in zip(members, (found[number] for number in order), strict=True):
        luck, source = lucks.get(cell_key(task, level)) or (majority_luck([answers[i] for i in where]), "majority answer")
        made.append(Cell(task, level, len(where), luck, source))
    numbers = task_of.astype(np.int32), rank[cell_of].astype(np.int32)
    return Pool(unique, tuple(map(str, names)), numbers[0], tuple(made), numbers[1])


def _named(places: Sequence[tuple[Any, Any]]) -> list[tuple[str, float | None]]:
    """Task and level of each cell. Raises InputError when two of them have one name."""
    found = [(str(task), None if np.isnan(level) else float(level)) for task, level in places]
    if twice := [key for key, count in Counter(cell_key(*cell) for cell in found).items() if count > 1]:
        got = f"{twice[0]!r} for more than one task and level"
        raise InputError("cells with names of their own (task@level, six digits)", got, "Rename tasks or round levels.")
    return found


def corpus_pool(corpus: Corpus) -> Pool:
    """The pool of a corpus's rows, with the luck its graders know. Raises InputError as `make_pool` does."""
    columns = corpus.table.select(["id", "task", "level"]).to_pydict()
    return make_pool(columns["id"], columns["task"], columns["level"], cells=corpus.cells())


def majority_luck(answers: Sequence[Any]) -> float:
    """How often the commonest answer of the *other* examples is right, 0..1.

    (m - 1) / (n - 1) for an answer given m times among n: unlike m / n it is 0 for a small cell whose answers all differ.
    """
    given = [str(answer) for answer in answers if answer is not None]
    if len(given) < 2:
        return 0.0
    return (Counter(given).most_common(1)[0][1] - 1) / (len(given) - 1)
