"""Overlap of the splits: held-out rows that stand in train too, by 64-bit fingerprints, whatever their task.

Left out on purpose: judging. An overlap is a leak or chance only beside its null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixwright.audit.rows import Fingerprints

TALK_CHATS = 3
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
    """bool: the prompt stands in train, only ever with other answers."""
    partner: np.ndarray
    """int64: row number of the first train row with that prompt (and answer, where shared); -1 without any."""
    copied: np.ndarray
    """bool of shape (rows,): train rows that are a held-out item."""


def find_overlap(prints: Fingerprints) -> Overlap:
    """Compare the splits. Answers agree when the final answers do."""
    rows, owner = len(prints.task) - len(prints.row_of_extra_text), prints.row
    question = ~_talk(prints)
    held, train = np.flatnonzero(question & prints.held_out), np.flatnonzero(question & ~prints.held_out)
    pair, prompt = prints.combined(prints.normal, prints.final), prints.normal
    by_prompt, by_item = _first(prompt[train], prompt[held]), _first(pair[train], pair[held])
    open_ended = train[prints.final[train] == 0]
    by_open = _first(prompt[open_ended], prompt[held])
    unanswered = (prints.final[held] == 0) & (by_prompt >= 0)
    found = (by_item >= 0) | (by_open >= 0) | unanswered
    nearest = np.full(len(held), -1, np.int64)
    for where, texts in ((by_prompt, train), (by_open, open_ended), (by_item, train)):  # the best match is written last
        nearest[where >= 0] = texts[where[where >= 0]]
    same = np.isin(pair[train], pair[held]) | np.isin(prompt[train], prompt[held][unanswered])
    same |= (prints.final[train] == 0) & np.isin(prompt[train], prompt[held])
    copied = np.zeros(rows, bool)
    copied[owner[train[same]]] = True

    held_out = held[held < rows]
    of = np.searchsorted(held_out, owner[held])  # each text's held-out row
    shared, exact, asked = (np.zeros(len(held_out), bool) for _ in range(3))
    shared[of[found]], asked[of[by_prompt >= 0]] = True, True
    as_it_is = (prints.exact[held] != 0) & (_first(prints.exact[train], prints.exact[held]) >= 0)
    exact[of[found & as_it_is]] = True
    partner = np.full(len(held_out), -1, np.int64)
    for which in ((by_prompt >= 0) & ~found, found):
        partner[of[which]] = owner[nearest[which]]
    everything = np.arange(rows)
    return Overlap(
        held_out=held_out,
        train=everything[~prints.held_out[:rows]],
        task=prints.task[:rows],
        shared=shared,
        exact=exact,
        other_answer=asked & ~shared,
        partner=partner,
        copied=copied,
    )


def _talk(prints: Fingerprints) -> np.ndarray:
    """Turns that stand in several chats of one split, such as greetings, are no questions; bool of shape (texts,)."""
    found = np.zeros(len(prints.task), bool)
    rows = len(found) - len(prints.row_of_extra_text)
    for split in (False, True):
        turns = rows + np.flatnonzero(prints.is_chat_turn & (prints.held_out[rows:] == split))
        _, which, counts = np.unique(prints.normal[turns], return_inverse=True, return_counts=True)
        found[turns] = counts[which] >= TALK_CHATS
    return found | np.isin(prints.normal, prints.normal[found]) & (np.arange(len(found)) >= rows)


def _first(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Position in `known` of the first value equal to each of `wanted`; -1 where there is none."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known, wanted, sorter=order)
    found = order[np.minimum(at, len(known) - 1)]
    return np.where(known[found] == wanted, found, -1)
