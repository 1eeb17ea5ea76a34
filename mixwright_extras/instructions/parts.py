"""Prompts divided into an instruction and an input.

Columns `instruction` and `input` say it. Else a system message is instruction, and lines that a prompt begins or ends with,
if they stand there in eight prompts of the task or more. Where these cover less than half of the task, sentences that nearly
all prompts begin or end with are instruction.
Left out on purpose: an instruction of its own in each prompt, without columns; one in the middle of a sentence (`Is 7
even?`); and what stands in the middle of long prompts.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

import numpy as np

from mixwright.extend import (
    Corpus,
    Example,
    Reader,
    Text,
    common_start,
    draw_sample,
    find_stated_answers,
    hash64,
    plain,
    rows_by_task,
    to_visible,
)
from mixwright_extras.instructions.wording import REQUESTS

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
WRAPPED_CHARACTERS = 300
"""Characters up to which an answer is looked for inside of a text."""
MAX_LABELS, CLOSED_SHARE = 12, 0.95
"""Answers that make a closed set, and the share of rows that these must have."""
LABEL_WORDS, MAX_PIECES = 2, 40
"""Words of a label before a line, and pieces at either end of a prompt that are compared."""
COVERED_SHARE = 0.5
"""Share of a task's rows that begin or end with known lines, or have a system message, from which on these divide them."""
LEAST_SENTENCE_SHARE, GOES_ON_SHARE = 0.05, 0.9
"""Share of a task's prompts that begin (or end) with one sentence of an instruction; share of rows that all such cover, and
of the prompts with some sentences of an instruction that go on with the next."""
_ANSWER_FIELDS = ("answer", "label", "output", "result")
_ANSWER_MARKS = " \t*_`\"'.,!"
_MARKS = " \t\n\"'`*#\u201c\u201d\u2018\u2019.,:;?!-"
_SYSTEM = ("system", "developer")


class Part(NamedTuple):
    """A sentence, line or quotation of a prompt."""

    start: int
    """First character of it in the visible text."""
    end: int
    """The character behind it."""
    key: int
    """Hash of its text, without outer marks and with single spaces."""


class Piece(NamedTuple):
    """A line of a prompt, or the label before it."""

    first: int
    """Its first part."""
    end: int
    """The part behind it."""
    key: int
    """Hash of its parts."""
    is_label: bool
    """Whether it is a label alone (`Text:`)."""


class Divided(NamedTuple):
    """One row's instruction, input and answer."""

    number: int
    """Of the row in the corpus."""
    task: int
    """Index of its task."""
    instruction: int
    """Hash of its instruction; 0 where none was found."""
    input: int
    """Hash of the rest; 0 where there is none."""
    answer: str
    """The answer inside of its wrapping, without case where the task's answers are few; of long ones a hash."""
    forms: int
    """Which of the `REQUESTS` the answer fulfils, one bit for each."""
    spans: tuple[tuple[int, int], ...]
    """Where the instruction stands in the visible text; empty where a column has it."""


class _Read(NamedTuple):
    number: int
    task: int
    parts: tuple[Part, ...]
    system: int
    """Parts of system messages, which come first."""
    pieces: tuple[Piece, ...]
    """Of what is behind system messages."""
    columns: tuple[int, int] | None
    """Hashes of the columns `instruction` and `input`."""
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
    of_task: dict[int, list[_Read]] = defaultdict(list)
    for row in rows:
        of_task[row.task].append(row)
    found = list[Divided]()
    for own in of_task.values():
        own = _read_labels(own)
        by_lines, is_divided = _divide_by_lines(own)
        divided = by_lines if is_divided else _divide_by_sentences(own)
        if not divided:
            divided = by_lines if _has_system(own) else [_make_divided(row, ()) for row in own]
        found += divided
    return tasks, found


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


def write_instruction(row: Example, divided: Divided) -> str:
    """The instruction of a row as it is written, with an ellipsis for the input."""
    if not divided.spans:
        return to_visible(str(row.extra.get("instruction", ""))).strip()
    text, kept, last = cut(plain(row.prompt)), "", divided.spans[0][0]
    for start, end in divided.spans:
        gap = text[last:start]
        kept += (gap if not gap.strip(_MARKS) else " \u2026 ") + text[start:end]
        last = end
    return kept.strip()


