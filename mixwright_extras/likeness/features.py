"""Features by which two texts are compared without regard to order, and what each of them weighs.

Three views of a text. Its *words*: stems, names, numbers and a brief answer. Its *template*: pairs of words that stand near
each other, with a mark in place of each name and number. Its *anchors*, which survive a translation: names, numbers,
identifiers and a brief answer, and pairs of these. A feature weighs the logarithm of how rare it is. Texts become arrays of
32-bit hashes, many rows at a time.
Left out on purpose: which texts are compared (`index.py`), and what a likeness means (`reworded.py`).
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mixwright.extend import BRIEF_ANSWER_CHARACTERS, Row, read_conclusion, to_visible

WORDS, TEMPLATE, ANCHORS = VIEWS = (0, 1, 2)
CHARACTERS_READ = 6000
"""Characters of a prompt that are read."""
STEM_CHARACTERS = 5
"""Letters of a word that count as its stem."""
MAX_TOKENS_KEPT = 400_000
"""Different words that are kept with their hashes."""
GAPS = (1, 2, 3)
"""Distances of the two words of a pair."""
ANCHORS_PAIRED = 8
"""Anchors of a text up to which all pairs of them are features; of more those whose hashes are near."""
_WORD, _NAME, _NUMBER, _IDENTIFIER = range(4)
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[\u3040-\u30ff\u3400-\u9fff]|[^\W\d\u3040-\u30ff\u3400-\u9fff]+")
_MID_SENTENCE = re.compile(r"(?<=[^\W_][,;] )[^\W\d_]+|(?<=[^\W_] )[^\W\d_]+")
_INNER_CAPITAL = re.compile(r"[^\W\d_][_A-Z]|_")
_TAGS = np.array([0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35], np.uint32)


class Features(NamedTuple):
    """One view of some rows: each row's different features."""

    row: np.ndarray
    """int64 of shape (features,), ascending: position of the row among those read."""
    code: np.ndarray
    """uint32 of the same shape, ascending within a row."""


@dataclass(frozen=True)
class Texts:
    """Rows as features."""

    views: tuple[Features, Features, Features]
    """By view."""
    answer: np.ndarray
    """uint32 of shape (rows,): of the brief answer; 0 where there is none."""
    text: np.ndarray
    """uint64 of the same shape: of all words in order."""


class Tokens(dict[str, int]):
    """Token -> its place in the columns, filled as tokens are met.

    Args:
        names: words that are names, as they are written.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._columns: list[tuple[int, int, int]] = []

    def __missing__(self, token: str) -> int:
        if len(self._columns) >= MAX_TOKENS_KEPT:
            raise OverflowError
        self[token] = place = len(self._columns)
        self._columns.append(self._describe(token))
        return place

    def _describe(self, token: str) -> tuple[int, int, int]:
        """Hash in full, hash with a mark for names and numbers, kind."""
        lower = token.lower()
        if token[0].isdigit():
            return zlib.crc32(token.replace(",", "").encode()), 1, _NUMBER
        if token in self._names:
            return zlib.crc32(lower.encode("utf-8", "surrogatepass")), 2, _NAME
        kind = _IDENTIFIER if _INNER_CAPITAL.search(token) and not token.isupper() else _WORD
        stem = lower if kind == _IDENTIFIER else lower[:STEM_CHARACTERS]
        full, masked = (zlib.crc32(part.encode("utf-8", "surrogatepass")) for part in (stem, lower))
        return full, masked, kind

    def read(self, rows: Sequence[Row]) -> Texts:
        """The features of these rows."""
        texts = [_TOKEN.findall(visible(row.prompt)) for row in rows]
        try:
            places = np.fromiter(map(self.__getitem__, itertools.chain.from_iterable(texts)), np.int64)
        except OverflowError:  # begin anew: memory stays bounded
            self.clear()
            self._columns.clear()
            places = np.fromiter(map(self.__getitem__, itertools.chain.from_iterable(texts)), np.int64)
        columns = np.array(self._columns, np.int64).reshape(-1, 3)[places]
        code, masked, kind = columns[:, 0].astype(np.uint32), columns[:, 1].astype(np.uint32), columns[:, 2]
        row = np.repeat(np.arange(len(rows)), [len(text) for text in texts])
        answer = np.array([_hash_answer(one.answer) for one in rows], np.uint32)
        answered = np.flatnonzero(answer)
        anchors = _join_pairs(_distinct(ANCHORS, [row[kind != _WORD], answered], [code[kind != _WORD], answer[answered]]))
        pairs = [_pairs(row, masked, gap) for gap in GAPS]
        views = (
            _distinct(WORDS, [row, answered], [code, answer[answered]]),
            _distinct(TEMPLATE, [one for one, _ in pairs], [one for _, one in pairs]),
            anchors,
        )
        return Texts(views, answer, _hash_texts(row, code, len(rows)))


def _pairs(row: np.ndarray, masked: np.ndarray, gap: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and hash of each two words with this distance."""
    within = row[gap:] == row[:-gap]
    joined = masked[:-gap] * np.uint32(2654435761) + masked[gap:] * np.uint32(40503) + np.uint32(gap)
    return row[gap:][within], joined[within]


