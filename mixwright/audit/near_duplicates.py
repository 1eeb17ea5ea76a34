"""Index of near-duplicates: the same numbers, the same answer, nearly the same words in the same order.

Compared are runs of three words; runs that many held-out prompts of a task share are its template and do not count.
Exact over short prompts; of long ones the 64 smallest hashes stand for all (a bottom-k sketch of the Jaccard similarity).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mixwright.audit.rows import Row
from mixwright.audit.text import normal_form, numbers_as_written, read_conclusion, sentences, words
from mixwright.audit.words import jaccard, sketch, word_runs

TEMPLATE_RUN_MIN_SHARE = 0.05
PASSAGE_WORDS = 6
"""Words of a sentence that two prompts share, from which on it is taken for a text that both ask about."""
NULL_SAMPLE_ROWS = 200
"""Rows of either side that the null is worked out on."""

NumbersAndAnswer = tuple[tuple[str, ...], str]


class NearIndex:
    """Held-out rows, searchable by nearness.

    Args:
        held_out: rows to find near-duplicates of; the caller bounds their number.
        similarity: least Jaccard similarity of the word runs, 0..1.
    """

    def __init__(self, held_out: Sequence[Row], similarity: float) -> None:
        self.rows = held_out
        self.similarity = similarity
        runs = [word_runs(words(row.prompt)) for row in held_out]
        sizes = Counter(row.task for row in held_out)
        seen = Counter((row.task, run) for row, found in zip(held_out, runs, strict=True) for run in found)
        self._template = {run for (task, run), n in seen.items() if n >= max(3, TEMPLATE_RUN_MIN_SHARE * sizes[task])}
        self._sketches = [sketch(found, self._template) for found in runs]
        self._postings: dict[int, list[int]] = {}
        self._answers = {read_conclusion(row.answer) for row, kept in zip(held_out, self._sketches, strict=True) if kept}
        self._key_of = [_key(row) for row in held_out]
        self._keys = {key for key, kept in zip(self._key_of, self._sketches, strict=True) if kept}
        for position, kept in enumerate(self._sketches):
            for run in kept:
                self._postings.setdefault(run, []).append(position)

    def near(self, row: Row, found: Sequence[str] | None = None) -> list[int]:
        """Positions in `rows` of what `row` nearly is; prompts with the same normal form are not near, they are the same.

        Args:
            row: any row.
            found: the words of its prompt, where they are known.
        """
        if read_conclusion(row.answer) not in self._answers or (key := _key(row)) not in self._keys:
            return []
        mine = sketch(word_runs(words(row.prompt) if found is None else found), self._template)
        hits = Counter(position for run in mine for position in self._postings.get(run, ()))
        return [
            position
            for position, _ in hits.items()
            if self._key_of[position] == key
            and jaccard(mine, self._sketches[position]) >= self.similarity
            and normal_form(row.prompt) != normal_form(self.rows[position].prompt)
        ]

    def expected_near(self, positions: Sequence[int], others: Sequence[Row], count: int) -> float:
        """Rows at these positions expected to have a near-duplicate among `count` rows like `others`, were nothing copied.

        Pairs with as many numbers are compared. Were their words independent of their numbers and answers, the share that
        agrees in both would be the product of the shares that agree in either; one is added to each of them.
        """
        mine = [at for at in positions if self._sketches[at]][:NULL_SAMPLE_ROWS]
        theirs = [(sketch(word_runs(words(row.prompt)), self._template), _key(row)) for row in others[:NULL_SAMPLE_ROWS]]
        pairs = [
            (self._sketches[at], other, self._key_of[at] == key)
            for at in mine
            for other, key in theirs
            if len(self._key_of[at][0]) == len(key[0])
        ]
        alike = sum(jaccard(one, other) >= self.similarity for one, other, _ in pairs)
        same = sum(agree for _, _, agree in pairs)
        both = (alike + 1) * (same + 1) / (len(pairs) + 1) ** 2
        share = len(pairs) / max(len(mine) * len(theirs), 1)
        return len(positions) * -math.expm1(-both * share * count)


def _key(row: Row) -> NumbersAndAnswer:
    return numbers_as_written(row.prompt), read_conclusion(row.answer)


def have_common_passage(one: str, other: str) -> bool:
    """Whether two prompts share a sentence of `PASSAGE_WORDS` words and each has another one: two questions about one
    text.
    """
    mine, theirs = sentences(one), sentences(other)
    shared = mine & theirs
    return bool(mine - shared and theirs - shared) and any(len(sentence.split()) >= PASSAGE_WORDS for sentence in shared)
