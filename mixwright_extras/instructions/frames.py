"""Frames: the words that nearly all completions of a task have in the same order, and the share of words between them.

The frame is what a few rows share with each other (longest matching blocks), and is then looked for in all rows that are
read. A row has it where all its words stand there in its order.
Left out on purpose: signs; several frames of one task; which of the words between decide.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.extend import Corpus, Reader, draw_sample, pc, rows_by_task

ROWS_READ, ROWS_READ_TOGETHER, CHARACTERS_READ, WORDS_READ = 500, 50_000, 8_000, 1_000
"""Completions that are read of one task and of all tasks (those with most rows first), and characters and words of each;
aligning repeated words takes time by the square of these.
"""
MIN_ROWS = 20
"""Completions of a task, below which nothing is said."""
BASES, ROWS_COMPARED = 2, 12
"""Rows that a frame is sought in, and rows that each is compared with."""
LEAST_MATCHED = 0.8
"""Share of the rows compared that must share a word of the frame in its place."""
LEAST_FRAME = 0.5
"""Share of all words that a frame must have."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Frame:
    """What the completions of a task have in common."""

    task: str
    """Its name."""
    text: str
    """The frame, with an ellipsis where words vary."""
    rows: int
    """Completions that were read."""
    with_frame: int
    """Those of them that have the frame."""
    words: int
    """Words of all of them."""
    varying: int
    """Words beside the frame; of rows without it all."""


def find_frames(corpus: Corpus) -> list[Frame]:
    """The frame of each task's completions, where there is one and something beside it varies. Bounded memory."""
    reader, found, left = Reader(corpus), list[Frame](), ROWS_READ_TOGETHER
    has_completion = pc.is_valid(corpus.table["target"]).combine_chunks().to_numpy(zero_copy_only=False)
    by_task = {task: numbers[has_completion[numbers]] for task, numbers in rows_by_task(corpus, "train").items()}
    for task in sorted(by_task, key=lambda name: (-len(by_task[name]), name)):
        numbers = draw_sample(by_task[task], min(ROWS_READ, left))
        if len(numbers) < MIN_ROWS:
            break
        left -= len(numbers)
        if (frame := find_frame(task, [row.written for row in reader.rows(numbers)])) is not None:
            found.append(frame)
    return sorted(found, key=lambda one: one.task)


def find_frame(task: str, completions: Sequence[str]) -> Frame | None:
    """The frame of these completions; None where they are too few, all the same, or have none of half of their words."""
    completions = [text for text in completions if text.strip()]
    if len(completions) < MIN_ROWS:
        return None
    others = [_read(completions[place]) for place in draw_sample(np.arange(len(completions)), ROWS_COMPARED).tolist()]
    if _longest_possible(others) < LEAST_FRAME * sum(map(len, others)) / len(others):
        return None  # most texts end here, before anything is aligned
    middle = sorted(others, key=len)[len(others) // 3 :][:BASES]
    frame, text = max((_align(base, others) for base in middle), key=lambda one: len(one[0]))
    rows = [_read(text) for text in completions]
    if len({*map(tuple, rows)}) == 1:
        return None
    total, with_frame = sum(map(len, rows)), sum(_has(words, frame) for words in rows)
    varying = total - with_frame * len(frame)
    return Frame(task, text, len(rows), with_frame, total, varying) if varying <= (1 - LEAST_FRAME) * total else None


def _read(text: str) -> list[str]:
    return _WORD.findall(text[:CHARACTERS_READ])[:WORDS_READ]


def _longest_possible(rows: Sequence[Sequence[str]]) -> int:
    """Words that a frame of these rows has at most, from how often each word stands in them."""
    counts = [Counter(words) for words in rows]
    lacking = len(rows) - math.ceil(LEAST_MATCHED * len(rows))
    return sum(sorted(count[word] for count in counts)[lacking] for word in set[str]().union(*counts))


def _align(base: Sequence[str], others: Sequence[Sequence[str]]) -> tuple[list[str], str]:
    """Words of a row that most others share in this order, and how they are written."""
    counts = np.zeros(len(base))
    for other in others:
        counts[list(_shared(base, other))] += 1
    kept = np.flatnonzero(counts >= LEAST_MATCHED * len(others)).tolist()
    return [base[place] for place in kept], _write(base, kept) if kept else ""


def _shared(words: Sequence[str], others: Sequence[str]) -> Iterator[int]:
    """Places of the words that stand in both, in one order."""
    for block in difflib.SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks():
        yield from range(block.a, block.a + block.size)


def _has(words: Sequence[str], frame: Sequence[str]) -> bool:
    """Whether all words of the frame stand there in its order."""
    left = iter(words)
    return all(word in left for word in frame)


def _write(words: Sequence[str], kept: Sequence[int]) -> str:
    """The kept words as a text, with an ellipsis wherever some are left out."""
    ends = [-1, *kept, len(words)]
    parts = [
        [*(["\u2026"] if after > place + 1 else []), *words[after : after + 1]] for place, after in itertools.pairwise(ends)
    ]
    return " ".join(word for part in parts for word in part)
