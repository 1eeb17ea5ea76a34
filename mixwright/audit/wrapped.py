"""Index of copies with text around them: a held-out prompt inside a longer training text, or the other way round.

A copy is the same words, numbers and signs in the same order, without a gap, and ends where the other ends: `12 + 35` does
not stand in `12 + 35 * 2`. Runs of three words that many held-out prompts of a task have are its template; a template around
a question may be another one, or none, where both answers are known and agree.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mixwright.audit.rows import Row
from mixwright.audit.text import broken_words, indented_lines, read_conclusion, words

RUN_WORDS = 3
"""Words of a run."""
MIN_PROMPT_WORDS = 4
"""Words of a prompt below which it is not sought inside others."""
MOST_WORDS_INDEXED = 1_000_000
"""Words of held-out prompts that are indexed; rows behind them are left out."""
TEMPLATE_SHARE = 0.2
"""A run of words in this share of a task's different prompts belongs to its template; that of a slot seldom does."""
GENERIC_SHARE = 0.05
"""A training prompt all of whose runs stand in this share of held-out rows is no question of its own."""
ANSWER_TAIL_WORDS = 400
"""Words behind a copy that its answer may stand in."""
_SIGNS = frozenset("+-*/^%!<>\u00d7\u00f7")
_BITS = 22


class Match(NamedTuple):
    """A held-out row that a train row holds, or that holds a train row."""

    at: int
    """Position in the index."""
    inside: bool
    """The held-out prompt stands in the training text; else the other way round."""
    agrees: bool
    """The answer is the same, or one of them is missing."""


@dataclass(frozen=True, slots=True)
class _Entry:
    words: str
    """Joined by spaces."""
    start: int
    """First and, exclusive, last word of what is sought: all, or what is not template."""
    stop: int
    content: int
    """One past the last word that is not template."""


class WrappedIndex:
    """Held-out rows, searchable by the words they are made of.

    Args:
        held_out: rows to find copies of; the caller bounds their number, this bounds their words.
    """

    def __init__(self, held_out: Sequence[Row]) -> None:
        lists: list[list[str]] = []
        total = 0
        for row in held_out:
            found = words(row.prompt)
            total += len(found)
            if total > MOST_WORDS_INDEXED:
                break
            lists.append(found)
        self.rows = held_out[: len(lists)]
        grams = [_grams(found) for found in lists]
        common = _common(self.rows, grams)
        self.entries = [
            _entry(found, here, common[row.task]) for row, found, here in zip(self.rows, lists, grams, strict=True)
        ]
        every, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, grams)]), return_counts=True)
        self._generic = max(RUN_WORDS, GENERIC_SHARE * len(lists))
        self._anchors: dict[int, list[int]] = defaultdict(list)
        for at, (entry, here) in enumerate(zip(self.entries, grams, strict=True)):
            sought = here[entry.start : entry.stop - RUN_WORDS + 1]
            common_to = counts[np.searchsorted(every, sought)]
            own = len(lists[at]) >= MIN_PROMPT_WORDS and entry.stop - entry.start >= RUN_WORDS
            if own and common_to.min() <= self._generic:  # else nothing of it is its own, and all would be compared
                self._anchors[int(sought[np.argmin(common_to)])].append(at)
        runs = np.concatenate([np.zeros(0, np.int64), *grams])
        order = np.argsort(runs, kind="stable")
        self._runs, self._owner = runs[order], np.repeat(np.arange(len(grams)), [len(here) for here in grams])[order]
        self._seen = bytearray(1 << _BITS)
        for run in every.tolist():
            self._seen[run & ((1 << _BITS) - 1)] = 1

    def sought(self, at: int) -> list[str]:
        """The words of an indexed row that are looked for."""
        entry = self.entries[at]
        return entry.words.split(" ")[entry.start : entry.stop]

    def matches(self, row: Row, found: list[str], *, turn: bool = False) -> Iterator[Match]:
        """Every indexed row that the train row holds or is held by; a turn of a chat is only looked for inside others.

        Args:
            row: a train row.
            found: the words of its prompt.
            turn: whether it is one turn of the chat that was given before.
        """
        grams, joined = _grams(found), f" {' '.join(found)} "
        runs = grams.tolist()
        if not turn:
            for at in {at for run in runs for at in self._anchors.get(run, ())}:
                if f" {' '.join(self.sought(at))} " in joined and (match := self._inside(at, row)):
                    yield match
        if len(found) >= MIN_PROMPT_WORDS and all(self._seen[run & ((1 << _BITS) - 1)] for run in runs):
            yield from self._around(row, grams, joined)

    def _inside(self, at: int, row: Row) -> Match | None:
        """The indexed row's words inside the train row's."""
        entry, held = self.entries[at], self.rows[at]
        if indented_lines(held.prompt) not in indented_lines(row.prompt):
            return None
        inner, outer = _parsed(held.prompt), _parsed(row.prompt)
        known = bool(held.answer and row.answer)
        for start, stop in ((0, len(inner.words)), (entry.start, entry.stop)):
            end = inner.ends_in(outer, start, stop)
            if end < 0 or (stop - start == len(outer.words) and stop - start == len(inner.words)):
                continue
            agrees = _same_answer(held, row) or _has_answer(held, outer.words[end : end + ANSWER_TAIL_WORDS])
            if stop - start == len(inner.words) or (known and agrees):
                return Match(at, True, agrees)
        return None

    def _around(self, row: Row, grams: np.ndarray, joined: str) -> Iterator[Match]:
        """Indexed rows that end with the train row's words, but for their template and a word or three (`Answer:`)."""
        low, high = (np.searchsorted(self._runs, grams, side=side) for side in ("left", "right"))
        rarest = int(np.argmin(high - low))
        holders = np.unique(self._owner[low[rarest] : high[rarest]]).tolist()
        for at in holders if len(holders) <= self._generic else ():  # else nothing but what many held-out prompts have
            entry = self.entries[at]
            _, stands, behind = f" {entry.words} ".rpartition(joined)
            least = entry.content - MIN_PROMPT_WORDS + 1
            ends = (
                stands and len(entry.words) + 2 > len(joined) and entry.words.count(" ") + 1 - len(behind.split()) >= least
            )
            if ends and indented_lines(row.prompt) in indented_lines(self.rows[at].prompt):
                inner, outer = _parsed(row.prompt), _parsed(self.rows[at].prompt)
                if inner.ends_in(outer, 0, len(inner.words), last=True) >= least:
                    yield Match(at, False, _same_answer(self.rows[at], row))


