"""Whether rows teach that an instruction is to be read: inputs under several instructions, and answers that these name.

Source: Kung and Peng 2023 (arXiv 2305.11383): models may learn which answers there are, and not what is asked for.
Two instructions are compared on the inputs that both stand before. Where they ask for different things, as far as their
words or the answers of other inputs say so, the answers ought to differ; answers dealt out at random would agree in as many
as their shares make.
Left out on purpose: whether an answer is what is asked for, beyond its form and the answers that are named.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mixwright.extend import Corpus, Example, Reader, binomial_tail
from mixwright_extras.instructions.answers import Answered, what_answers_show
from mixwright_extras.instructions.parts import (
    CLOSED_SHARE,
    LEAST_PROMPTS,
    MAX_LABELS,
    Divided,
    divide_rows,
    read_answered,
    write_instruction,
)
from mixwright_extras.instructions.wording import (
    REQUESTS,
    NamedAnswers,
    compare_with_named,
    what_excludes,
)

MIN_ROWS = 40
"""Rows of a task, or of an instruction whose named answers are read, below which nothing is said."""
CONSTANT_SHARE = 0.95
"""Share of a task's rows that have one instruction, from which on it never varies."""
MAX_INSTRUCTIONS_OF_INPUT = 12
"""Instructions of one input that are compared with each other."""
MIN_INPUTS_OF_PAIR, MIN_SHARED_INPUTS = 3, 15
"""Inputs that two instructions have in common, below which they are not compared; and two of one task or two together."""
MAX_PAIRS_COMPARED = 2_000
"""Pairs of instructions whose wording is compared; those with most inputs in common first."""
MAX_PAIRS_READ, MAX_ROWS_OF_PAIR = 100, 200
"""Pairs whose inputs and answers are read, and rows of either that are read for one."""
LEAST_SAME_SHARE = 0.6
"""Share of the inputs under two instructions that ask for different things with one answer, from which on it is told."""
ALPHA = 0.001
"""Probability of so many, were answers dealt out at random under each instruction."""
MAX_LABEL_WORDS = 5
LEAST_UNNAMED_ROWS, LEAST_UNNAMED_SHARE = 5, 0.05
"""Rows whose answer their instruction does not name, and their share, from which on they are told."""
LEAST_UNFULFILLED = 0.3
"""Share of the rows that are asked for a form and have it not, from which on they are told."""
RARE = 0.25
"""An answer that is named is missing where one this part as frequent as equal shares make it would occur."""
RARELY = 0.01
"""Share of the rows that an answer has that hardly occurs."""
SETTLED_SHARE, LEAST_SETTLED, LEAST_SETTLING = 0.97, 0.8, 3
"""Share of an instruction's rows with one answer that settle it; share of a task's rows under such, and their number."""
PAIRS_WANTED = 50
"""Inputs that should stand under two instructions, with two answers."""


@dataclass(frozen=True)
class Pair:
    """Two instructions that stand before the same inputs."""

    tasks: tuple[str, str]
    """Of most rows with them."""
    texts: tuple[str, str]
    """The instructions."""
    excluding: tuple[str, str] | None
    """Words by which they ask for different things, or answers elsewhere; None where they may be paraphrases."""
    shared: int
    """Inputs that both stand before."""
    same: int
    """Of these, inputs that have the same answer under both."""
    expected: float
    """Of these, how many would have, were answers dealt out at random under each instruction."""
    rows: tuple[tuple[int, int], ...]
    """Numbers of rows with the same input, those with the same answer first."""
    shown: str = ""
    """How answers elsewhere show that they ask for different things, where their words do not."""


