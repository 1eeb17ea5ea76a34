"""Conflicts: one prompt with several answers, in tasks whose prompts decide the answer, and how often labels disagree.

Whether a prompt decides its answer is read from the rows. Where rows with the same prompt agree far more often than answers
dealt out at random would, it does. Where most prompts stand in several rows, and these agree as often as that, it does not,
and nothing is wrong. Else the kind of answer decides: few labels, numbers, options, calls.
Left out on purpose: which of the answers is right.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from mixwright.audit.checks.unseen import CONTEXT_WORDS, name_words
from mixwright.audit.rows import Reader, fingerprints, hash64, positions_by_code, tasks_of_files
from mixwright.audit.text import BRIEF_ANSWER_CHARACTERS, normal_form, to_visible
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import rate
from mixwright.final_answer import final_answer, find_stated_answers
from mixwright.records import Example, Interval, plain

ROWS_READ, ROWS_OF_PROMPT = 2_000, 20
"""Rows of repeated prompts that are read of one task to judge it, and of one prompt."""
MAX_PROMPTS_LISTED, PROMPTS_READ_TOGETHER = 50_000, 200
"""Prompts of a task that are listed, and read at a time."""
ROWS_OF_KIND = 500
"""Rows of a task by which the kind of its answers is told."""
SURELY = 3.1
"""Standard deviations under chance from which on a disagreement shows that prompts decide answers; p is .001."""
LEAST_ALPHA, MOST_OPEN = 0.3, 0.5
"""Krippendorff's alpha (1 - disagreement / disagreement by chance) from which on prompts decide answers; and the upper end
of the disagreement's interval, up to which they do where answers have no one form.
"""
MIN_PROMPTS, LIKE_CHANCE = 10, (-1.64, 2.33)
"""Repeated prompts, and standard deviations of agreement from chance within which it is taken for chance."""
LEAST_REPEATED = 0.5
"""Share of a task's prompts that stand in several rows, from which on agreement like chance says that answers are free."""
MAX_SHARE = 0.5
"""Share of a task's rows in conflict from which on several answers are meant, unless prompts decide answers."""
LEAST_DECIDED, LEAST_PLAIN = 0.8, 0.9
"""Share of rows whose answer can be told, and of those that are numbers, letters or JSON, from which on a task has them."""
MAX_LABELS, ROWS_PER_LABEL, LEAST_ROWS_PER_LABEL = 12, 10, 3
"""Different answers that are a closed set: so many, or one for so many rows; in either case one for the last so many."""
NEARLY_SAME = 0.85
"""Share of characters in common from which on two open answers with the same first letter are spellings of one."""
MAX_JSON_CHARACTERS = 20_000
OWN_CONTEXTS = (CONTEXT_WORDS - {"note", "reference", "search", "source", "teacher", "turn"}) | frozenset(
    {"audio", "choice", "database", "db", "function", "image", "input", "instruction", "language", "option", "paragraph"}
    | {"persona", "photo", "picture", "premise", "schema", "story", "system", "table", "tool", "video"}
)
"""Words of a column's name by which rows that differ in it are taken for different prompts."""
_WORD = re.compile(r"-?\d+(?:[.,]\d+)*|\w+|[<>=+*/^%]")
_WITH_UNIT = re.compile(r"([-+]?[\d,]{0,30}\.?\d{1,30}) ?([^\W\d]{1,20})\.?")
_NUMBER = re.compile(r"[-+]?(?:(?:\d[\d,]{0,30})?\.?\d{1,30}|\d{1,30}/0{0,9}[1-9]\d{0,29})")
_WRAPPED = re.compile(r"```(?:json)?\s(.*)```|<(?P<tag>\w{1,40})>(.*)</(?P=tag)>", re.DOTALL)
_CODE = re.compile(r"^(?:```|\s{0,8}(?:class|def|function|import|return)\b)|[;{}]\s{0,8}$", re.MULTILINE)
_OPENING = re.compile(
    r"^(?:i would say|i'd say|i think(?: it is| that it is)?|it is|it's|that is|that's)[ :]+", re.IGNORECASE
)
_FILLERS, _NEGATIONS = frozenset({"a", "an", "the"}), frozenset({"cannot", "never", "no", "none", "not", "un"})
Kind = Literal["whole", "marked", "json", "last"]
Verdict = Literal["decided", "unknown", "open"]