def read_answered(row: Example, divided: Divided) -> tuple[str, str]:
    """The input of a row as it is written, and its answer inside of its wrapping."""
    answer = unwrap_answer(write_answer(row)) if divided.answer.startswith("\n") else divided.answer
    if not divided.spans:
        return to_visible(str(row.extra.get("input", ""))).strip(), answer
    text, kept, last = cut(plain(row.prompt)), "", 0
    for start, end in (*divided.spans, (len(plain(row.prompt)), 0)):
        kept += text[last:start]
        last = end
    return kept.strip(_MARKS), answer


def write_answer(row: Example) -> str:
    """What the row is trained to answer, with single spaces and without a last full stop."""
    text = " ".join(to_visible(plain(row.target) or plain(row.chosen) or row.answer or "").split())
    return text.rstrip(" .") or text


def unwrap_answer(text: str) -> str:
    """The answer in a short text: a field of an object, what is boxed, or what stands behind `The answer is`."""
    if text.startswith("{") and len(text) <= WRAPPED_CHARACTERS:
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict) and fields:
            name = next((name for name in _ANSWER_FIELDS if name in fields), next(iter(fields)))
            text = str(fields[name]) if len(fields) == 1 or name in _ANSWER_FIELDS else text
    stated = find_stated_answers(text) if len(text) <= WRAPPED_CHARACTERS else []
    text = stated[0].text if stated and stated[0].kind == "marked" else text
    return text.strip(_ANSWER_MARKS) or text


def _read(number: int, task: int, row: Example) -> _Read:
    text, answer = cut(plain(row.prompt)), write_answer(row)
    parts = tuple(read_parts(text))
    system = _count_system_characters(row.prompt)
    system_parts = sum(part.end <= system for part in parts) if system else 0
    inside = unwrap_answer(answer)
    asked, given = (row.extra.get(name) for name in ("instruction", "input"))
    has_columns = isinstance(asked, str) and isinstance(given, str) and asked.strip() and given.strip()
    return _Read(
        number,
        task,
        parts,
        system_parts,
        _read_pieces(text, parts, system_parts),
        (_hash_text(str(asked)), _hash_text(str(given))) if has_columns else None,
        len(plain(row.prompt)) > 2 * END_CHARACTERS,
        inside if len(inside) <= SHORT_ANSWER else f"\n{hash64(inside)}",
        sum(request.is_fulfilled(answer) << bit for bit, request in enumerate(REQUESTS)),
    )


def _hash_text(text: str) -> int:
    return _hash_keys(part.key for part in read_parts(to_visible(text)))


def _hash_keys(keys: Iterable[int]) -> int:
    own = [*keys]
    return hash64(" ".join(map(str, own))) if own else 0


def _read_pieces(text: str, parts: Sequence[Part], first: int) -> tuple[Piece, ...]:
    """Lines as runs of parts; a label at a line's beginning is a piece of its own."""
    starts, labels = {first}, set[int]()
    for place in range(first, len(parts)):
        before = text[parts[place - 1].end : parts[place].start] if place else "\n"
        is_new = place == first or "\n" in before + text[parts[place].start : parts[place].start + 1]
        if is_new or place in starts:
            starts.add(place)
        written = text[parts[place].start : parts[place].end].strip()
        if is_new and written.endswith(":") and len(written.split()) <= LABEL_WORDS:
            labels.add(place)
            starts.add(place + 1)
    return tuple(
        Piece(start, end, _hash_keys(part.key for part in parts[start:end]), start in labels)
        for start, end in pairwise(sorted(starts | {len(parts)}))
        if end > start
    )


def _count_system_characters(prompt: Text) -> int:
    if isinstance(prompt, str):
        return 0
    first = next((at for at, message in enumerate(prompt) if message["role"] not in _SYSTEM), len(prompt))
    return len(cut(plain(prompt[:first]))) + 1 if first else 0


def _read_labels(rows: Sequence[_Read]) -> list[_Read]:
    """The same rows, with answers without the words that nearly all begin with, and without case where these are few."""
    start = common_start([row.answer for row in rows if not row.answer.startswith("\n")])
    answers = [row.answer.removeprefix(start) for row in rows]
    counts = Counter(answer.casefold() for answer in answers)
    if sum(count for _, count in counts.most_common(MAX_LABELS)) >= CLOSED_SHARE * len(rows):
        answers = [answer.casefold() for answer in answers]
    return [row._replace(answer=answer) for row, answer in zip(rows, answers, strict=True)]


def _has_system(rows: Sequence[_Read]) -> bool:
    return sum(row.system > 0 for row in rows) >= COVERED_SHARE * len(rows)


