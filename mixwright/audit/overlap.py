"""Overlap of the splits: held-out rows that stand in train too, by 64-bit fingerprints, whatever their task.

Left out on purpose: judging. An overlap is a leak or chance only beside its null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixwright.audit.rows import Fingerprints

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


def find_overlap(prints: Fingerprints) -> Overlap:
    """Compare the splits. Answers agree when the final answers do."""
    row_count, row_of_text = len(prints.task) - len(prints.row_of_extra_text), prints.row
    is_question = ~_find_talk(prints)
    held_out_text_indices = np.flatnonzero(is_question & prints.held_out)
    train_text_indices = np.flatnonzero(is_question & ~prints.held_out)
    item, prompt = prints.combined(prints.normal, prints.final), prints.normal
    match_by_prompt = _first_match(prompt[train_text_indices], prompt[held_out_text_indices])
    of_task = prints.combined(prompt, prints.task.astype(np.uint64))  # what is asked of one text depends on the task
    match_in_task = _first_match(of_task[train_text_indices], of_task[held_out_text_indices])
    has_task = np.isin(prints.task[held_out_text_indices], prints.task[train_text_indices])
    stands_with_answer = np.where(has_task, match_in_task, match_by_prompt) >= 0
    match_by_item = _first_match(item[train_text_indices], item[held_out_text_indices])
    unanswered_train_indices = train_text_indices[prints.final[train_text_indices] == 0]
    match_by_unanswered = _first_match(prompt[unanswered_train_indices], prompt[held_out_text_indices])
    is_unanswered_match = (prints.final[held_out_text_indices] == 0) & (match_by_prompt >= 0)
    is_shared = (match_by_item >= 0) | (match_by_unanswered >= 0) | is_unanswered_match
    best_match = np.full(len(held_out_text_indices), -1, np.int64)
    # the best match is written last
    for match, text_indices in (
        (match_by_prompt, train_text_indices),
        (match_in_task, train_text_indices),
        (match_by_unanswered, unanswered_train_indices),
        (match_by_item, train_text_indices),
    ):
        best_match[match >= 0] = text_indices[match[match >= 0]]
    is_copied = np.isin(item[train_text_indices], item[held_out_text_indices]) | np.isin(
        prompt[train_text_indices], prompt[held_out_text_indices][is_unanswered_match]
    )
    is_copied |= (prints.final[train_text_indices] == 0) & np.isin(prompt[train_text_indices], prompt[held_out_text_indices])
    copied = np.zeros(row_count, bool)
    copied[row_of_text[train_text_indices[is_copied]]] = True

    held_out = held_out_text_indices[held_out_text_indices < row_count]
    held_out_position_of_text = np.searchsorted(held_out, row_of_text[held_out_text_indices])  # each text's held-out row
    shared, exact, prompt_in_train = (np.zeros(len(held_out), bool) for _ in range(3))
    shared[held_out_position_of_text[is_shared]] = True
    prompt_in_train[held_out_position_of_text[stands_with_answer]] = True
    is_exact = (prints.exact[held_out_text_indices] != 0) & (
        _first_match(prints.exact[train_text_indices], prints.exact[held_out_text_indices]) >= 0
    )
    exact[held_out_position_of_text[is_shared & is_exact]] = True
    partner = np.full(len(held_out), -1, np.int64)
    for is_partnered in ((match_by_prompt >= 0) & ~is_shared, is_shared):
        partner[held_out_position_of_text[is_partnered]] = row_of_text[best_match[is_partnered]]
    row_numbers = np.arange(row_count)
    return Overlap(
        held_out=held_out,
        train=row_numbers[~prints.held_out[:row_count]],
        task=prints.task[:row_count],
        shared=shared,
        exact=exact,
        other_answer=prompt_in_train & ~shared,
        partner=partner,
        copied=copied,
    )


def _find_talk(prints: Fingerprints) -> np.ndarray:
    """Turns that stand in several chats of one split, such as greetings, are no questions; bool of shape (texts,)."""
    is_talk = np.zeros(len(prints.task), bool)
    row_count = len(is_talk) - len(prints.row_of_extra_text)
    for split in (False, True):
        turns = row_count + np.flatnonzero(prints.is_chat_turn & (prints.held_out[row_count:] == split))
        _, group_of_turn, counts = np.unique(prints.normal[turns], return_inverse=True, return_counts=True)
        is_talk[turns] = counts[group_of_turn] >= MIN_CHATS_WITH_TALK
    return is_talk | np.isin(prints.normal, prints.normal[is_talk]) & (np.arange(len(is_talk)) >= row_count)


def _first_match(candidates: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Position in `candidates` of the first value equal to each of `values`; -1 where there is none."""
    if not len(candidates):
        return np.full(len(values), -1, np.int64)
    sorted_positions = np.argsort(candidates, kind="stable")
    insertions = np.searchsorted(candidates, values, sorter=sorted_positions)
    positions = sorted_positions[np.minimum(insertions, len(candidates) - 1)]
    return np.where(candidates[positions] == values, positions, -1)
