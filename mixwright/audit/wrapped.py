"""Index of copies with text around them: a held-out prompt inside a longer training text, or the other way round.

A copy is the same words, numbers and signs in the same order, without a gap, and ends where the other ends: `12 + 35` does
not stand in `12 + 35 * 2`. Runs of three words that many held-out prompts of a task have are its template; a template around
a question may be another one, or none, where both answers are known and agree.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.audit.rows import Row
from mixwright.audit.text import indented_lines, normal_words, read_conclusion, words_and_breaks

RUN_WORDS = 3
"""Words of a run."""
MIN_PROMPT_WORDS = 4
"""Words of a prompt below which it is not sought inside others."""
MAX_WORDS_INDEXED = 1_000_000
"""Words of held-out prompts that are indexed; rows behind them are left out."""
TEMPLATE_SHARE = 0.2
"""A run of words in this share of a task's different prompts belongs to its template; that of a slot seldom does."""
GENERIC_SHARE = 0.05
"""A training prompt all of whose runs stand in this share of held-out rows is no question of its own."""
ANSWER_TAIL_WORDS = 400
"""Words behind a copy that its answer may stand in."""
_SIGNS = frozenset("+-*/^%!<>\u00d7\u00f7")
_BITS = 22


Match = tuple[int, bool]
"""Position of a held-out row that a train row holds (True) or that holds a train row, with the same answer or none."""


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    """Its words, joined by spaces."""
    start: int
    """First and, exclusive, last word of what is sought: all, or what is not template."""
    stop: int
    content_stop: int
    """One past the last word that is not template."""


