"""Near-duplicates inside train: sampled rows looked for among all of them, beside what chance gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixwright.audit.near_duplicates import NearIndex
from mixwright.audit.rows import Reader, Row, positions_by_code, rows
from mixwright.audit.siblings import count_siblings

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

MOST_ROWS_INDEXED = 5000
"""Train rows that near-duplicates are looked for; an even sample where there are more."""
MOST_ROWS_COMPARED = 200
"""Rows of a task that its null is worked out on."""


@dataclass(frozen=True)
class NearRepeats:
    """What was found in one task."""

    task: str
    """Task name."""
    rows_sought: int
    """Rows looked for."""
    pairs: list[tuple[int, int]]
    """Row numbers: a row that was looked for, and the first other that it nearly is."""
    expected: float
    """Rows of those looked for with such another by chance."""


def near_repeats(corpus: Corpus, reader: Reader, train: np.ndarray, similarity: float) -> list[NearRepeats]:
    """Tasks whose train rows have near-duplicates among them; rows that are the same are left to others.

    Args:
        corpus: read once.
        reader: of the corpus.
        train: int64, row numbers of the train rows, each of those that repeat an earlier one left out.
        similarity: least Jaccard similarity of word runs, 0..1.
    """
    index = NearIndex(reader.sample(train, MOST_ROWS_INDEXED), similarity)
    kept = np.zeros(len(corpus), bool)
    kept[train] = True
    found: dict[int, int] = {}
    sizes: dict[str, int] = {}
    for row in rows(corpus.batches()):
        if kept[row.number]:
            sizes[row.task] = sizes.get(row.task, 0) + 1
            for at in index.near(row):
                found.setdefault(at, row.number)
    names = {name: code for code, name in enumerate(sizes)}
    places = positions_by_code(np.array([names[row.task] for row in index.rows], np.int64))
    return [
        _compare_with_null(index, [index.rows[at] for at in own.tolist()], own.tolist(), found, sizes)
        for own in places.values()
        if any(at in found for at in own.tolist())
    ]


def _compare_with_null(
    index: NearIndex, mine: list[Row], own: list[int], found: dict[int, int], sizes: dict[str, int]
) -> NearRepeats:
    """One task's pairs beside its null: halves of the sample stand for rows that nobody copied from each other."""
    task = mine[0].task
    pairs = [(index.rows[at].number, found[at]) for at in own if at in found]
    one, other = own[: 2 * MOST_ROWS_COMPARED : 2], [index.rows[at] for at in own[1 : 2 * MOST_ROWS_COMPARED : 2]]
    by_words = index.expected_near(one, other, sizes[task]) * len(own) / len(one)
    kin = count_siblings(mine[: 5 * MOST_ROWS_COMPARED], mine[:MOST_ROWS_COMPARED], index.similarity)
    return NearRepeats(task, len(own), pairs, max(by_words, kin.expected_near(len(own), sizes[task])))
