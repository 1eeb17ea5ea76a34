"""Search for the eval split in train, made once per corpus for every check that asks.

Held-out rows that stand in train too are found by 64-bit fingerprints, whatever their task. Left out on purpose: judging. An
overlap is a leak or chance only beside its null.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from mixwright.audit.near_duplicates import NearIndex
from mixwright.audit.rows import MAX_PAIRS_LISTED, Fingerprints, Reader, Row, combine, fingerprints, with_turns
from mixwright.audit.wrapped import WrappedIndex
from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import Example

MAX_ROWS_INDEXED = 5000
"""Held-out rows that are looked for inside other texts, and nearly."""
MIN_CHATS_WITH_TALK = 3
"""Chats of one split from which on a turn that all of them have is talk."""


@dataclass(frozen=True)
class Overlap:
    """Held-out rows against train rows; arrays of shape (held-out rows,) unless said otherwise."""

    held_out: np.ndarray
    """int64: their row numbers in the corpus."""
    train: np.ndarray
    """int64 of shape (train rows,): row numbers of train."""
    task: np.ndarray
    """int32 of shape (rows,): the fingerprints' task codes."""
    shared: np.ndarray
    """bool: the item, prompt and answer, stands in train (an answer missing on either side agrees with any)."""
    exact: np.ndarray
    """bool: shared, and the prompt is the same to the character."""
    other_answer: np.ndarray
    """bool: the prompt stands in train, only ever with other answers; in the same task, where train has that."""
    partner: np.ndarray
    """int64: row number of the first train row with that prompt (and answer, where shared); -1 without any."""
    copied: np.ndarray
    """bool of shape (rows,): train rows that are a held-out item."""


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
    near_index = NearIndex(rows)
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
    examples = reader.examples(np.unique(overlap.held_out[positions]))
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


def find_overlap(prints: Fingerprints) -> Overlap:
    """Compare the splits. Answers agree when the final answers do."""
    row_count, is_question = prints.row_count, ~_find_talk(prints.texts)
    held_out_texts = prints.texts[is_question & prints.texts["held_out"]]
    train_texts = prints.texts[is_question & ~prints.texts["held_out"]]
    unanswered = train_texts[train_texts["final"] == 0]
    match_by_prompt = _first_match(train_texts["row"], train_texts["normal"], held_out_texts["normal"])
    # what is asked of one text depends on the task
    of_task = [combine(texts["normal"], texts["task"].astype(np.uint64)) for texts in (train_texts, held_out_texts)]
    match_in_task = _first_match(train_texts["row"], *of_task)
    has_task = np.isin(held_out_texts["task"], train_texts["task"])
    stands_with_answer = np.where(has_task, match_in_task, match_by_prompt) >= 0
    items, held_out_items = (combine(texts["normal"], texts["final"]) for texts in (train_texts, held_out_texts))
    match_by_item = _first_match(train_texts["row"], items, held_out_items)
    match_by_unanswered = _first_match(unanswered["row"], unanswered["normal"], held_out_texts["normal"])
    is_unanswered_match = (held_out_texts["final"] == 0) & (match_by_prompt >= 0)
    is_shared = (match_by_item >= 0) | (match_by_unanswered >= 0) | is_unanswered_match
    best_match = match_by_prompt
    for match in (match_in_task, match_by_unanswered, match_by_item):  # the best match is the last
        best_match = np.where(match >= 0, match, best_match)
    normal, held_out_normal = train_texts["normal"], held_out_texts["normal"]
    is_copied = np.isin(items, held_out_items) | np.isin(normal, held_out_normal[is_unanswered_match])
    is_copied |= (train_texts["final"] == 0) & np.isin(normal, held_out_normal)
    copied = np.zeros(row_count, bool)
    copied[train_texts["row"][is_copied]] = True

    is_held_out = prints.texts["held_out"][:row_count]
    held_out = np.flatnonzero(is_held_out)
    position_of_text = np.searchsorted(held_out, held_out_texts["row"])
    shared, exact, prompt_in_train = (np.zeros(len(held_out), bool) for _ in range(3))
    shared[position_of_text[is_shared]] = True
    prompt_in_train[position_of_text[stands_with_answer]] = True
    exact[position_of_text[is_shared & np.isin(held_out_texts["exact"], train_texts["exact"])]] = True
    partner = np.full(len(held_out), -1, np.int64)
    for is_partnered in ((match_by_prompt >= 0) & ~is_shared, is_shared):
        partner[position_of_text[is_partnered]] = best_match[is_partnered]
    return Overlap(
        held_out=held_out,
        train=np.flatnonzero(~is_held_out),
        task=prints.texts["task"][:row_count],
        shared=shared,
        exact=exact,
        other_answer=prompt_in_train & ~shared,
        partner=partner,
        copied=copied,
    )


def _find_talk(texts: np.ndarray) -> np.ndarray:
    """Turns that stand in several chats of one split, such as greetings, are no questions; bool of shape (texts,)."""
    is_talk = np.zeros(len(texts), bool)
    for split in (False, True):
        turns = np.flatnonzero((texts["turns"] > 1) & (texts["held_out"] == split))
        _, group_of_turn, counts = np.unique(texts["normal"][turns], return_inverse=True, return_counts=True)
        is_talk[turns] = counts[group_of_turn] >= MIN_CHATS_WITH_TALK
    return is_talk | np.isin(texts["normal"], texts["normal"][is_talk]) & (texts["turns"] > 0)


def _first_match(rows: np.ndarray, candidates: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Row (of `rows`) of the first of `candidates` equal to each of `values`, int64; -1 where there is none."""
    places = pc.index_in(pa.array(values), value_set=pa.array(candidates)).fill_null(len(rows))
    return np.append(rows, -1)[places.to_numpy()]
