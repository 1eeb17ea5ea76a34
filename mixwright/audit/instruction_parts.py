"""Prompts divided into an instruction and an input, by which of their parts come again in other prompts.

Parts are sentences, lines, quotations, and what stands before a colon. An instruction's parts stand in many prompts, and an
input's parts in few. Where no part does, the system message or the first paragraph is the instruction, if what follows comes
again under another one.
Left out on purpose: instructions in the middle of a sentence (`Is 7 even?`), and what stands in the middle of long prompts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mixwright.audit.instruction_wording import REQUESTS
from mixwright.audit.rows import Reader, draw_sample, hash64, rows_by_task
from mixwright.audit.text import to_visible
from mixwright.corpus import Corpus
from mixwright.records import Example, Text, plain

ROWS_READ_OF_TASK, LEAST_READ_OF_TASK, ROWS_READ_TOGETHER = 10_000, 200, 100_000
"""Training rows that are read: of one task at most, of one of many tasks, and of all tasks."""
END_CHARACTERS = 1_000
"""Characters that are read at either end of a prompt."""
END_PARTS = 3
"""Parts at either end of a long input by which it is known."""
LEAST_PROMPTS = 8
"""Different prompts that a part of an instruction stands in."""
SHORT_ANSWER = 40
"""Characters of an answer that is kept as it is; of longer ones a hash is kept."""
_PART = re.compile(r"[^\n\"\u201c\u201d`.?!:]+(?:[.?!:]+(?!\s|$)[^\n\"\u201c\u201d`.?!:]*)*[.?!:]*|[.?!:]+")
_SYSTEM = ("system", "developer")


class Part(NamedTuple):
    """A sentence, line or quotation of a prompt."""

    start: int
    """First character of it in the visible text."""
    end: int
    """The character behind it."""
    key: int
    """Hash of its text, without outer marks and with single spaces."""


class Divided(NamedTuple):
    """One row's instruction, input and answer."""

    number: int
    """Of the row in the corpus."""
    task: int
    """Index of its task."""
    instruction: tuple[int, ...]
    """Keys of the parts that are its instruction; empty where none was found."""
    input: tuple[int, ...]
    """Keys of the others."""
    answer: str
    """The answer in the case that it is written in; of long ones a hash."""
    forms: int
    """Which of the `REQUESTS` the answer fulfils, one bit for each."""


class _Read(NamedTuple):
    number: int
    task: int
    keys: tuple[int, ...]
    system: int
    """Parts of system messages, which come first."""
    paragraph: int
    """Parts of the first paragraph, where there is another one; else 0."""
    is_cut: bool
    answer: str
    forms: int


def divide_rows(corpus: Corpus) -> tuple[list[str], list[Divided]]:
    """Tasks, and training rows of them, divided. Bounded memory: of texts hashes are kept."""
    train = rows_by_task(corpus, "train")
    tasks = sorted(train, key=lambda name: (-len(train[name]), name))
    share = min(ROWS_READ_OF_TASK, max(LEAST_READ_OF_TASK, ROWS_READ_TOGETHER // max(len(tasks), 1)))
    reader, rows, left = Reader(corpus), list[_Read](), ROWS_READ_TOGETHER
    for code, task in enumerate(tasks):
        numbers = draw_sample(train[task], min(share, left))
        left -= len(numbers)
        for first in range(0, len(numbers), 2_000):
            some = np.asarray(numbers[first : first + 2_000])
            rows += [_read(number, code, row) for number, row in reader.examples(some).items()]
    return tasks, _divide(rows)


def read_parts(text: str) -> list[Part]:
    """The parts of a text that was cut."""
    found = []
    for match in _PART.finditer(text):
        if stripped := match.group().strip():
            key = " ".join(stripped.strip(" \t.,;:?!'\u2018\u2019#*-=").split()) or stripped
            found.append(Part(*match.span(), hash64(key)))
    return found


def cut(text: str) -> str:
    """A visible text of bounded length, without the middle of a long one."""
    if len(text) > 2 * END_CHARACTERS:
        text = f"{text[:END_CHARACTERS]}\n{text[-END_CHARACTERS:]}"
    return to_visible(text)


def write_instruction(row: Example, instruction: Sequence[int]) -> str:
    """The instruction of a row as it is written, with an ellipsis for the input."""
    text, keys, kept, last = cut(plain(row.prompt)), {*instruction}, "", -1
    for part in read_parts(text):
        if part.key in keys:
            kept += text[last if last >= 0 else part.start : part.end]
            last = part.end
        elif last != -2 and kept:
            kept, last = kept + " \u2026 ", -2
    return kept.removesuffix(" \u2026 ").strip()


def write_answer(row: Example) -> str:
    """What the row is trained to answer, with single spaces and without a last full stop."""
    text = " ".join(to_visible(plain(row.target) or plain(row.chosen) or row.answer or "").split())
    return text.rstrip(" .") or text


def _read(number: int, task: int, row: Example) -> _Read:
    text, answer = cut(plain(row.prompt)), write_answer(row)
    parts = read_parts(text)
    system = _count_system_characters(row.prompt)
    blank = text.find("\n\n", system)
    return _Read(
        number,
        task,
        tuple(part.key for part in parts),
        sum(part.end <= system for part in parts) if system else 0,
        sum(part.start < blank for part in parts) if blank > 0 else 0,
        len(plain(row.prompt)) > 2 * END_CHARACTERS,
        answer if len(answer) <= SHORT_ANSWER else f"\n{hash64(answer)}",
        sum(request.is_fulfilled(answer) << bit for bit, request in enumerate(REQUESTS)),
    )


def _count_system_characters(prompt: Text) -> int:
    if isinstance(prompt, str):
        return 0
    first = next((at for at, message in enumerate(prompt) if message["role"] not in _SYSTEM), len(prompt))
    return len(cut(plain(prompt[:first]))) + 1 if first else 0


def _divide(rows: Sequence[_Read]) -> list[Divided]:
    prompts = {row.keys: None for row in rows}
    counts = Counter(key for keys in prompts for key in {*keys})
    divided = [_divide_by_counts(row, counts) for row in rows]
    heads: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
    for row, one in zip(rows, divided, strict=True):
        if not one.instruction and 0 < row.paragraph < len(row.keys):
            heads[row.keys[row.paragraph :]].add(row.keys[: row.paragraph])
    return [
        one._replace(instruction=row.keys[: row.paragraph], input=row.keys[row.paragraph :])
        if not one.instruction and len(heads.get(row.keys[row.paragraph :], ())) > 1
        else one
        for row, one in zip(rows, divided, strict=True)
    ]


def _divide_by_counts(row: _Read, counts: Mapping[int, int]) -> Divided:
    """Parts that stand in few prompts are the input, and those that stand in as few as the rarest part does, or twice."""
    rest = row.keys[row.system :]
    rarest = min((counts[key] for key in rest), default=0)
    is_input = [counts[key] < max(LEAST_PROMPTS, 2 * rarest + 1) for key in rest]
    given = tuple(key for key, own in zip(rest, is_input, strict=True) if own)
    asked = row.keys[: row.system] + tuple(key for key, own in zip(rest, is_input, strict=True) if not own)
    if row.is_cut and len(given) > 2 * END_PARTS:  # where the middle begins depends on the length of the instruction
        given = given[:END_PARTS] + given[-END_PARTS:]
    return Divided(row.number, row.task, asked if given else (), given, row.answer, row.forms)
