"""Cells and their luck: what somebody without the skill would score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mixwright.corpus._rows import decode, pc, pick
from mixwright.records import Cell

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

LUCK_ROWS = 1000
"""Rows of a cell that luck is worked out on; larger cells are thinned evenly (standard error below 0.016)."""
LUCK_ANSWERS = 3
"""How many of the commonest answers are tried as the one that is always given."""


def find_cells(corpus: Corpus) -> tuple[Cell, ...]:
    """Every task x level of the train split (of all rows when there is none), sorted by key, with its luck."""
    table = corpus.table
    train = np.flatnonzero(pc.equal(table["split"], "train").to_numpy())
    rows = train if len(train) else np.arange(len(table))
    tasks, task_of = _codes(table["task"])
    levels, level_of = _codes(table["level"])
    found, codes = np.unique(task_of[rows] * (len(levels) + 1) + level_of[rows], return_inverse=True)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(found) + 1))
    cells = []
    for position, code in enumerate(found.tolist()):
        task, level = tasks[code // (len(levels) + 1)], [*levels, None][code % (len(levels) + 1)]
        members = rows[order[bounds[position] : bounds[position + 1]]]
        luck, origin = _luck(corpus, task, members)
        cells.append(Cell(task, level, len(members), luck, origin))
    return tuple(sorted(cells, key=lambda cell: cell.key))


def _codes(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray]:
    """The different values of a column and each row's index among them; one past the last for null."""
    values = column.drop_null().unique()
    codes = pc.index_in(column, value_set=values).fill_null(len(values)).to_numpy()
    return values.to_pylist(), codes.astype(np.int64)


def _luck(corpus: Corpus, task: str, members: np.ndarray) -> tuple[float, str]:
    """The best of blind choice and always giving one of the commonest answers, and which of them it was."""
    if corpus.tasks[task].kind != "verifiable":
        return 0.0, "no answers"
    answers = pick(corpus.table.select(["answer"]), members)["answer"].drop_null().value_counts()
    commonest = np.argsort(-answers.field("counts").to_numpy(), kind="stable")[:LUCK_ANSWERS]
    thinned = members[:: max(1, -(-len(members) // LUCK_ROWS))]
    examples = [decode(row) for row in pick(corpus.table, thinned).to_pylist()]
    grader = corpus.grader(task)
    best, origin = 0.0, "majority answer"
    for answer in answers.field("values").take(pa.array(commonest)).to_pylist():
        best = max(best, sum(grader.grade(example, answer) for example in examples) / len(examples))
    chance = grader.luck(examples)
    return (chance, "chance") if chance is not None and chance > best else (best, origin)