@dataclass(frozen=True)
class Ignored:
    """Instructions of one task, or of two, that ask for different things and have the same answers."""

    tasks: tuple[str, str]
    """Tasks of the rows; the same name twice where it is one."""
    pairs: tuple[Pair, ...]
    """Those with most inputs first."""

    @property
    def shared(self) -> int:
        """Inputs under two such instructions, counted for each two."""
        return sum(pair.shared for pair in self.pairs)

    @property
    def same(self) -> int:
        """Of these, inputs with the same answer under both."""
        return sum(pair.same for pair in self.pairs)

    @property
    def expected(self) -> float:
        """Of these, how many would have, were answers dealt out at random."""
        return sum(pair.expected for pair in self.pairs)

    @property
    def is_beyond_chance(self) -> bool:
        """Whether so many would not have the same answer by chance."""
        if self.shared < MIN_SHARED_INPUTS or self.same < LEAST_SAME_SHARE * self.shared:
            return False
        chance = min(max(self.expected / self.shared, 1e-9), 1 - 1e-9)
        return binomial_tail(self.same, self.shared, chance) < ALPHA


@dataclass(frozen=True)
class Unfulfilled:
    """Rows whose instruction asks for a form that their answer has not."""

    task: str
    """Task of the rows."""
    request: str
    """What is asked for."""
    rows: tuple[int, ...]
    """Numbers of the rows without it."""
    read: int
    """Rows of the task whose instruction asks for it, of those that were read."""


@dataclass(frozen=True)
class Named:
    """Answers that an instruction names, beside those that its rows have."""

    task: str
    """Task of the rows."""
    text: str
    """The instruction."""
    answers: NamedAnswers
    """What it names, and what occurs."""
    read: int
    """Rows of the task with it that were read."""
    not_named: tuple[int, ...]
    """Numbers of the rows whose answer it does not name."""
    rows: tuple[int, ...]
    """Numbers of all of them."""
    with_unused: int
    """Rows with a named answer that hardly occurs."""


@dataclass(frozen=True)
class Settled:
    """Instructions of one task that have one answer each, so that no input need be read."""

    task: str
    """Task of the rows."""
    answers: tuple[tuple[str, str], ...]
    """Each instruction with its answer."""
    same: int
    """Rows that have the answer of their instruction."""
    rows: tuple[int, ...]
    """Numbers of the rows under these instructions."""


@dataclass(frozen=True)
class Instructions:
    """What was found in a corpus."""

    tasks: int
    """Tasks with `MIN_ROWS` rows or more that were read and have instructions."""
    constant: tuple[str, ...]
    """Of these, tasks whose instruction never varies."""
    rows: int
    """Rows with an instruction and an input that were read."""
    read: int
    """Training rows that were read."""
    kinds: int
    """Different instructions of `LEAST_PROMPTS` rows or more."""
    shared: int
    """Rows whose input stands under another instruction, too."""
    decided: int
    """Of these, rows that have another answer than all rows with their input under some other instruction."""
    pairs: tuple[Pair, ...]
    """Of instructions that stand before the same inputs, most inputs first."""
    ignored: tuple[Ignored, ...]
    """Of these, the ones that ask for different things and have the same answers beyond chance, by task."""
    unfulfilled: tuple[Unfulfilled, ...]
    """Forms that instructions ask for and answers have not."""
    named: tuple[Named, ...]
    """Instructions whose named answers are not those that occur."""
    settled: tuple[Settled, ...]
    """Tasks whose instructions have one answer each."""


Key = int


def find_instructions(corpus: Corpus) -> Instructions:
    """Look at the training rows of all tasks together."""
    tasks, divided = divide_rows(corpus)
    rows = [row for row in divided if row.instruction and row.input]
    reader, counts = Reader(corpus), Counter(row.instruction for row in rows)
    by_input: dict[Key, dict[Key, list[Divided]]] = defaultdict(dict)
    for row in rows:
        by_input[row.input].setdefault(row.instruction, []).append(row)
    shared = [one for one in by_input.values() if len(one) > 1]
    constant, judged = _find_constant(tasks, divided)
    pairs = _compare_pairs(reader, tasks, shared, _read_apart(by_input))
    return Instructions(
        judged,
        tuple(constant),
        len(rows),
        len(divided),
        sum(count >= LEAST_PROMPTS for count in counts.values()),
        sum(len(own) for one in shared for own in one.values()),
        sum(_count_decided(one) for one in shared),
        tuple(pairs),
        tuple(_find_ignored(pairs)),
        *_compare_with_answers(reader, tasks, rows),
    )


