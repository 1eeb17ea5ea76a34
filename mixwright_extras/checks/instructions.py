"""Check of instructions: whether rows teach the model to read the instruction, and answers that do not follow it.

Source: Kung and Peng 2023 (arXiv 2305.11383): models may learn which answers there are alone; the tests are our own.
Unit: inputs under two instructions that ask for different things; rows whose instruction names or settles their answer.
Cost: at most 10,000 rows of a task and 100,000 in all are read, and 2,000 characters of a prompt.
Blind spot: instructions that differ by other words than the listed ones, where fewer than 8 inputs stand under either alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mixwright.extend import (
    EXCERPT_CHARACTERS,
    MAX_NAMES_SHOWN,
    Check,
    Corpus,
    Observation,
    Reader,
    format_expected,
    join_some,
    plain,
)
from mixwright_extras.instructions.following import (
    PAIRS_WANTED,
    Ignored,
    Named,
    Settled,
    Unfulfilled,
    find_instructions,
)
from mixwright_extras.instructions.following import Instructions as Found
from mixwright_extras.instructions.parts import write_answer

MOST_TOLD = 3
"""Instructions of one task whose named answers are told, those with most rows first."""
SHOWN_CHARACTERS = 80
NULL = "answers dealt out at random under each instruction"
SAME_REMEDY = (
    "Correct the answers, or leave these rows out; then use inputs under both instructions, each with its own answer."
)


class Instructions(Check):
    """Looks at training rows with an instruction and an input."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Warnings of answers that do not follow their instruction; infos on how often the instruction decides."""
        found, reader = find_instructions(corpus), Reader(corpus, whole=self.whole)
        observations = [_observe_ignored(one, reader) for one in found.ignored]
        told = Counter[str]()
        for one in sorted(found.named, key=lambda one: -one.read):
            told[one.task] += 1
            if told[one.task] <= MOST_TOLD:
                observations += _observe_named(one, reader)
        observations += [_observe_unfulfilled(one, reader) for one in found.unfulfilled]
        observations += [_observe_settled(one, reader) for one in found.settled]
        return observations + _observe_all(found)


def _observe_ignored(one: Ignored, reader: Reader) -> Observation:
    first, second = one.pairs[0].excluding or (_shorten(text) for text in one.pairs[0].texts)
    of_tasks = "" if one.tasks[0] == one.tasks[1] else f" of the tasks {one.tasks[0]!r} and {one.tasks[1]!r}"
    text = f"Of {one.shared:,} inputs under two instructions{of_tasks} that ask for different things ({first!r} and "
    text += f"{second!r}), {one.same:,} have the same answer under both. By chance {format_expected(one.expected)} would. "
    if one.pairs[0].shown:
        text += f"They ask for different things, because {one.pairs[0].shown}. "
    if len(one.pairs) > 1:
        text += f"These are {len(one.pairs):,} pairs of instructions; an input counts once for each. "
    text += "Such rows teach the model to ignore the instruction."
    rows = [row for pair in one.pairs for row in pair.rows[: pair.same]]
    task = one.tasks[0] if one.tasks[0] == one.tasks[1] else None
    evidence = reader.pair_evidence(rows, "first_", "second_")
    return Observation("instructions", task, "warning", one.same, one.shared, text, SAME_REMEDY, NULL, evidence)


def _observe_named(one: Named, reader: Reader) -> list[Observation]:
    asked, answers, found = _quote(one.text), one.answers, list[Observation]()
    if answers.unnamed:
        names = _name(answers.named or answers.unused)
        others = _name(answers.unnamed)
        text = (
            f"The instruction {asked} names the answers {names}. Of {one.read:,} rows with it {len(one.not_named):,} have "
        )
        text += f"another answer: {others}."
        remedy, null = "Name these answers in the instruction, or correct them.", "no answer but those that are named"
        evidence = _list_rows(one.not_named, reader)
        found.append(
            Observation("instructions", one.task, "warning", len(one.not_named), one.read, text, remedy, null, evidence)
        )
    if answers.named and answers.unused:
        text = f"The instruction {asked} names {_name(answers.unused)}, which "
        often = f"none of {one.read:,} rows with it has"
        if one.with_unused:
            often = f"only {one.with_unused} of {one.read:,} rows with it has"
        text += f"{often} as its answer. The answers are {_name(answers.named)}."
        remedy = "Add rows with this answer, or take it out of the instruction."
        null = "named answers a quarter as frequent as equal shares make them"
        evidence = _list_rows(one.rows[:MAX_NAMES_SHOWN], reader)
        found.append(Observation("instructions", one.task, "warning", one.read, one.read, text, remedy, null, evidence))
    return found


def _observe_unfulfilled(one: Unfulfilled, reader: Reader) -> Observation:
    text = (
        f"Of {one.read:,} rows whose instruction asks for {one.request}, {len(one.rows):,} have an answer that "
        "does not comply."
    )
    remedy, null = (
        "Correct these answers, or their instructions (--out FOLDER lists the rows).",
        "answers that comply",
    )
    evidence = _list_rows(one.rows, reader)
    return Observation("instructions", one.task, "warning", len(one.rows), one.read, text, remedy, null, evidence)


def _observe_settled(one: Settled, reader: Reader) -> Observation:
    text = f"Of {len(one.rows):,} rows under {len(one.answers)} instructions, {one.same:,} have the only answer of their "
    text += "instruction: "
    text += join_some([f"{answer!r} under {_quote(asked)}" for asked, answer in one.answers])
    text += ". So the instruction alone gives the answer, and the model need not read the input."
    remedy = "Add rows with other answers under each of these instructions."
    null = "answers of the task dealt out at random over its rows"
    evidence = _list_rows(one.rows, reader)
    return Observation("instructions", one.task, "warning", one.same, len(one.rows), text, remedy, null, evidence)


def _observe_all(found: Found) -> list[Observation]:
    """How often instructions vary, and how often they decide: one info each."""
    observations = []
    if found.constant:
        text = (
            f"In {len(found.constant):,} of {found.tasks:,} tasks the instruction never varies. That is usual, but rows of "
        )
        text += "such a task alone do not teach the model to read the instruction."
        evidence = tuple({"task": task} for task in found.constant)
        observations.append(
            Observation("instructions", None, "info", len(found.constant), found.tasks, text, "", "", evidence)
        )
    if found.kinds > 1 and found.rows > found.read / 2:
        text = f"None of {found.rows:,} rows with an instruction has an input that also appears under another instruction."
        if found.shared:
            text = (
                f"Of {found.rows:,} rows with an instruction, {found.shared:,} have an input that also appears "
                "under another "
            )
            text += f"instruction; {found.decided:,} of them have a different answer there, so the instruction "
            text += "decides it."
        missing = PAIRS_WANTED - found.decided // 2
        remedy = f"Add {missing} inputs under another instruction, with another answer." if missing > 0 else ""
        observations.append(Observation("instructions", None, "info", found.decided, found.rows, text, remedy))
    return observations


def _quote(text: str) -> str:
    return repr(_shorten(text))


def _shorten(text: str) -> str:
    """The end of a text, which says most often what to answer."""
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_CHARACTERS else f"\u2026{text[-SHOWN_CHARACTERS:]}"


def _name(answers: Sequence[str]) -> str:
    return join_some([repr(answer) for answer in answers])


def _list_rows(numbers: Sequence[int], reader: Reader) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "id": row.id,
            "source": row.source,
            "prompt": plain(row.prompt)[:EXCERPT_CHARACTERS],
            "answer": write_answer(row)[:EXCERPT_CHARACTERS],
        }
        for row in reader.first_examples(numbers)
    )
