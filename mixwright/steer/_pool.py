"""The pool of examples a run may draw, from a corpus or from the columns of a dataset."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.contracts import Pool
from mixwright.errors import InputError
from mixwright.records import Cell, cell_key

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
    levels = [None] * size if levels is None else levels
    answers = [None] * size if answers is None else answers
    lengths = {len(tasks), len(levels), len(answers), size}
    if size == 0 or len(lengths) > 1:
        raise InputError("columns of one length, at least 1", f"lengths {sorted(lengths)}", "Give one value per example.")
    if len(set(ids)) < size:
        twice = next(name for name, count in Counter(ids).items() if count > 1)
        raise InputError("unique example ids", f"{twice!r} more than once", "Make the ids unique.")
    places: dict[tuple[str, float | None], list[int]] = defaultdict(list)
    for index, (task, level) in enumerate(zip(tasks, levels, strict=True)):
        if level is not None and not math.isfinite(level):
            raise InputError(f"a finite level of example {ids[index]!r}", str(level), "Correct it or leave it out.")
        places[task, level].append(index)
    known = {cell.key: cell for cell in cells}
    names = tuple(sorted({task for task, _ in places}))
    ordered = sorted(places, key=lambda place: cell_key(*place))
    task_of, cell_of = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    found = []
    for number, (task, level) in enumerate(ordered):
        where = places[task, level]
        task_of[where], cell_of[where] = names.index(task), number
        cell = known.get(cell_key(task, level))
        luck, source = (
            (cell.luck, cell.luck_from) if cell else (majority_luck([answers[i] for i in where]), "majority answer")
        )
        found.append(Cell(task, level, len(where), luck, source))
    return Pool(tuple(ids), names, task_of, tuple(found), cell_of)


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