def _find_constant(tasks: Sequence[str], rows: Iterable[Divided]) -> tuple[list[str], int]:
    """Tasks whose instruction never varies, and how many tasks have instructions."""
    by_task: dict[int, Counter[Key]] = defaultdict(Counter)
    for row in rows:
        by_task[row.task][row.instruction] += 1
    judged = {code: own for code, own in by_task.items() if own.total() >= MIN_ROWS and own[0] < own.total() / 2}
    return [tasks[code] for code, own in judged.items() if own.most_common(1)[0][1] >= CONSTANT_SHARE * own.total()], len(
        judged
    )


def _count_decided(by_instruction: Mapping[Key, Sequence[Divided]]) -> int:
    answers = [{row.answer for row in own} for own in by_instruction.values()]
    return sum(any(row.answer not in other for other in answers) for own in by_instruction.values() for row in own)


def _compare_pairs(
    reader: Reader,
    tasks: Sequence[str],
    shared: Sequence[Mapping[Key, Sequence[Divided]]],
    apart: Mapping[Key, Sequence[Divided]],
) -> list[Pair]:
    """Pairs of instructions with enough inputs in common."""
    rows: dict[tuple[Key, Key], list[tuple[Divided, Divided]]] = defaultdict(list)
    for one in shared:
        for first, second in combinations(sorted(one)[:MAX_INSTRUCTIONS_OF_INPUT], 2):
            rows[first, second].append(_choose_alike(one[first], one[second]))
    often = sorted((pair for pair, own in rows.items() if len(own) >= MIN_INPUTS_OF_PAIR), key=lambda pair: -len(rows[pair]))
    often = often[:MAX_PAIRS_COMPARED]
    first_rows = {key: row for pair in often for key, row in zip(pair, rows[pair][0], strict=True)}
    examples = _read_examples(reader, [row.number for row in first_rows.values()])
    texts = {key: write_instruction(examples[row.number], row) for key, row in first_rows.items()}
    found = []
    for first, second in often:
        own = rows[first, second]
        of_both = Counter((one.task, other.task) for one, other in own).most_common(1)[0][0]
        counts = [Counter(pair[side].answer for pair in own) for side in (0, 1)]
        labels = [answer for answer, _ in sum(counts, Counter()).most_common(MAX_LABELS)]
        found.append(
            Pair(
                (tasks[of_both[0]], tasks[of_both[1]]),
                (texts[first], texts[second]),
                what_excludes(texts[first], texts[second], labels),
                len(own),
                sum(one.answer == other.answer for one, other in own),
                sum(count * counts[1][answer] for answer, count in counts[0].items()) / len(own),
                tuple(
                    (one.number, other.number) for one, other in sorted(own, key=lambda two: two[0].answer != two[1].answer)
                ),
            )
        )
    return _read_answers(reader, found, often, rows, apart)


def _read_answers(
    reader: Reader,
    pairs: Sequence[Pair],
    keys: Sequence[tuple[Key, Key]],
    rows: Mapping[tuple[Key, Key], Sequence[tuple[Divided, Divided]]],
    apart: Mapping[Key, Sequence[Divided]],
) -> list[Pair]:
    """The same pairs; where words do not exclude each other and answers are the same beyond chance, answers are read."""
    found = [*pairs]
    wanted = [
        place for place, pair in enumerate(pairs) if not pair.excluding and Ignored(pair.tasks, (pair,)).is_beyond_chance
    ]
    for place in wanted[:MAX_PAIRS_READ]:
        both = rows[keys[place]]
        differing = [two for two in both if two[0].answer != two[1].answer]
        alone = [[two[side] for two in differing] + [*apart.get(keys[place][side], ())] for side in (0, 1)]
        chosen = [own[:MAX_ROWS_OF_PAIR] for own in alone]
        examples = _read_examples(reader, [row.number for own in chosen for row in own])
        first, second = ([Answered(*read_answered(examples[row.number], row)) for row in own] for own in chosen)
        found[place] = replace(pairs[place], shown=what_answers_show(first, second))
    return found