def _divide_by_lines(rows: Sequence[_Read]) -> tuple[list[Divided], bool]:
    """Lines that many prompts of a task begin or end with, and system messages; whether lines or these cover enough.

    One system message of all rows says what is asked for only where nothing else does.
    """
    systems = Counter(_hash_keys(part.key for part in row.parts[: row.system]) for row in rows)
    is_constant = systems.most_common(1)[0][1] >= CLOSED_SHARE * len(rows)
    prompts = {tuple(piece.key for piece in row.pieces) for row in rows}
    heads, tails = (Counter(start for keys in prompts for start in _hash_starts(keys[::step])) for step in (1, -1))
    found = [(_count_known(row.pieces, heads), _count_known(row.pieces[::-1], tails)) for row in rows]
    kinds = [
        len(
            {
                (own[side], _hash_starts([piece.key for piece in row.pieces[::step]])[own[side] - 1] if own[side] else 0)
                for row, own in zip(rows, found, strict=True)
            }
        )
        for side, step in enumerate((1, -1))
    ]
    divided, covered = list[Divided](), 0
    for row, (head, tail) in zip(rows, found, strict=True):
        count = len(row.pieces)
        if head + tail >= count:  # one of both is the input
            head, tail = (head, count - 1 - head) if kinds[0] <= kinds[1] else (count - 1 - tail, tail)
        own = [*row.pieces[:head], *row.pieces[count - tail :]]
        asked = {*range(row.system), *_places(piece for piece in own if not piece.is_label)}
        covered += len(asked) > (row.system if is_constant else 0) or row.columns is not None
        divided.append(_make_divided(row, asked, {*_places(piece for piece in own if piece.is_label)}))
    return divided, covered >= COVERED_SHARE * len(rows)


def _divide_by_sentences(rows: Sequence[_Read]) -> list[Divided]:
    """First or last sentences, of which few kinds stand in nearly all prompts, and further ones that many go on with."""
    keys = [[part.key for part in row.parts[row.system :]] for row in rows]
    prompts, found = {tuple(own) for own in keys}, list[tuple[float, int, Counter[int]]]()
    least = max(LEAST_PROMPTS, LEAST_SENTENCE_SHARE * len(prompts))
    for step in (1, -1):
        starts = Counter(start for own in prompts for start in _hash_starts(own[::step]))
        firsts = [next(iter(_hash_starts(own[::step])), 0) for own in keys]
        found.append((sum(starts[one] >= least for one in firsts) / len(rows), step, starts))
    covered, step, starts = max(found, key=lambda one: one[0])
    if covered < GOES_ON_SHARE:
        return []
    divided = list[Divided]()
    for row, own in zip(rows, keys, strict=True):
        counts = [starts[one] for one in _hash_starts(own[::step])]
        ends = (n for n in range(1, len(counts)) if counts[n] < min(least, GOES_ON_SHARE * counts[n - 1]))
        size = next(ends, len(counts))
        first = row.system if step > 0 else len(row.parts) - size
        divided.append(_make_divided(row, {*range(row.system), *range(first, first + size)}))
    return divided


def _count_known(pieces: Sequence[Piece], counts: Mapping[int, int]) -> int:
    """Pieces at the beginning that stand there in many prompts."""
    starts = _hash_starts([piece.key for piece in pieces])
    return next((at for at in range(len(starts), 0, -1) if counts[starts[at - 1]] >= LEAST_PROMPTS), 0)


def _hash_starts(keys: Sequence[int]) -> list[int]:
    """Hashes of the first piece, the first two and so on, but not of all of them."""
    return [*islice(accumulate(keys[:-1], lambda start, key: hash((start, key))), MAX_PIECES)]


def _places(pieces: Iterable[Piece]) -> Iterable[int]:
    return (place for piece in pieces for place in range(piece.first, piece.end))


def _make_divided(row: _Read, asked: Collection[int], labels: Collection[int] = ()) -> Divided:
    """A row whose instruction is the parts of these places, or a column; labels are neither instruction nor input."""
    if row.columns:
        return Divided(row.number, row.task, *row.columns, row.answer, row.forms, ())
    given = [part.key for place, part in enumerate(row.parts) if place not in asked and place not in labels]
    if row.is_cut and len(given) > 2 * END_PARTS:  # where the middle begins depends on the length of the instruction
        given = given[:END_PARTS] + given[-END_PARTS:]
    parts = [row.parts[place] for place in sorted(asked)] if given else []
    instruction = _hash_keys(part.key for part in parts)
    return Divided(
        row.number,
        row.task,
        instruction,
        _hash_keys(given),
        row.answer,
        row.forms,
        tuple((part.start, part.end) for part in parts),
    )