@dataclass(frozen=True)
class Told:
    """The answer of a row."""

    value: str
    """What is compared."""
    kind: Kind
    """whole: a short text; marked: behind a mark; json; last: the last number of a long text, which may be no answer."""


@dataclass(frozen=True)
class Clash:
    """Rows with one prompt and different answers."""

    numbers: tuple[int, ...]
    """Of the rows."""
    values: tuple[str, ...]
    """Their answers."""

    def pairs(self) -> list[tuple[int, int]]:
        """Each row that has not the commonest answer, with the first row that has it; the earlier of equally common ones."""
        (usual, _), *_ = Counter(self.values).most_common(1)
        first = self.numbers[self.values.index(usual)]
        return [(number, first) for number, value in zip(self.numbers, self.values, strict=True) if value != usual]


@dataclass(frozen=True)
class ConflictsOfTask:
    """What was found in a task."""

    task: str | None
    """Its name; None for prompts that several files have, each of which is a task."""
    total: int
    """Its training rows with an answer."""
    prompts: int
    """Prompts in several rows that were compared, of which the shares are."""
    verdict: Verdict
    """Whether prompts decide answers: they do; too few say so, but the kind of answers does; they do not, or answers are
    free.
    """
    clashes: tuple[Clash, ...]
    """Prompts with different answers; all of them up to `MAX_PROMPTS_LISTED`, unless the verdict is open."""
    disagreement: Interval | None
    """Probability that two rows with the same prompt disagree; None with fewer than two such prompts."""
    has_one_form: bool = False
    """Whether its answers are a few labels, numbers, letters, JSON or marked."""

    @property
    def rows(self) -> int:
        """Rows whose prompt stands with another answer, too."""
        return sum(len(clash.numbers) for clash in self.clashes)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Rows that have not the commonest answer of their prompt, each with one that has it."""
        return [pair for clash in self.clashes for pair in clash.pairs()]


def find_conflicts(corpus: Corpus) -> list[ConflictsOfTask]:
    """Prompts of training rows with several answers, of each task that has repeated prompts, and last (task None) of prompts
    that stand in several files. Bounded memory.

    A prompt is the same whatever its case, space and closing marks (`normal_form`); rows that differ in a column called like
    a context have different prompts. Preference pairs are left out.
    """
    (tasks, prints), reader = fingerprints(corpus).of_rows(), Reader(corpus)
    train = np.flatnonzero(~prints["held_out"] & (prints["answer"] != 0))
    by_code, of_files = positions_by_code(prints["task"][train]), tasks_of_files(corpus)
    by_task = {tasks[code]: train[at] for code, at in by_code.items() if corpus.tasks[tasks[code]].kind != "preference"}
    in_files = [rows for task, rows in by_task.items() if task in of_files]
    groups: list[tuple[str | None, int, np.ndarray]] = [(task, len(rows), rows) for task, rows in sorted(by_task.items())]
    groups.append((None, sum(map(len, in_files)), _shared(prints, in_files)))
    repeated = [(task, total, _Repeated.read(prints, rows)) for task, total, rows in groups]
    return [_compare(task, total, reader, own) for task, total, own in repeated if len(own)]


def _shared(prints: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """Return the row numbers (int64, ascending) whose prompt stands in several of these groups."""
    own = [np.unique(prints["normal"][rows]) for rows in groups]
    prompts, counts = np.unique(np.concatenate([np.zeros(0, np.uint64), *own]), return_counts=True)
    rows = np.sort(np.concatenate([np.zeros(0, np.int64), *groups]))
    return rows[np.isin(prints["normal"][rows], prompts[counts > 1])]


@dataclass(frozen=True)
class _Repeated:
    """Prompts of a task that stand in several rows."""

    numbers: np.ndarray
    """Row numbers (int64) of the task, by prompt."""
    starts: np.ndarray
    """Where each repeated prompt begins among them."""
    counts: np.ndarray
    """Rows of each."""
    is_differing: np.ndarray
    """Whether they have not all one text for an answer."""

    @staticmethod
    def read(prints: np.ndarray, numbers: np.ndarray) -> _Repeated:
        """Those among the rows of a task."""
        numbers = numbers[np.argsort(prints["normal"][numbers], kind="stable")]
        _, starts, counts = np.unique(prints["normal"][numbers], return_index=True, return_counts=True)
        least, most = (extreme.reduceat(prints["answer"][numbers], starts) for extreme in (np.minimum, np.maximum))
        several = counts > 1
        return _Repeated(numbers, starts[several], counts[several], (least != most)[several])

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, place: int) -> np.ndarray:
        """Row numbers of one prompt, ascending."""
        return self.numbers[self.starts[place] : self.starts[place] + self.counts[place]]

    def sample(self) -> list[np.ndarray]:
        """Rows of prompts drawn at random, `ROWS_READ` or a few more in all."""
        rng, budget, sampled = np.random.default_rng(0), ROWS_READ, list[np.ndarray]()
        for place in rng.permutation(len(self)).tolist():
            group = self.rows(place)
            few = group if len(group) <= ROWS_OF_PROMPT else np.sort(rng.choice(group, ROWS_OF_PROMPT, replace=False))
            sampled.append(few)
            budget -= len(few)
            if budget < 2:
                break
        return sampled


@dataclass(frozen=True)
class _KindOfTask:
    """What the answers of a task are like."""

    is_told: bool
    """Whether the answers of most rows can be told for what they are: short, marked or JSON."""
    is_closed: bool
    """Whether they are a closed set."""
    has_one_form: bool
    """Whether they are a few labels, numbers, letters, JSON or marked: a prompt that decides has one of them."""

    @staticmethod
    def read(reader: Reader, numbers: np.ndarray) -> _KindOfTask:
        rows = reader.sample(numbers, ROWS_OF_KIND)
        told = [one for row in rows if (one := tell_answer(row.answer)) is not None and one.kind != "last"]
        values = {one.value for one in told}
        is_closed = LEAST_ROWS_PER_LABEL * len(values) <= len(told) and (
            len(values) <= max(MAX_LABELS, len(told) / ROWS_PER_LABEL)
        )
        plain_count = sum(one.kind in ("json", "marked") or _is_plain(one.value) for one in told)
        return _KindOfTask(
            len(told) >= LEAST_DECIDED * len(rows),
            is_closed,
            plain_count >= LEAST_PLAIN * len(rows) or (is_closed and len(values) <= MAX_LABELS),
        )

    def agree(self, first: str, second: str) -> bool:
        """Whether two answers are one; of open ones a longer form, or another spelling."""
        return first == second or (not self.is_closed and are_one_answer(first, second))


def _compare(task: str | None, total: int, reader: Reader, repeated: _Repeated) -> ConflictsOfTask:
    """What a sample of the repeated prompts says of a task; and all its clashes, unless the verdict is open."""
    if not repeated.is_differing.any():
        return ConflictsOfTask(task, total, len(repeated), "open", (), None)
    kind, sampled = _KindOfTask.read(reader, np.sort(repeated.numbers)), repeated.sample()
    prompts = [prompt for prompt in _read_prompts(reader, sampled, kind) if len(prompt) > 1]
    if not prompts:
        return ConflictsOfTask(task, total, 0, "open", (), None)
    values = [[value for _, value in prompt] for prompt in prompts]
    every_value = [value for of_prompt in values for value in of_prompt]
    totals = np.array([len(of_prompt) * _disagreement(of_prompt, kind) for of_prompt in values])
    disagreement = rate(totals, np.array([float(len(of_prompt)) for of_prompt in values]))
    chance, pairs = 1 - _agreement(every_value), max(len(every_value) - len(values), 1)
    deviations = 0.0
    if disagreement is not None:  # were answers dealt out at random, rows less prompts would be independent pairs
        deviations = (chance - disagreement.value) / max((chance * (1 - chance) / pairs) ** 0.5, 1e-9)
    has_one_form = kind.has_one_form or bool(np.mean(list(map(_is_plain, every_value))) >= LEAST_DECIDED)
    clashes = _find_clashes(prompts, kind)
    repeated_rows = int(repeated.counts.sum())
    share = sum(len(clash.numbers) for clash in clashes) / sum(map(len, sampled)) * repeated_rows / total
    repeated_share = len(repeated) / (total - repeated_rows + len(repeated))
    is_like_chance = len(values) >= MIN_PROMPTS and LIKE_CHANCE[0] < deviations < LIKE_CHANCE[1]
    are_free = share > MAX_SHARE or (is_like_chance and repeated_share >= LEAST_REPEATED)
    verdict: Verdict = "open"
    if _is_decided(disagreement, chance, deviations, has_one_form):
        verdict = "decided"
    elif kind.is_told and has_one_form and not are_free:
        verdict = "unknown"
    if verdict != "open":
        clashes = _find_all_clashes(reader, repeated, kind) or clashes
    return ConflictsOfTask(task, total, len(values), verdict, tuple(clashes), disagreement, kind.has_one_form)


def _is_decided(disagreement: Interval | None, chance: float, deviations: float, has_one_form: bool) -> bool:
    """Whether prompts decide answers; deviations are the standard deviations by which rows disagree less than by chance."""
    if disagreement is None or deviations <= SURELY or disagreement.value > (1 - LEAST_ALPHA) * chance:
        return False
    return has_one_form or disagreement.high <= MOST_OPEN


def _find_all_clashes(reader: Reader, repeated: _Repeated, kind: _KindOfTask) -> list[Clash]:
    """The prompts with different answers among the first `MAX_PROMPTS_LISTED`, by their first rows."""
    places = np.flatnonzero(repeated.is_differing)[:MAX_PROMPTS_LISTED]
    clashes = list[Clash]()
    for start in range(0, len(places), PROMPTS_READ_TOGETHER):  # texts are as long as they like
        groups = [repeated.rows(place)[:ROWS_READ] for place in places[start : start + PROMPTS_READ_TOGETHER].tolist()]
        clashes += _find_clashes(_read_prompts(reader, groups, kind), kind)
    return sorted(clashes, key=lambda clash: clash.numbers)


def _read_prompts(reader: Reader, groups: Sequence[np.ndarray], kind: _KindOfTask) -> Iterator[list[tuple[int, str]]]:
    """Of each prompt its rows (number, answer) whose answer can be told; a group has several where contexts differ.

    Where a long text's last number stands for its answer, the same text in two rows is one witness.
    """
    examples = reader.examples(np.unique(np.concatenate(groups))) if groups else {}
    for group in groups:
        by_context = defaultdict[int, dict[str | int, tuple[int, str]]](dict)
        for number in group.tolist():
            row = examples[number]
            text = row.answer or plain(row.target)
            told = tell_answer(text)
            if told is not None and not (told.kind == "last" and kind.is_told):
                witness = normal_form(text) if told.kind == "last" else number
                by_context[_context_of(row)].setdefault(witness, (number, told.value))
        yield from (list(witnesses.values()) for witnesses in by_context.values())


def _find_clashes(prompts: Iterable[list[tuple[int, str]]], kind: _KindOfTask) -> list[Clash]:
    clashes = []
    for prompt in prompts:
        numbers, values = zip(*prompt, strict=True)
        usual = Counter(values).most_common(1)[0][0]
        # what agrees with the commonest answer is written as that, so that only rows that disagree with it are listed
        values = tuple(usual if kind.agree(value, usual) else value for value in values)
        if len({*values}) > 1:
            clashes.append(Clash(numbers, values))
    return clashes


def _disagreement(values: Sequence[str], kind: _KindOfTask) -> float:
    """Share of the pairs of these answers that disagree."""
    counts = Counter(values)
    agreeing = sum(
        count * (other_count - (value == other))
        for value, count in counts.items()
        for other, other_count in counts.items()
        if kind.agree(value, other)
    )
    return 1 - agreeing / (len(values) * (len(values) - 1))


def _agreement(values: Sequence[str]) -> float:
    """Probability that two of these answers, drawn without replacement, are the same."""
    return sum(count * (count - 1) for count in Counter(values).values()) / (len(values) * (len(values) - 1))


def _context_of(row: Example) -> int:
    """A hash of the columns that are called like a context."""
    own = {name: value for name, value in sorted(row.extra.items()) if not OWN_CONTEXTS.isdisjoint(name_words(name))}
    return hash64(json.dumps(own, sort_keys=True, default=str)) if own else 0


def tell_answer(text: str) -> Told | None:
    r"""The answer that a text gives: JSON, behind a mark, a short text as a whole, or the last number of a long one.

    Examples:
        >>> tell_answer(r"So it is \boxed{1,200}."), tell_answer("(B) ")
        (Told(value='1200', kind='marked'), Told(value='b', kind='whole'))
    """
    text = to_visible(text).strip()
    if wrapped := _WRAPPED.fullmatch(text):  # a call between tags, or a block of JSON; other blocks are code
        text = (wrapped[1] or wrapped[3] or "").strip()
    if text[:1] in ("{", "[") and len(text) <= MAX_JSON_CHARACTERS:
        try:
            return Told(json.dumps(_fold_leaves(json.loads(text)), sort_keys=True), "json")
        except (ValueError, RecursionError):
            pass
    stated = find_stated_answers(text)
    if stated and stated[0].kind == "marked" and (value := _fold_answer(stated[0].text)):
        return Told(value, "marked")
    if len(text) <= BRIEF_ANSWER_CHARACTERS and "\n" not in text:
        value = _fold_answer(text)
        return Told(value, "whole") if value else None
    last = _fold_answer(final_answer(text)) if any(map(str.isdigit, text[-400:])) and not _CODE.search(text) else ""
    return Told(last, "last") if last else None


def _fold_answer(text: str) -> str:
    """An answer without case, marks and brackets; a number in one form."""
    text = _OPENING.sub("", text.strip(" \t\n$*`_.\"'")).strip(" $*`_\"'")
    if _NUMBER.fullmatch(text):
        return str(Fraction(text.replace(",", "")))
    if (parts := _WITH_UNIT.fullmatch(text)) and _NUMBER.fullmatch(parts[1]):
        return f"{Fraction(parts[1].replace(',', ''))} {parts[2].casefold()}"
    return " ".join(_WORD.findall(normal_form(text).casefold().replace("_", " "))) or text


def _fold_leaves(value: Any) -> Any:
    """JSON without the case of its texts, in which those that are numbers have one form."""
    if isinstance(value, dict):
        return {key: _fold_leaves(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_fold_leaves(one) for one in value]
    if not isinstance(value, str):
        return value
    return _fold_answer(value) if _NUMBER.fullmatch(value.strip()) else value.strip().casefold()


def _is_plain(value: str) -> bool:
    """Whether an answer is a letter or a number, which may have a unit of one word."""
    number, _, unit = value.partition(" ")
    return len(value) == 1 or (_NUMBER.fullmatch(number) is not None and " " not in unit)


def _shortens(short: str, unit: str) -> bool:
    """Whether a unit has the first letter of another and further ones of its letters in their order: km, kilometers."""
    letters = iter(unit)
    return short[:1] == unit[:1] and all(letter in letters for letter in short)


def are_one_answer(first: str, second: str) -> bool:
    """Whether one open answer has all words of the other, or is another spelling of it.

    Examples:
        >>> are_one_answer("new york", "new york city"), are_one_answer("guilty", "not guilty"), are_one_answer("7", "8")
        (True, False, False)
    """
    words, others = ({*text.split()} - _FILLERS for text in (first, second))
    if (words ^ others) & _NEGATIONS:
        return False
    if words and others and (words <= others or others <= words):
        return True
    (number, _, unit), (other_number, _, other_unit) = first.partition(" "), second.partition(" ")
    if number == other_number and _NUMBER.fullmatch(number) and " " not in unit + other_unit:
        return _shortens(unit, other_unit) or _shortens(other_unit, unit)
    if any(map(str.isdigit, first + second)) or first[:1] != second[:1] or max(len(first), len(second)) > 200:
        return False
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= NEARLY_SAME