def _read_apart(by_input: Mapping[Key, Mapping[Key, Sequence[Divided]]]) -> Mapping[Key, list[Divided]]:
    """A row of each input that stands under one instruction alone, by instruction."""
    apart: dict[Key, list[Divided]] = defaultdict(list)
    for one in by_input.values():
        if len(one) == 1:
            for instruction, own in one.items():
                apart[instruction].append(own[0])
    return apart


def _choose_alike(first: Sequence[Divided], second: Sequence[Divided]) -> tuple[Divided, Divided]:
    """A row of either, with the same answer where there are such."""
    by_answer = {row.answer: row for row in second}
    return next(((row, by_answer[row.answer]) for row in first if row.answer in by_answer), (first[0], second[0]))


def _find_ignored(pairs: Iterable[Pair]) -> list[Ignored]:
    """By task, pairs that are beyond chance on their own; and those of too few inputs, together."""
    own, small = defaultdict[tuple[str, str], list[Pair]](list), defaultdict[tuple[str, str], list[Pair]](list)
    for pair in pairs:
        first, second = sorted(pair.tasks)
        if pair.excluding and pair.shared < MIN_SHARED_INPUTS:
            small[first, second].append(pair)
        elif (pair.excluding or pair.shown) and Ignored(pair.tasks, (pair,)).is_beyond_chance:
            own[first, second].append(pair)
    for tasks, some in small.items():
        if Ignored(tasks, tuple(some)).is_beyond_chance:
            own[tasks] += some
    alone = {first for first, second in own if first == second}  # what two tasks share is told there
    return [
        Ignored(tasks, tuple(some)) for tasks, some in sorted(own.items()) if tasks[0] == tasks[1] or alone.isdisjoint(tasks)
    ]


