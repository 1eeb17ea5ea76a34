"""Check of completions that depend on a column that the model will not see: retrieved texts, notes, a teacher's hints.

Source: Kim et al. 2026 (arXiv 2603.24472): a teacher that knows more writes what the student cannot; the test is our own.
Unit: rows whose completion has words or numbers of the column that the prompt lacks, beyond chance.
Cost: at most 2,000 rows of a task, and of a task that is told 100,000, are read; some 5 ms for a column of 3,000 words.
Blind spot: what the model knows by itself, or could work out from the prompt, counts as unseen; paraphrases.

A row's score is the sum, over the pieces of its completion that its prompt lacks and a context has, of the logarithm of how
rare the piece is among the contexts of the task. What counts is the lead of its own context over those of other rows. The
limit is a lead that one in `CHANCE_OF_A_ROW` pairs of a completion and another row's context exceeds, so that as many rows
exceed it by chance where completions and contexts have nothing to do with each other.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixwright.audit.rows import (
    SAMPLE_ROWS,
    SAMPLE_ROWS_TOGETHER,
    Reader,
    check_columns,
    draw_sample,
    rows_by_task,
    sample_tasks,
)
from mixwright.audit.text import to_visible
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.estimates.intervals import binomial_tail
from mixwright.records import Example, Observation, plain

CONTEXT_WORDS = frozenset(
    {"article", "background", "context", "conversation", "ctx", "doc", "document", "evidence", "excerpt", "hint", "history"}
    | {"knowledge", "memory", "note", "passage", "previous", "privileged", "reference", "retrieval", "retrieved", "search"}
    | {"snippet", "source", "teacher", "turn"}
)
"""Words of a column's name by which it is taken for what whoever wrote the completions has seen."""
MIN_CONTEXTS = 20
"""Different contexts of a task's rows, below which nothing is said."""
MIN_WORDS = 4
"""Words that a column has in half of its rows, at least: shorter ones are labels."""
CHANCE_OF_A_ROW = 0.002
"""Share of pairs of a completion and another row's context whose lead exceeds the limit."""
OTHERS_AS_NEAR = 0.01
"""Share of other contexts that may score as high for a row's completion as its own does."""
COMMON_SHARE = 0.1
"""Pieces in a larger share of the contexts count nothing: they are the words of a domain, and come together."""
DIGITS = 9
"""Of a lead: sums in another order are equal then."""
CHANCE_OF_A_TASK = 0.001
"""Probability that so many rows exceed the limit by chance, for all tasks and columns together."""
LEAST_SHARE = 0.05
"""Share of a task's rows that rest on a column, from which on it is told."""
ANSWER_SHARE = 0.6
"""Where completions hold this share of a column's pieces in half of the rows, the column is the answer, and no context."""
MAX_PIECES_SHOWN = 3
REMEDY = (
    "Add the column to the prompt, or remove these rows (--out FOLDER lists them); keep rows whose facts the model knows."
)
NULL = "the columns of other rows"
_PIECE = re.compile(r"[^\W\d_]{4,}|[\w./:,#+-]*\d[\w./:,#+-]*")
_WORD = re.compile(r"\w+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
Resting = tuple[str, dict[str, Any]]
"""A row whose completion says what stands in its column alone: the rarest of it, and what is told of the row."""


class Unseen(Check):
    """Looks at training rows with a column that is called like a context.

    Args:
        columns: that are contexts, too, whatever their name.
    """

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each task and column that rows depend on, and a note on the other columns.

        Raises:
            InputError: no row has a column of these names.
        """
        check_columns(corpus, self.columns, "--context")
        reader, compared = Reader(corpus), list[tuple[str, _Comparison]]()
        numbers_by_task = _rows_with_columns(corpus, self.columns)
        for task, rows in sample_tasks(reader, numbers_by_task, MIN_CONTEXTS):
            compared += [(task, _Comparison(name, kept)) for name, kept in _choose_columns(rows, self.columns)]
        observations, sound, left = list[Observation](), list[str](), SAMPLE_ROWS_TOGETHER
        for task, one in sorted(compared, key=lambda pair: (pair[0], pair[1].column)):
            if not one.is_beyond_chance(len(compared)):
                sound.append(one.column)
                continue
            numbers, resting, read = numbers_by_task[task], one.resting, one.count
            if len(numbers) > SAMPLE_ROWS:
                resting, read = one.read_all(reader, draw_sample(numbers, max(left, SAMPLE_ROWS)))
                left -= read
            observations.append(_observe(task, one.column, resting, read))
        if sound:
            names = ", ".join(sorted(set(map(repr, sound))))
            text = f"Completions do not depend on {names} in {len(sound)} of {len(compared)} tasks and columns."
            observations.append(Observation("unseen", None, "info", len(sound), len(compared), text, "", NULL))
        return observations


def _observe(task: str, column: str, resting: Sequence[Resting], read: int) -> Observation:
    count, common = len(resting), Counter(rarest for rarest, _ in resting)
    shown = ", ".join(repr(piece) for piece, _ in common.most_common(MAX_PIECES_SHOWN))
    text = f"{count:,} of {read:,} rows with a column {column!r} ({count / read:.0%}) have a completion that uses "
    text += f"its text, which the prompt lacks, such as {shown}. "
    text += "A model trained without it may learn to make such things up."
    evidence = tuple(row for _, row in resting)
    return Observation("unseen", task, "warning", count, read, text, REMEDY, NULL, evidence)


def _rows_with_columns(corpus: Corpus, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """Task -> numbers of the training rows that may have a context, from the text of their further columns."""
    words = "|".join(sorted({*CONTEXT_WORDS, *(re.escape(json.dumps(name)[1:-1]) for name in columns)}))
    has_column = pc.match_substring_regex(corpus.table["extra"], f'"[^"]*({words})[^"]*":', ignore_case=True)
    marked = has_column.combine_chunks().to_numpy(zero_copy_only=False).astype(bool)
    if not marked.any():
        return {}
    own = {task: numbers[marked[numbers]] for task, numbers in rows_by_task(corpus, "train").items()}
    return {task: numbers for task, numbers in own.items() if len(numbers)}


@dataclass(frozen=True)
class _ContextRow:
    """What of a row is compared."""

    id: str
    source: str
    unseen: frozenset[str]
    """Pieces of the completion that the prompt lacks; of runs those with no long word of the prompt."""
    taken: frozenset[str]
    """Of these, what its column has."""
    text: str
    """Of the column."""
    answer_share: float
    """Share of the column's pieces that the completion has."""

    @staticmethod
    def read(row: Example, column: str) -> _ContextRow | None:
        """Of one row; None where it has no completion, or nothing in the column."""
        text, completion = flatten(row.extra.get(column)), plain(row.target) or plain(row.chosen) or row.answer or ""
        context, said = pieces(text), pieces(completion)
        if not context or not said:
            return None
        asked = pieces(plain(row.prompt) or "")
        unseen = frozenset(piece for piece in said - asked if asked.isdisjoint(piece.split()))
        return _ContextRow(row.id, row.source, unseen, unseen & context, text, len(context & said) / len(context))


def _choose_columns(rows: Sequence[Example], columns: Sequence[str]) -> Iterator[tuple[str, list[_ContextRow]]]:
    """Columns that are contexts, with the rows that have them."""
    names = Counter(name for row in rows for name in row.extra)
    for name in sorted(names):
        if names[name] < MIN_CONTEXTS or not (name in columns or is_context_name(name)):
            continue
        kept = [one for row in rows if (one := _ContextRow.read(row, name)) is not None]
        if len({one.text for one in kept}) < MIN_CONTEXTS:
            continue
        words = float(np.median([len(row.text.split()) for row in kept]))
        share = float(np.median([row.answer_share for row in kept]))
        if name in columns or (words >= MIN_WORDS and share < ANSWER_SHARE):
            yield name, kept


class _Comparison:
    """Completions of a sample beside all different contexts of it. Of a context is kept what some completion says."""

    def __init__(self, column: str, rows: Sequence[_ContextRow]) -> None:
        self.column, self.count = column, len(rows)
        self.places = {text: place for place, text in enumerate(dict.fromkeys(row.text for row in rows))}
        said, found = frozenset[str]().union(*(row.unseen for row in rows)), defaultdict[str, list[int]](list)
        for text, place in self.places.items():
            for piece in pieces(text) & said:
                found[piece].append(place)
        self.found_in = {piece: np.array(places) for piece, places in found.items()}
        most = max(COMMON_SHARE * len(self.places), 1)
        self.weights = {
            piece: math.log(len(self.places) / len(places)) if len(places) <= most else 0.0
            for piece, places in found.items()
        }
        leads = [self._compare(row) for row in rows]
        others = np.sort(np.concatenate([others for _, others in leads]))
        self.limit = max(0.0, float(others[-1 - int(CHANCE_OF_A_ROW * len(others))]))
        """Lead that has to be exceeded."""
        self.resting = [self._describe(row) for row, (own, _) in zip(rows, leads, strict=True) if own > self.limit]
        """Rows of the sample that rest on their context."""

    def _compare(self, row: _ContextRow) -> tuple[float, np.ndarray]:
        """How far the score of a row's own context leads that of the nearest others, and how far each other one does."""
        scores = np.zeros(len(self.places))
        for piece in row.unseen:
            if piece in self.found_in:
                scores[self.found_in[piece]] += self.weights[piece]
        if row.text in self.places:
            own, others = scores[self.places[row.text]], np.delete(scores, self.places[row.text])
        else:
            own, others = sum(map(self._weigh, row.taken)), scores
        near = np.sort(others)[-1 - int(OTHERS_AS_NEAR * len(others))]
        return round(float(own - near), DIGITS), np.round(others - near, DIGITS)

    def _weigh(self, piece: str) -> float:
        return self.weights.get(piece, math.log(len(self.places)))

    def _describe(self, row: _ContextRow) -> Resting:
        found = sorted(row.taken, key=lambda piece: (-self._weigh(piece), piece))
        return found[0], {"id": row.id, "source": row.source, "column": self.column, "only there": ", ".join(found)}

    def read_all(self, reader: Reader, numbers: np.ndarray) -> tuple[list[Resting], int]:
        """Rows of these numbers that rest on their context, and how many have the column; a part is read at a time."""
        resting, count = [], 0
        for _, example in reader.iterate(numbers):
            row = _ContextRow.read(example, self.column)
            if row is not None:
                count += 1
                resting += [self._describe(row)] if self._compare(row)[0] > self.limit else []
        return resting, count

    def is_beyond_chance(self, comparisons: int) -> bool:
        """Whether more rows of the sample rest on their context than chance explains, and enough to be told."""
        p = binomial_tail(len(self.resting), self.count, max(CHANCE_OF_A_ROW, 1 / (self.count * (len(self.places) - 1))))
        return len(self.resting) >= LEAST_SHARE * self.count and p * comparisons < CHANCE_OF_A_TASK


def is_context_name(name: str) -> bool:
    """Whether a column is called like something that its writer has read: `contexts`, `retrieved_docs`, `teacher_notes`."""
    return not CONTEXT_WORDS.isdisjoint(name_words(name))


def name_words(name: str) -> set[str]:
    """The words of a column's name, without case and plural, and the whole of it."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return {name.lower(), *(word.removesuffix("s") for word in words)}


def pieces(text: str) -> frozenset[str]:
    """Numbers, codes with a digit, words of four letters or more, and runs of three words, without case.

    Thousands lose their commas.
    """
    visible = to_visible(text).lower()
    found = (piece.strip("./:,#+-") for piece in _PIECE.findall(visible))
    words = _WORD.findall(visible)
    runs = (" ".join(run) for run in zip(words, words[1:], words[2:], strict=False))
    return frozenset(_THOUSANDS.sub("", piece) for piece in found) | frozenset(runs)


def flatten(value: Any) -> str:
    """All texts of a value: of a list, or of the values of an object, one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(filter(None, map(flatten, value.values())))
    if isinstance(value, Iterable):
        return "\n".join(filter(None, map(flatten, value)))
    return "" if value is None or isinstance(value, bool) else str(value)
