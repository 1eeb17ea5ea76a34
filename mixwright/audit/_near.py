"""Near-duplicates of held-out prompts: the same numbers, the same answer, nearly the same words in the same order.

Compared are runs of three words; runs that many held-out prompts of a task share are its template and do not count.
Exact over short prompts; of long ones the 64 smallest hashes stand for all (a bottom-k sketch of the Jaccard similarity).
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mixwright.audit._chance import LONGEST
from mixwright.audit._rows import Row, normal_form, rows

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

SKETCH = 64
LEAST = 6
"""Runs of words, template apart, below which a prompt is too short to be nearly another."""
TEMPLATE_SHARE = 0.05
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

Key = tuple[tuple[str, ...], str]


class NearIndex:
    """Held-out rows, searchable by nearness.

    Args:
        held_out: rows to find near-duplicates of; the caller bounds their number.
        similarity: least Jaccard similarity of the word runs, 0..1.
    """

    def __init__(self, held_out: Sequence[Row], similarity: float) -> None:
        self.rows = held_out
        self.similarity = similarity
        runs = [_runs(row.prompt) for row in held_out]
        sizes = Counter(row.task for row in held_out)
        seen = Counter((row.task, run) for row, found in zip(held_out, runs, strict=True) for run in found)
        self._template = {run for (task, run), n in seen.items() if n >= max(3, TEMPLATE_SHARE * sizes[task])}
        self._sketches = [self._sketch(found) for found in runs]
        self._postings: dict[int, list[int]] = {}
        self._keys: set[Key] = set()
        self._key_of = [_key(row) for row in held_out]
        for position, sketch in enumerate(self._sketches):
            if sketch:
                self._keys.add(self._key_of[position])
            for run in sketch:
                self._postings.setdefault(run, []).append(position)

    def near(self, row: Row) -> list[int]:
        """Positions in `rows` of what `row` nearly is; prompts with the same normal form are not near, they are the same."""
        key = _key(row)
        if key not in self._keys:
            return []
        sketch = self._sketch(_runs(row.prompt))
        hits = Counter(position for run in sketch for position in self._postings.get(run, ()))
        return [
            position
            for position, _ in hits.items()
            if self._key_of[position] == key
            and _jaccard(sketch, self._sketches[position]) >= self.similarity
            and normal_form(row.prompt) != normal_form(self.rows[position].prompt)
        ]

    def pairs_within(self, task: str) -> int:
        """How many pairs of the task's held-out rows are near each other: what it looks like without any leak."""
        near = (at for row in self.rows if row.task == task for at in self.near(row))
        return sum(self.rows[at].task == task for at in near) // 2

    def _sketch(self, found: Iterable[int]) -> frozenset[int]:
        kept = sorted(run for run in found if run not in self._template)
        return frozenset(kept[:SKETCH]) if len(kept) >= LEAST else frozenset()


def search(index: NearIndex, corpus: Corpus) -> dict[int, int]:
    """Row number of each indexed held-out row that a train row is near to -> row number of the first such train row."""
    found: dict[int, int] = {}
    for row in rows(corpus.batches()):
        if row.split != "eval":
            for at in index.near(row):
                found.setdefault(index.rows[at].number, row.number)
    return found


def _runs(prompt: str) -> set[int]:
    words = _WORD.findall(normal_form(prompt[:LONGEST]))
    return {zlib.crc32(" ".join(words[i : i + 3]).encode("utf-8", "surrogatepass")) for i in range(len(words) - 2)}


def _key(row: Row) -> Key:
    return tuple(_NUMBER.findall(row.prompt[:LONGEST])), normal_form(row.answer[:LONGEST])


def _jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Jaccard similarity: exact for short sets; from full sketches, the share of the union's smallest that both hold."""
    union = sorted(one | other)
    if len(one) == SKETCH or len(other) == SKETCH:
        union = union[:SKETCH]
    return sum(run in one and run in other for run in union) / len(union) if union else 0.0
