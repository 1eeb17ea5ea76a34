"""Cells and their luck: what somebody without the skill would score."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mixwright._rows import decode
from mixwright.records import Cell

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

LUCK_ROWS = 1000
"""Rows of a cell that luck is worked out on; larger cells are thinned evenly (standard error below 0.016)."""
LUCK_ANSWERS = 3
"""How many of the commonest answers are tried as the one that is always given."""


def find_cells(corpus: Corpus) -> tuple[Cell, ...]:
    """Every task x level of the train split (of all rows when there is none), sorted by key, with its luck."""
    train = corpus.select(split="train")
    rows = train if len(train) else corpus
    keys = list(zip(rows.table["task"].to_pylist(), rows.table["level"].to_pylist(), strict=True))
    index = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter((index[key] for key in keys), np.int64, len(keys))
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(index) + 1))
    cells = []
    for (task, level), position in index.items():
        members = order[bounds[position] : bounds[position + 1]]
        luck, origin = _luck(rows, task, members)
        cells.append(Cell(task, level, len(members), luck, origin))
    return tuple(sorted(cells, key=lambda cell: cell.key))


def _luck(corpus: Corpus, task: str, members: np.ndarray) -> tuple[float, str]:
    """The best of blind choice and always giving one of the commonest answers, and which of them it was."""
    if corpus.tasks[task].kind != "verifiable":
        return 0.0, "no answers"
    answers = Counter(corpus.table["answer"].take(pa.array(members)).drop_null().to_pylist())
    thinned = members[:: max(1, -(-len(members) // LUCK_ROWS))]
    examples = [decode(row) for row in corpus.table.take(pa.array(thinned)).to_pylist()]
    grader = corpus.grader(task)
    best, origin = 0.0, "majority answer"
    for answer, _ in sorted(answers.items(), key=lambda item: (-item[1], item[0]))[:LUCK_ANSWERS]:
        best = max(best, sum(grader.grade(example, answer) for example in examples) / len(examples))
    chance = grader.luck(examples)
    return (chance, "chance") if chance is not None and chance > best else (best, origin)