class WrappedIndex:
    """Held-out rows, searchable by the words they are made of.

    Args:
        held_out: rows to find copies of; the caller bounds their number, this bounds their words.
    """

    def __init__(self, held_out: Sequence[Row]) -> None:
        word_lists: list[list[str]] = []
        word_count = 0
        for row in held_out:
            prompt_words = normal_words(row.prompt)
            word_count += len(prompt_words)
            if word_count > MAX_WORDS_INDEXED:
                break
            word_lists.append(prompt_words)
        self.rows = held_out[: len(word_lists)]
        runs_by_row = [np.array(list(map(hash, _runs(prompt_words))), np.int64) for prompt_words in word_lists]
        template_runs = _find_template_runs(self.rows, runs_by_row)
        self.entries = [
            _make_entry(prompt_words, row_runs, template_runs[row.task])
            for row, prompt_words, row_runs in zip(self.rows, word_lists, runs_by_row, strict=True)
        ]
        own_runs = [np.unique(row_runs) for row_runs in runs_by_row]
        all_runs = np.concatenate([np.zeros(0, np.int64), *own_runs])
        order = np.argsort(all_runs, kind="stable")
        self._runs = all_runs[order]
        self._run_rows = np.repeat(np.arange(len(own_runs)), [len(runs) for runs in own_runs])[order]
        self._run_filter = bytearray(1 << _BITS)
        for run in self._runs.tolist():
            self._run_filter[run & ((1 << _BITS) - 1)] = 1
        self._max_generic_rows = max(RUN_WORDS, GENERIC_SHARE * len(word_lists))
        self._anchors: dict[int, list[int]] = defaultdict(list)
        for position, (entry, row_runs) in enumerate(zip(self.entries, runs_by_row, strict=True)):
            sought_runs = row_runs[entry.start : entry.stop - RUN_WORDS + 1]
            first_places, end_places = self._find_places(sought_runs)
            rows_with_run = end_places - first_places
            is_searchable = len(word_lists[position]) >= MIN_PROMPT_WORDS and entry.stop - entry.start >= RUN_WORDS
            # else nothing of it is its own, and all would be compared
            if is_searchable and rows_with_run.min() <= self._max_generic_rows:
                self._anchors[int(sought_runs[np.argmin(rows_with_run)])].append(position)
        self._anchor_runs = frozenset(self._anchors)
        self._sought_texts = [f" {' '.join(self.sought_words(position))} " for position in range(len(self.entries))]

    def _find_places(self, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows that have each run begin and end in `_run_rows`."""
        return np.searchsorted(self._runs, runs, side="left"), np.searchsorted(self._runs, runs, side="right")

    def sought_words(self, position: int) -> list[str]:
        """The words of an indexed row that are looked for."""
        entry = self.entries[position]
        return entry.text.split(" ")[entry.start : entry.stop]

    def matches(self, row: Row, *, is_turn: bool = False) -> Iterator[Match]:
        """Every indexed row that the train row holds or is held by; a turn of a chat is only looked for inside others.

        Args:
            row: a train row.
            is_turn: whether it is one turn of the chat that was given before.
        """
        prompt_words = normal_words(row.prompt)
        runs = list(map(hash, _runs(prompt_words)))
        may_hold = [] if is_turn else self._anchor_runs.intersection(runs)
        may_be_held = len(prompt_words) >= MIN_PROMPT_WORDS and all(
            self._run_filter[run & ((1 << _BITS) - 1)] for run in runs
        )
        if not may_hold and not may_be_held:
            return
        joined_words = f" {' '.join(prompt_words)} "
        if may_hold:
            for position in {position for run in may_hold for position in self._anchors[run]}:
                if self._sought_texts[position] in joined_words and self._match_inside(position, row):
                    yield position, True
        if may_be_held:
            yield from self._match_around(row, np.array(runs, np.int64), joined_words)

    def _match_inside(self, position: int, row: Row) -> bool:
        """Whether the indexed row's words stand inside the train row's."""
        entry, held_out = self.entries[position], self.rows[position]
        if indented_lines(held_out.prompt) not in indented_lines(row.prompt):
            return False
        inner, outer = _parse(held_out.prompt), _parse(row.prompt)
        both_answered = bool(held_out.answer and row.answer)
        for start, stop in ((0, len(inner.words)), (entry.start, entry.stop)):
            end = inner.find_end(outer, start, stop)
            if end < 0 or (stop - start == len(outer.words) and stop - start == len(inner.words)):
                continue
            agrees = _answers_agree(held_out, row) or _answer_follows(held_out, outer.words[end : end + ANSWER_TAIL_WORDS])
            if agrees and (both_answered or stop - start == len(inner.words)):
                return True
        return False

    def _match_around(self, row: Row, runs: np.ndarray, joined_words: str) -> Iterator[Match]:
        """Indexed rows that end with the train row's words, but for their template and a word or three (`Answer:`)."""
        first_places, end_places = self._find_places(runs)
        rarest = int(np.argmin(end_places - first_places))
        holders = self._run_rows[first_places[rarest] : end_places[rarest]].tolist()
        # of more holders nothing but what many held-out prompts have
        for position in holders if len(holders) <= self._max_generic_rows else ():
            entry = self.entries[position]
            if joined_words[1:-1] not in entry.text:
                continue
            _, found_text, text_behind = f" {entry.text} ".rpartition(joined_words)
            min_end = entry.content_stop - MIN_PROMPT_WORDS + 1
            is_at_end = (
                found_text
                and len(entry.text) + 2 > len(joined_words)
                and entry.text.count(" ") + 1 - len(text_behind.split()) >= min_end
            )
            if is_at_end and indented_lines(row.prompt) in indented_lines(self.rows[position].prompt):
                inner, outer = _parse(row.prompt), _parse(self.rows[position].prompt)
                is_held = inner.find_end(outer, 0, len(inner.words), last=True) >= min_end
                if is_held and _answers_agree(self.rows[position], row):
                    yield position, False


class _Text:
    """Words of a text, and where clauses and lines end."""

    def __init__(self, text: str) -> None:
        self.words: list[str] = []
        self.breaks: set[int] = set()
        for token in words_and_breaks(text):
            if token == "\n":
                self.breaks.add(len(self.words))
            else:
                self.words.append(token)

    def find_end(self, outer: _Text, start: int, stop: int, *, last: bool = False) -> int:
        """Where the words from `start` to `stop` end in `outer`: first or last such place; -1 when they are not there."""
        sought_words = self.words[start:stop]
        starts = range(len(outer.words) - len(sought_words) + 1)
        for position in reversed(starts) if last else starts:
            if (
                outer.words[position] == sought_words[0]
                and outer.words[position : position + len(sought_words)] == sought_words
            ):
                end = position + len(sought_words)
                if self._begins_at_boundary(outer, start, position) and self._ends_at_boundary(outer, stop, end):
                    return end
        return -1

    def _begins_at_boundary(self, outer: _Text, start: int, position: int) -> bool:
        if position == 0 or position in outer.breaks or _is_word(self.words[start]):
            return True
        word_before = outer.words[position - 1]
        return _is_word(word_before) or (start > 0 and word_before == self.words[start - 1])

    def _ends_at_boundary(self, outer: _Text, stop: int, end: int) -> bool:
        if end == len(outer.words) or end in outer.breaks:
            return True
        word_after, next_word = outer.words[end], self.words[stop] if stop < len(self.words) else None
        if word_after == next_word:
            return True
        if _is_word(word_after):
            return stop < len(self.words) or stop not in self.breaks
        return _is_word(self.words[stop - 1]) or not (word_after in _SIGNS or word_after[0].isdigit())


def _is_word(token: str) -> bool:
    """Return whether a token has letters and vowel signs only: not `x²`."""
    return token.isalpha() or all(unicodedata.category(character)[0] in "LM" for character in token)


_parse = functools.lru_cache(maxsize=512)(_Text)


def _answers_agree(held_out: Row, row: Row) -> bool:
    return not held_out.answer or not row.answer or read_conclusion(held_out.answer) == read_conclusion(row.answer)


def _answer_follows(held_out: Row, tail: list[str]) -> bool:
    """Whether the answer stands in the words behind the copy."""
    answer = " ".join(normal_words(read_conclusion(held_out.answer)))
    return bool(answer) and f" {answer} " in f" {' '.join(tail)} ".casefold()


def _runs(prompt_words: list[str]) -> Iterator[tuple[str, str, str]]:
    return zip(prompt_words, prompt_words[1:], prompt_words[2:], strict=False)


def _find_template_runs(rows: Sequence[Row], runs_by_row: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Task -> runs in more than `TEMPLATE_SHARE` of its different prompts; in three at least."""
    runs_by_prompt: dict[str, dict[bytes, np.ndarray]] = defaultdict(dict)
    for row, row_runs in zip(rows, runs_by_row, strict=True):
        runs_by_prompt[row.task][row_runs.tobytes()] = np.unique(row_runs)
    common_runs = {}
    for task, runs_of_prompts in runs_by_prompt.items():
        runs, counts = np.unique(np.concatenate(list(runs_of_prompts.values())), return_counts=True)
        common_runs[task] = runs[counts >= max(3, TEMPLATE_SHARE * len(runs_of_prompts))]
    return common_runs


def _make_entry(prompt_words: list[str], runs: np.ndarray, template_runs: np.ndarray) -> _Entry:
    is_template = np.zeros(len(prompt_words), bool)
    for word_index in np.flatnonzero(np.isin(runs, template_runs)).tolist():
        is_template[word_index : word_index + RUN_WORDS] = True
    word_index = 0
    for are_letters, group in itertools.groupby(prompt_words, _is_word):  # no number is template, nor are its signs
        group_words = list(group)
        if not are_letters and any(any(map(str.isdigit, word)) for word in group_words):
            is_template[word_index : word_index + len(group_words)] = False
        word_index += len(group_words)
    content_places = np.flatnonzero(~is_template).tolist()
    start, stop = (content_places[0], content_places[-1] + 1) if content_places else (0, 0)
    content = stop
    if stop - start < RUN_WORDS:  # nothing of its own to speak of: the whole prompt, and chance will explain it or not
        start, stop, content = 0, len(prompt_words), content or len(prompt_words)
    return _Entry(" ".join(prompt_words), start, stop, content)