class _Text:
    """Words of a text, and where clauses and lines end."""

    def __init__(self, text: str) -> None:
        self.words: list[str] = []
        self.breaks: set[int] = set()
        for token in broken_words(text):
            if token == "\n":
                self.breaks.add(len(self.words))
            else:
                self.words.append(token)

    def ends_in(self, outer: _Text, start: int, stop: int, *, last: bool = False) -> int:
        """Where the words from `start` to `stop` end in `outer`: first or last such place; -1 when they are not there."""
        sought = self.words[start:stop]
        places = range(len(outer.words) - len(sought) + 1)
        for at in reversed(places) if last else places:
            if outer.words[at] == sought[0] and outer.words[at : at + len(sought)] == sought:
                end = at + len(sought)
                if self._left(outer, start, at) and self._right(outer, stop, end):
                    return end
        return -1

    def _left(self, outer: _Text, start: int, at: int) -> bool:
        if at == 0 or at in outer.breaks or self.words[start].isalpha():
            return True
        before = outer.words[at - 1]
        return before.isalpha() or (start > 0 and before == self.words[start - 1])

    def _right(self, outer: _Text, stop: int, end: int) -> bool:
        if end == len(outer.words) or end in outer.breaks:
            return True
        after, own = outer.words[end], self.words[stop] if stop < len(self.words) else None
        if after == own:
            return True
        if after.isalpha():
            return stop < len(self.words) or stop not in self.breaks
        return self.words[stop - 1].isalpha() or not (after in _SIGNS or after[0].isdigit())


@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> _Text:
    return _Text(text)


def _same_answer(held: Row, row: Row) -> bool:
    return not held.answer or not row.answer or read_conclusion(held.answer) == read_conclusion(row.answer)


def _has_answer(held: Row, tail: list[str]) -> bool:
    """Whether the answer stands in the words behind the copy."""
    answer = " ".join(words(read_conclusion(held.answer)))
    return bool(answer) and f" {answer} " in f" {' '.join(tail)} ".casefold()


def _grams(found: list[str]) -> np.ndarray:
    return np.array([hash(run) for run in zip(found, found[1:], found[2:], strict=False)], np.int64)


def _common(rows: Sequence[Row], grams: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Task -> runs in more than `TEMPLATE_SHARE` of its different prompts; in three at least."""
    different: dict[str, dict[bytes, np.ndarray]] = defaultdict(dict)
    for row, here in zip(rows, grams, strict=True):
        different[row.task][here.tobytes()] = np.unique(here)
    found = {}
    for task, prompts in different.items():
        runs, counts = np.unique(np.concatenate(list(prompts.values())), return_counts=True)
        found[task] = runs[counts >= max(3, TEMPLATE_SHARE * len(prompts))]
    return found


def _entry(found: list[str], grams: np.ndarray, common: np.ndarray) -> _Entry:
    covered = np.zeros(len(found), bool)
    for at in np.flatnonzero(np.isin(grams, common)).tolist():
        covered[at : at + RUN_WORDS] = True
    at = 0
    for letters, group in itertools.groupby(found, str.isalpha):  # no number is template, nor are its signs
        together = list(group)
        if not letters and any(any(map(str.isdigit, word)) for word in together):
            covered[at : at + len(together)] = False
        at += len(together)
    own = np.flatnonzero(~covered).tolist()
    start, stop = (own[0], own[-1] + 1) if own else (0, 0)
    content = stop
    if stop - start < RUN_WORDS:  # nothing of its own to speak of: the whole prompt, and chance will explain it or not
        start, stop, content = 0, len(found), content or len(found)
    return _Entry(" ".join(found), start, stop, content)
