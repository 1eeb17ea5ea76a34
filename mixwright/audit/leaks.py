"""Search for the eval split in train, made once per corpus for every check that asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from mixwright.audit.near_duplicates import NearIndex
from mixwright.audit.overlap import Overlap, find_overlap
from mixwright.audit.rows import MAX_PAIRS_LISTED, Reader, Row, fingerprints, with_turns
from mixwright.audit.wrapped import WrappedIndex
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import Example

MAX_ROWS_INDEXED = 5000
"""Held-out rows that are looked for inside other texts, and nearly."""
NEAR_SIMILARITY = 0.7


@dataclass(frozen=True)
class Leaks:
    """What of the eval split stands in train."""

    tasks: tuple[str, ...]
    """Task names; the overlap's codes count them."""
    overlap: Overlap
    """Prompts that are the same."""
    rows: tuple[Row, ...]
    """The held-out rows that the following were looked for."""
    wrapped_index: WrappedIndex
    """Index of the texts of `rows`, which finds copies with text around them."""
    near_index: NearIndex
    """Index of the prompts of `rows`, which finds near-duplicates."""
    wrapped: dict[int, tuple[int, bool]]
    """Position in `rows` -> number of the first train row that holds it or (False) is held by it."""
    near: dict[int, int]
    """Position in `rows`, wrapped ones apart -> number of the first train row that nearly is it."""
    copied: np.ndarray
    """bool of shape (rows of the corpus,): train rows that are a held-out item, or hold one, with its answer."""
    nearly_copied: np.ndarray
    """bool of the same shape: train rows that are nearly one: copies, or other questions about one text."""


_KNOWN: WeakKeyDictionary[Corpus, Leaks] = WeakKeyDictionary()
"""Three checks read those of one corpus."""


def find_leaks(corpus: Corpus) -> Leaks:
    """Return what of the eval split is in train; searched once for each corpus."""
    if corpus not in _KNOWN:
        _KNOWN[corpus] = _search_leaks(corpus)
    return _KNOWN[corpus]


def _search_leaks(corpus: Corpus) -> Leaks:
    prints = fingerprints(corpus)
    reader = Reader(corpus)
    overlap = _accept_graded_answers(corpus, reader, find_overlap(prints))
    wrapped_index = WrappedIndex(tuple(reader.sample(overlap.held_out[overlap.partner < 0], MAX_ROWS_INDEXED)))
    rows = tuple(wrapped_index.rows)
    near_index = NearIndex(rows, NEAR_SIMILARITY)
    wrapped: dict[int, tuple[int, bool]] = {}
    near: dict[int, int] = {}
    copied, nearly_copied = overlap.copied.copy(), np.zeros(len(corpus), bool)
    for row, turn_count in with_turns(corpus.batches()) if rows else ():
        if row.split == "eval":
            continue
        for position, is_inside in wrapped_index.matches(row, is_turn=turn_count > 0):
            wrapped.setdefault(position, (row.number, is_inside))
            copied[row.number] = True
        for at in () if turn_count else near_index.find_near(row):
            near.setdefault(at, row.number)
            nearly_copied[row.number] = True
    near = {at: number for at, number in near.items() if at not in wrapped}
    return Leaks(prints.tasks, overlap, rows, wrapped_index, near_index, wrapped, near, copied, nearly_copied)


def _accept_graded_answers(corpus: Corpus, reader: Reader, overlap: Overlap) -> Overlap:
    """The overlap, where answers that the task's grader takes for right are the same answers."""
    positions = np.flatnonzero(overlap.other_answer)[:MAX_PAIRS_LISTED]
    partners = overlap.partner[positions]
    examples = reader.examples(np.unique(np.concatenate([overlap.held_out[positions], partners])))
    train_answers = {row.number: row.answer for row in reader.rows(np.unique(partners))}
    shared, copied = overlap.shared.copy(), overlap.copied.copy()
    for position, partner in zip(positions.tolist(), partners.tolist(), strict=True):
        example = examples[int(overlap.held_out[position])]
        if example.answer is not None and _is_right(corpus, example, train_answers[partner]):
            shared[position] = copied[partner] = True
    return replace(overlap, shared=shared, other_answer=overlap.other_answer & ~shared, copied=copied)


def _is_right(corpus: Corpus, example: Example, answer: str) -> bool:
    try:
        return corpus.grade(example, answer) >= RIGHT_FROM_SCORE
    except InputError:
        return False