def _join_pairs(anchors: Features) -> Features:
    """The anchors and pairs of them: many rows have a number, and few have the same two."""
    rows, codes = [anchors.row], [anchors.code]
    for gap in range(1, ANCHORS_PAIRED):
        within = anchors.row[gap:] == anchors.row[:-gap]
        rows.append(anchors.row[gap:][within])
        codes.append((anchors.code[:-gap] * np.uint32(2654435761) ^ anchors.code[gap:])[within])
    return _distinct(ANCHORS, rows, codes)


def _distinct(view: int, rows: Sequence[np.ndarray], codes: Sequence[np.ndarray]) -> Features:
    """Each row's codes once."""
    keys = np.concatenate(rows).astype(np.uint64) << np.uint64(32) | (np.concatenate(codes) ^ _TAGS[view])
    keys.sort()
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    return Features((keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32))


def _hash_texts(row: np.ndarray, code: np.ndarray, count: int) -> np.ndarray:
    """One number for the words of each row in their order."""
    starts = np.searchsorted(row, np.arange(count))
    place = (np.arange(len(row)) - starts[row]).astype(np.uint64)
    hashes = np.zeros(count, np.uint64)
    np.add.at(hashes, row, (code.astype(np.uint64) + np.uint64(1)) * (place * np.uint64(2) + np.uint64(1)) ** np.uint64(3))
    return hashes


def visible(text: str) -> str:
    """What is read of a prompt."""
    return to_visible(text[:CHARACTERS_READ])


def _hash_answer(answer: str) -> int:
    if not answer or len(answer) > 50 * BRIEF_ANSWER_CHARACTERS:
        return 0
    conclusion = read_conclusion(answer)
    return zlib.crc32(conclusion.encode("utf-8", "surrogatepass")) | 1 if len(conclusion) <= BRIEF_ANSWER_CHARACTERS else 0


def find_names(prompts: Iterable[str]) -> frozenset[str]:
    """Words that begin with a capital in the middle of sentences, and mostly so where they stand at all."""
    capitals, others, written = Counter[str](), Counter[str](), set[str]()
    for prompt in prompts:
        text = visible(prompt)
        tokens = _TOKEN.findall(text)
        written.update(token for token in tokens if token[0].isupper())
        others.update(token for token in tokens if token[0].islower())
        capitals.update(token for token in _MID_SENTENCE.findall(text) if token[0].isupper())
    return frozenset(token for token in written if capitals[token] and capitals[token] > others[token.lower()])


@dataclass(frozen=True)
class Rarity:
    """How rare the features of one view are among some rows."""

    codes: np.ndarray
    """uint32, ascending."""
    counts: np.ndarray
    """int64 of the same shape: rows that have the feature."""
    rows: int
    """Rows looked at."""

    @classmethod
    def of(cls, features: Features, rows: int) -> Rarity:
        """Count."""
        return cls(*np.unique(features.code, return_counts=True), rows)

    def share(self, codes: np.ndarray) -> np.ndarray:
        """Share of the rows that have each feature, float; half a row for those that were not seen."""
        if not len(self.codes):
            return np.full(len(codes), 0.5 / max(self.rows, 1))
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        found = np.where(self.codes[places] == codes, self.counts[places].astype(float), 0.0)
        return np.maximum(found, 0.5) / max(self.rows, 1)
