"""Rows of a corpus as the checks need them: texts batch by batch, and fingerprints of 45 bytes per row.

Left out on purpose: keeping texts. What a check wants to show, it fetches again by row number.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from mixwright.audit.text import BRIEF_ANSWER_CHARACTERS, common_length, normal_form, read_conclusion
from mixwright.corpus import Corpus, texts
from mixwright.corpus.reading import task_of
from mixwright.corpus.rows import decode, pc, pick_batches
from mixwright.errors import InputError, join_some
from mixwright.records import Example, Observation, plain
from mixwright.tool_calls import text_of

EXCERPT_CHARACTERS = 160
"""Characters of a text shown as evidence."""
EXCERPT_CHARACTERS_BEFORE = 60
"""Characters of an excerpt that stand before the first difference."""
MAX_NAMES_SHOWN = 5
"""Forms, levels or tasks named in one message."""
MAX_PAIRS_LISTED, MAX_PAIRS_IN_FILES = 10_000, 1_000_000
"""Pairs of rows listed as evidence of one observation; and where they are written to files. A message says when there are
more."""
SAMPLE_ROWS, SAMPLE_ROWS_TOGETHER = 2000, 100_000
"""Rows of a task and split that templates, nulls, cues and contexts are worked out on; and of all tasks, where rows are read
whole.
"""
READ_ROWS_OF_TASK, READ_ROWS, MIN_READ_ROWS = 20_000, 40_000, 20
"""Training rows that checks of steps and of pairs read: of a task, of all together, and of each of many tasks at least."""
SHORT_TURN_WORDS = 6
"""Words below which one of several turns of a chat is talk (`thanks, go on`) and is not compared alone."""
_COLUMNS = ["task", "split", "prompt", "target", "answer", "chosen", "chat"]


def max_listed(*, whole: bool) -> int:
    """Return the number of rows or pairs that one observation lists: more where files are written (`Check.whole`)."""
    return MAX_PAIRS_IN_FILES if whole else MAX_PAIRS_LISTED


@dataclass
class Listing:
    """Rows with one fault: all are counted, the first are kept as evidence."""

    count: int = 0
    """Rows that were added."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The first of them: one more than is ever listed, which shows that there are more."""

    def add(self, row: dict[str, Any]) -> None:
        """Count a row, and keep it while there is room."""
        self.count += 1
        if len(self.rows) <= MAX_PAIRS_IN_FILES:
            self.rows.append(row)


