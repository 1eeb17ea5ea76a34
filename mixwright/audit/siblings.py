"""Null for rows made from one template: how often two of them are alike where nobody copied anything.

A generator with many templates writes prompts whose wording is alike; numbers and names then agree far more often than
between any two prompts. So agreement is counted among rows of train that are worded alike. Where rows that are worded alike
are mostly copies, nothing is learnt about templates, and this says nothing. One is added to what was seen; of the same rows
it counts for a row or so at most, because how often slots repeat bounds those too, and one in a sample of 500,000 pairs
would be thousands in the 10^9 pairs of large files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mixwright.audit.rows import Row
from mixwright.audit.text import numbers_as_written, read_conclusion, words
from mixwright.audit.words import jaccard, sketch, word_runs

ALIKE_SIMILARITY = 0.3
"""Jaccard similarity of word runs from which on two prompts are worded alike."""
COPIES_SHARE = 0.1
"""Share of the pairs worded alike that agree, from which on they are copies and no siblings."""
UNSEEN_PAIR_ROWS = 1.0
"""Rows that a pair which was not seen may stand for."""
TEMPLATE_SHARE = 0.05


@dataclass(frozen=True)
class Siblings:
    """What rows that are worded alike have in common."""

    same_pairs: int
    """Such pairs of train rows with the same words and numbers."""
    near_share: float
    """Share that are near-duplicates, one added; 1.0: no such pairs."""
    alike_rows_per_train_row: float
    """Rows worded like a held-out row, of each train row."""
    pairs: int
    """Pairs of train rows that were compared."""

    def expected_near(self, held_out: int, train: int) -> float:
        """Held-out rows expected to be near one of `train` rows."""
        return self._expected(self.near_share, held_out, train)

    def expected_same(self, held_out: int, train: int) -> float:
        """Held-out rows expected to be the same as one of `train` rows; one more pair than was seen counts for
        `UNSEEN_PAIR_ROWS`.
        """
        known, more = (
            self._expected(count / (self.pairs + 1), held_out, train) for count in (self.same_pairs, self.same_pairs + 1)
        )
        return known + min(more - known, UNSEEN_PAIR_ROWS)

    def _expected(self, share: float, held_out: int, train: int) -> float:
        return held_out * -math.expm1(-share * self.alike_rows_per_train_row * train) if share < COPIES_SHARE else 0.0


class _Prompts:
    def __init__(self, rows: Sequence[Row]) -> None:
        lists = [words(row.prompt) for row in rows]
        self.texts = [" ".join(found) for found in lists]
        self.runs = [word_runs(found) for found in lists]
        self.keys = [(numbers_as_written(row.prompt), read_conclusion(row.answer)) for row in rows]


def count_siblings(train: Sequence[Row], held_out: Sequence[Row], similarity: float) -> Siblings:
    """Count among samples of one task's rows.

    Args:
        train: sampled train rows.
        held_out: sampled held-out rows.
        similarity: least Jaccard similarity of near-duplicates.
    """
    known, asked = _Prompts(train), _Prompts(held_out)
    seen = Counter(run for runs in known.runs for run in runs)
    template = {run for run, n in seen.items() if n >= max(3, TEMPLATE_SHARE * len(train))}
    sketches = [sketch(runs, template) for runs in known.runs]
    postings: dict[int, list[int]] = {}
    pairs = same = near = 0
    for at, mine in enumerate(sketches):
        for other, alike in _find_alike(mine, postings, sketches):
            pairs += 1
            identical = known.texts[at] == known.texts[other]
            same += identical
            near += not identical and alike >= similarity and known.keys[at] == known.keys[other]
        for run in mine:
            postings.setdefault(run, []).append(at)
    cross = sum(
        text != known.texts[other]
        for text, runs in zip(asked.texts, asked.runs, strict=True)
        for other, _ in _find_alike(sketch(runs, template), postings, sketches)
    )
    each = cross / max(len(train) * len(held_out), 1)
    return Siblings(same, (near + 1) / (pairs + 1), each, pairs)


def _find_alike(
    mine: frozenset[int], postings: dict[int, list[int]], sketches: Sequence[frozenset[int]]
) -> Iterator[tuple[int, float]]:
    hits = Counter(other for run in mine for other in postings.get(run, ()))
    for other, shared in hits.items():
        if shared >= ALIKE_SIMILARITY * len(mine) / 2:
            alike = jaccard(mine, sketches[other])
            if alike >= ALIKE_SIMILARITY:
                yield other, alike