def _compare_with_answers(
    reader: Reader, tasks: Sequence[str], rows: Iterable[Divided]
) -> tuple[tuple[Unfulfilled, ...], tuple[Named, ...], tuple[Settled, ...]]:
    """Forms and answers that instructions ask for, beside those that their rows have; and answers that they settle."""
    by_task: dict[int, dict[Key, list[Divided]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_task[row.task][row.instruction].append(row)
    unfulfilled, named, settled = list[Unfulfilled](), list[Named](), list[Settled]()
    for task, every in sorted(by_task.items(), key=lambda one: tasks[one[0]]):
        often = sorted((own for own in every.values() if len(own) >= LEAST_PROMPTS), key=lambda own: -len(own))
        examples = _read_examples(reader, [own[0].number for own in often])
        texts = [write_instruction(examples[own[0].number], own[0]) for own in often]
        for request in REQUESTS:
            asked = [row for text, own in zip(texts, often, strict=True) if request.is_in(text) for row in own]
            without = tuple(row.number for row in asked if not row.forms >> REQUESTS.index(request) & 1)
            if len(asked) >= MIN_ROWS and len(without) >= LEAST_UNFULFILLED * len(asked):
                unfulfilled.append(Unfulfilled(tasks[task], request.name, without, len(asked)))
        one = _find_settled(tasks[task], texts, often, sum(map(len, every.values())))
        settled += [one] if one else []
        named += _find_named(tasks[task], texts, often, is_settled=one is not None)
    return tuple(unfulfilled), tuple(named), tuple(settled)


def _find_settled(task: str, texts: Sequence[str], often: Sequence[Sequence[Divided]], read: int) -> Settled | None:
    """Instructions of a task that have one answer each, where the task has others, beyond chance."""
    counts = [Counter(row.answer for row in own) for own in often]
    own = [place for place, one in enumerate(counts) if one.most_common(1)[0][1] >= SETTLED_SHARE * one.total()]
    answers = [counts[place].most_common(1)[0] for place in own]
    total, rows = sum(counts, Counter[str]()), [row for place in own for row in often[place]]
    if len(own) < LEAST_SETTLING or len({answer for answer, _ in answers}) < 2 or len(rows) < LEAST_SETTLED * read:
        return None
    if len(rows) < MIN_ROWS or len({row.input for row in rows}) < len(rows) / 2:
        return None
    chance = sum(
        math.log(max(binomial_tail(count, counts[place].total(), total[answer] / total.total()), 1e-300))
        for place, (answer, count) in zip(own, answers, strict=True)
    )
    if chance >= math.log(ALPHA):
        return None
    settles = tuple((texts[place], answer) for place, (answer, _) in zip(own, answers, strict=True))
    return Settled(task, settles, sum(count for _, count in answers), tuple(row.number for row in rows))


def _find_named(task: str, texts: Sequence[str], often: Sequence[Sequence[Divided]], *, is_settled: bool) -> Iterable[Named]:
    """Instructions that name answers, those of the same ones together, beside the closed set of their rows' answers."""
    of_task = _read_labels([row for own in often for row in own])
    groups: dict[frozenset[str], list[int]] = defaultdict(list)
    for place, own in enumerate(often):
        one = compare_with_named(texts[place], of_task or _read_labels(own))
        groups[frozenset(one.named) | frozenset(word.casefold() for word in one.unused)].append(place)
    for places in groups.values():
        rows = [row for place in places for row in often[place]]
        labels = _read_labels(rows)
        one = _compare_named(task, texts[places[0]], rows, labels) if labels else None
        if one and (one.answers.unnamed or not is_settled):
            yield one


def _compare_named(task: str, text: str, rows: Sequence[Divided], labels: Sequence[str]) -> Named | None:
    """What an instruction names beside the closed set of its answers; None where these agree."""
    answers, counts = compare_with_named(text, labels), Counter(row.answer.casefold() for row in rows)
    without = [row.number for row in rows if row.answer.casefold() in answers.unnamed]
    if len(without) < max(LEAST_UNNAMED_ROWS, LEAST_UNNAMED_SHARE * len(rows)):
        answers, without = answers._replace(unnamed=()), []
    rare = tuple(answer for answer in answers.named if counts[answer] <= RARELY * len(rows))
    if rare and len(answers.named) - len(rare) + len(answers.unused) > 1:
        kept = tuple(answer for answer in answers.named if answer not in rare)
        answers = answers._replace(named=kept, unused=(*answers.unused, *rare))
    missing = RARE / (len(answers.named) + len(answers.unused)) if answers.named else 0.0
    if answers.named:
        seldom = [one for one in answers.unused if _is_missing(counts[one.casefold()], len(rows), missing)]
        answers = answers._replace(unused=tuple(seldom))
    if not answers.unnamed and not (answers.named and answers.unused):
        return None
    found = sum(counts[one.casefold()] for one in answers.unused) if answers.named else 0
    return Named(task, text, answers, len(rows), tuple(without), tuple(row.number for row in rows), found)


def _is_missing(count: int, rows: int, share: float) -> bool:
    """Whether an answer of this share would hardly occur as seldom."""
    return 1 - binomial_tail(count + 1, rows, share) < ALPHA


def _read_labels(rows: Sequence[Divided]) -> list[str]:
    """The closed set of answers of these rows, without case; empty where they have none, or where numbers are among it."""
    counts = Counter(row.answer.casefold() for row in rows)
    common = counts.most_common(MAX_LABELS)
    labels = [label for label, _ in common]
    is_closed = len(rows) >= MIN_ROWS and sum(count for _, count in common) >= CLOSED_SHARE * len(rows)
    are_words = all(any(map(str.isalpha, label)) and len(label) > 1 and "\n" not in label for label in labels)
    return labels if is_closed and are_words and all(len(label.split()) <= MAX_LABEL_WORDS for label in labels) else []


def _read_examples(reader: Reader, numbers: Iterable[int]) -> dict[int, Example]:
    return reader.examples(np.unique(np.array([*numbers], np.int64)))