class Row(NamedTuple):
    """One row's texts."""

    number: int
    """Position in the corpus."""
    task: str
    """Task name."""
    split: str
    """train or eval."""
    prompt: str
    """The prompt; of rows without one, the text itself."""
    answer: str
    """What is right: the answer, else the target, else the preferred completion; empty when there is none."""
    written: str = ""
    """What a model is trained to write: the target, else the preferred completion, else the answer; empty without any."""


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Every row of `batches` in order, numbered from 0; one batch in memory at a time."""
    return (row for row, _ in _rows_and_chats(batches))


def with_turns(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Row, int]]:
    """Every row as `rows` gives it, with 0, followed by the user turns of its chat, each with how many there are.

    The answer of the last turn is the row's, that of another is the reply to it. One of several turns of fewer than
    `SHORT_TURN_WORDS` words, and an earlier one without a reply, are left out.
    """
    for row, chat in _rows_and_chats(batches):
        yield row, 0
        if chat and len(messages := json.loads(chat)) > 1:
            user_turns = [message_index for message_index, message in enumerate(messages) if message["role"] == "user"]
            for message_index in user_turns:
                text, later_messages = messages[message_index]["content"], messages[message_index + 1 :]
                is_last = message_index == user_turns[-1]
                is_answered = not is_last and later_messages[0]["role"] != "user"
                reply = row.answer if is_last else text_of(later_messages[0]) if is_answered else ""
                is_talk = len(text.split()) < SHORT_TURN_WORDS or not (reply or is_last)
                if len(user_turns) == 1 or not is_talk:
                    yield row._replace(prompt=text, answer=reply), len(user_turns)


def _rows_and_chats(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Row, str | None]]:
    """Rows, each with its prompt as JSON where it is a chat."""
    number = 0
    for batch in batches:
        sides = (texts(batch, name) for name in ("prompt", "target", "chosen"))
        for line, prompt, target, chosen in zip(batch.select(_COLUMNS).to_pylist(), *sides, strict=True):
            gold = line["answer"] or ""
            answer, written = gold or target or chosen, target or chosen or gold
            own = (answer, written) if prompt else ("", "")
            yield Row(number, line["task"], line["split"], prompt or answer, *own), line["prompt"] if line["chat"] else None
            number += 1


class Reader:
    """Rows of a corpus by their numbers, without copying columns.

    Args:
        corpus: whose rows are read.
        whole: of the check that reads (`Check.whole`).
    """

    def __init__(self, corpus: Corpus, *, whole: bool = False) -> None:
        self.max_evidence = max_listed(whole=whole) + 1
        """Rows that evidence is made of: one more than is listed, which shows that there are more."""
        self._table = corpus.table

    def rows(self, numbers: np.ndarray) -> list[Row]:
        """The rows of these ascending numbers (int64)."""
        found = rows(pick_batches(self._table.select(_COLUMNS), numbers))
        return [row._replace(number=number) for number, row in zip(numbers.tolist(), found, strict=True)]

    def iterate(self, numbers: np.ndarray) -> Iterator[tuple[int, Example]]:
        """Row number and example, for these numbers (int64), in file order; one batch in memory at a time."""
        numbers = np.sort(numbers)
        batches = pick_batches(self._table, numbers)
        return zip(numbers.tolist(), (decode(row) for batch in batches for row in batch.to_pylist()), strict=True)

    def examples(self, numbers: np.ndarray) -> dict[int, Example]:
        """Row number -> example, for these numbers (int64)."""
        return dict(self.iterate(numbers))

    def first_examples(self, numbers: Sequence[int] | np.ndarray) -> list[Example]:
        """The first `max_evidence` rows of these numbers, in file order."""
        return list(self.examples(np.array(numbers[: self.max_evidence], np.int64)).values())

    def sample(self, members: np.ndarray, size: int) -> list[Row]:
        """At most `size` of the rows numbered `members`, as `draw_sample` does, in file order."""
        return self.rows(draw_sample(members, size))

    def pair_evidence(
        self, pairs: Sequence[tuple[int, int]], *prefixes: str, near: bool = False
    ) -> tuple[dict[str, Any], ...]:
        """The first `max_evidence` pairs of row numbers, with prefixes for the fields of either row; `near` if they
        are alike and not the same.
        """
        listed = pairs[: self.max_evidence]
        examples = self.examples(np.unique(np.array(listed, np.int64)))
        near_field = {"near": True} if near else {}
        return tuple(_make_evidence([examples[number] for number in pair], prefixes) | near_field for pair in listed)


def draw_sample(numbers: np.ndarray, size: int) -> np.ndarray:
    """At most `size` of these ascending numbers, drawn without replacement by a fixed seed, ascending."""
    if len(numbers) <= size:
        return numbers
    return np.sort(np.random.default_rng(0).choice(numbers, size, replace=False))


def sample_tasks(
    reader: Reader, numbers_by_task: Mapping[str, np.ndarray], least: int
) -> Iterator[tuple[str, list[Example]]]:
    """Samples of the tasks with at least so many of these rows (int64), tasks with most rows first, while few were read."""
    left = SAMPLE_ROWS_TOGETHER
    for task, numbers in sorted(numbers_by_task.items(), key=lambda one: (-len(one[1]), one[0])):
        sample = draw_sample(numbers, min(SAMPLE_ROWS, left))
        if len(sample) < least:
            return
        left -= len(sample)
        yield task, list(reader.examples(sample).values())


def has_held_out(corpus: Corpus) -> bool:
    """Whether some rows are held out."""
    return "eval" in corpus.table["split"].unique().to_pylist()


class Sample(NamedTuple):
    """Training rows that a slow check reads."""

    rows: Corpus
    """All rows of the corpus, or of large tasks a sample drawn by a fixed seed."""
    notes: dict[str | None, str]
    """Task -> what its findings say of rows that are left out; None stands for findings about the corpus."""

    def describe(self, observations: Iterable[Observation]) -> list[Observation]:
        """Return these findings about the rows, with the notes."""
        return [replace(one, message=one.message + self.notes.get(one.task, "")) for one in observations]


def sample_training_rows(corpus: Corpus, *, whole: bool) -> Sample:
    """Return the rows that a check with this `whole` reads."""
    numbers_by_task = {} if whole else rows_by_task(corpus, "train")
    if sum(map(len, numbers_by_task.values())) <= READ_ROWS:
        return Sample(corpus, {})
    most = min(READ_ROWS_OF_TASK, max(READ_ROWS // len(numbers_by_task), MIN_READ_ROWS))
    notes: dict[str | None, str] = {None: " Of large tasks a random sample was read; --out FOLDER reads all rows."}
    for task, numbers in numbers_by_task.items():
        if len(numbers) > most:
            notes[task] = f" Of {len(numbers):,} training rows {most:,} were read, drawn at random; --out FOLDER reads all."
    drawn = [draw_sample(numbers, most) for numbers in numbers_by_task.values()]
    return Sample(corpus.take(np.sort(np.concatenate(drawn))), notes)


def rows_by_task(corpus: Corpus, split: str | None = None) -> dict[str, np.ndarray]:
    """Task -> numbers of its rows, or those of a split, ascending."""
    tasks = corpus.table["task"].combine_chunks().dictionary_encode()
    numbers = np.arange(len(corpus)) if split is None else np.flatnonzero(pc.equal(corpus.table["split"], split).to_numpy())
    by_code = positions_by_code(tasks.indices.to_numpy()[numbers])
    return {tasks.dictionary[code].as_py(): numbers[positions] for code, positions in by_code.items()}


def check_columns(corpus: Corpus, columns: Sequence[str], option: str) -> None:
    """Raise InputError for columns, which an option names, that no row has."""
    left = set(columns)
    for batch in corpus.batches() if left else ():
        for name in sorted(left):
            mentions = batch.filter(pc.match_substring(batch.column("extra"), json.dumps(name))).column("extra")
            left -= {name} if any(name in json.loads(extra) for extra in mentions.to_pylist()) else set()
    if left:
        got = f"none called {join_some(sorted(left)) or repr('')}"
        raise InputError(f"columns of the rows ({option})", got, "Name columns that Mixwright does not read itself.")


def tasks_of_files(corpus: Corpus) -> frozenset[str]:
    """Names of tasks that are those of their files, where several files are read; a task column can name them so, too."""
    tasks = rows_by_task(corpus)
    places = corpus.table["source"].take(pa.array([numbers[0] for numbers in tasks.values()], pa.int64())).to_pylist()
    pairs = zip(tasks, places, strict=True)
    found = frozenset(name for name, place in pairs if name == task_of(Path(re.sub(r"[:#]\d+$", "", place))))
    return found if len(found) > 1 else frozenset()


def _make_evidence(pair: Sequence[Example], prefixes: Sequence[str]) -> dict[str, Any]:
    """Where two rows are to be found, and how they read where they begin to differ."""
    prompts = excerpts(*(plain(row.prompt) for row in pair))
    answers = excerpts(*(row.answer or plain(row.target) or plain(row.chosen) for row in pair))
    evidence: dict[str, Any] = {}
    for row, prefix, prompt, answer in zip(pair, prefixes, prompts, answers, strict=True):
        fields = {"id": row.id, "source": row.source, "task": row.task, "prompt": prompt, "answer": answer}
        evidence |= {f"{prefix}{name}": value for name, value in fields.items()}
    return evidence


def excerpts(first: str, second: str) -> tuple[str, str]:
    """`EXCERPT_CHARACTERS` of each text: where they begin to differ; or, where one holds the other, where that stands."""
    shared_characters = common_length(first, second)
    first_start = second_start = (
        max(0, shared_characters - EXCERPT_CHARACTERS_BEFORE) if max(len(first), len(second)) > EXCERPT_CHARACTERS else 0
    )
    if shared_characters < EXCERPT_CHARACTERS_BEFORE:
        first_start, second_start = _excerpt_start(second, first, first_start), _excerpt_start(first, second, second_start)
    return _cut_excerpt(first, first_start), _cut_excerpt(second, second_start)


def _excerpt_start(inner: str, outer: str, default: int) -> int:
    """Where an excerpt of `outer` begins that shows `inner` in it."""
    position = outer.casefold().find(inner[:EXCERPT_CHARACTERS_BEFORE].casefold())
    return max(0, position - EXCERPT_CHARACTERS_BEFORE) if position > 0 else default


def _cut_excerpt(text: str, start: int) -> str:
    stop = start + EXCERPT_CHARACTERS
    return ("\u2026" if start else "") + text[start:stop] + ("\u2026" if stop < len(text) else "")


_TEXT = np.dtype(
    [("row", "i4"), ("task", "i4"), ("turns", "i4"), ("held_out", "?")]
    + [(name, "u8") for name in ("exact", "normal", "answer", "final")]
)


class Fingerprints(NamedTuple):
    """Hashes of 64 bits of every row, and behind them of every user turn of a chat, as far as turns are compared."""

    tasks: tuple[str, ...]
    """Task names in order of appearance."""
    texts: np.ndarray
    """One record per text: its row; index of its task; user turns of the chat that it is a turn of, 0 for a row;
    whether it is of the eval split; hashes of the prompt, outer space apart (exact), of its normal form, of the answer's
    normal form, and of the final answer: another way to the same answer is the same. Hashes of answers are 0 where there is
    none.
    """

    def of_rows(self) -> Fingerprints:
        """Those of rows alone, in the same memory."""
        return Fingerprints(self.tasks, self.texts[: self.row_count])

    @property
    def row_count(self) -> int:
        """Rows: texts before the first turn of a chat."""
        return int((self.texts["turns"] == 0).sum())


def combine(prompts: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """One uint64 per text for the hashes of prompt and answer together."""
    return prompts ^ (answers * np.uint64(0x9E3779B97F4A7C15))


_KNOWN: WeakKeyDictionary[Corpus, Fingerprints] = WeakKeyDictionary()
"""Several checks read those of one corpus."""


def fingerprints(corpus: Corpus) -> Fingerprints:
    """One pass over `corpus`, or none where it is known; turns of chats are read where there are two splits."""
    if corpus not in _KNOWN:
        _KNOWN[corpus] = _read_fingerprints(corpus.batches(), len(corpus.table["split"].unique()) > 1)
    return _KNOWN[corpus]


def _read_fingerprints(batches: Iterable[pa.RecordBatch], with_further_texts: bool) -> Fingerprints:
    codes = dict[str, int]()

    def read() -> Iterator[tuple[Any, ...]]:
        for row, turns in with_turns(batches):
            if with_further_texts or not turns:
                stripped, is_brief = row.prompt.strip(), len(row.answer) <= BRIEF_ANSWER_CHARACTERS
                prompt = hash64(stripped), hash64(normal_form(row.prompt) or stripped)
                answer = (_prints_of_brief_answer if is_brief else _prints_of_answer)(row.answer)
                yield row.number, codes.setdefault(row.task, len(codes)), turns, row.split == "eval", *prompt, *answer

    texts = np.fromiter(read(), _TEXT)
    is_row = texts["turns"] == 0
    return Fingerprints(tuple(codes), np.concatenate([texts[is_row], texts[~is_row]]))


def _prints_of_answer(answer: str) -> tuple[int, int]:
    """Of its normal form and of the final answer; 0 where there is none."""
    return (hash64(normal_form(answer)) | 1, hash64(read_conclusion(answer)) | 1) if answer else (0, 0)


_prints_of_brief_answer = functools.lru_cache(maxsize=2**12)(_prints_of_answer)


def hash64(text: str) -> int:
    """A hash of 64 bits that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def positions_by_code(codes: np.ndarray) -> dict[int, np.ndarray]:
    """Code -> ascending positions that have it, in one sort however many codes there are."""
    sorted_positions = np.argsort(codes, kind="stable")
    distinct_codes, starts = np.unique(codes[sorted_positions], return_index=True)
    return dict(
        zip(distinct_codes.tolist(), np.split(sorted_positions, starts[1:]) if len(distinct_codes) else (), strict=True)
    )
