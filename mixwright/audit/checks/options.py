"""Check of rows with options: an answer that is none of them, two that say the same, and rows that lack them.

Source: own; options are read as the grader `choice` reads them, from a column `options` or `choices`.
Unit: rows of a task that have an answer, of both splits.
Cost: one pass; rows with a column of options are read whole.
Blind spot: rows whose options stand in the prompt alone, and an answer that is one of the options and not the right one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from mixwright.audit.rows import EXCERPT_CHARACTERS, Reader, rows_by_task
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.errors import join_some
from mixwright.final_answer import find_stated_answers
from mixwright.graders.choice import OPTION_COLUMNS, Choice, labelled_options, option_index, option_texts, options_of
from mixwright.graders.final_answer import listed_options
from mixwright.records import Example, Observation, plain

CHOICE_TASK_SHARE = 0.5
"""Share of a task's rows with options from which on the others are told to lack them; under the grader `choice` one is
enough."""
SHORT_WORD_LETTERS = 2
WRONG_ANSWER, REPEATED_OPTION, NO_OPTIONS = (
    "an answer that is not one of their options",
    "the same option twice",
    "no two options with a text each",
)
REMEDIES = {
    WRONG_ANSWER: "Correct the answer: the label or text of an option, or its index from 0.",
    REPEATED_OPTION: "Make the options different, or remove one.",
    NO_OPTIONS: "Add options, or move these rows to another task.",
}


class Options(Check):
    """Looks at rows with answers and options."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """A warning for each thing that is wrong with rows of a task, with the first of them; an info where nothing is.

        Tasks without any options get none.
        """
        observations, reader = list[Observation](), Reader(corpus, whole=self.whole)
        has_options, broken = np.zeros(len(corpus), bool), defaultdict[tuple[str, str], list[int]](list)
        is_answered = pc.is_valid(corpus.table["answer"]).to_numpy()
        may_have = pc.match_substring_regex(corpus.table["extra"], f'"({"|".join(OPTION_COLUMNS)})"').to_numpy()
        for number, example in reader.iterate(np.flatnonzero(may_have & is_answered)):
            texts = option_texts(example)
            has_options[number] = len(texts) > 1 and all(texts)
            if has_options[number] and not _names_an_option(example, len(texts)):
                broken[example.task, WRONG_ANSWER].append(number)
            written = [_as_compared(text) for text in labelled_options(example).values()]
            if has_options[number] and len({*written}) < len(written):
                broken[example.task, REPEATED_OPTION].append(number)
        for task, of_task in rows_by_task(corpus).items():
            numbers = of_task[is_answered[of_task]]
            with_options = int(has_options[numbers].sum())
            if not with_options:
                continue
            if isinstance(corpus.grader(task), Choice) or with_options >= CHOICE_TASK_SHARE * len(numbers):
                for number, example in reader.iterate(numbers[~has_options[numbers]]):
                    if not listed_options(plain(example.prompt)):
                        broken[task, NO_OPTIONS].append(number)
            observations += _observe_task(task, with_options, len(numbers), broken, reader)
        return observations


def _as_compared(text: str) -> tuple[str, ...]:
    """The words of an option; those of one or two letters keep their case, which is what `Bb` and `bb` differ in."""
    return tuple(word.casefold() if len(word) > SHORT_WORD_LETTERS else word for word in text.split())


def _names_an_option(example: Example, count: int) -> bool:
    """Whether the answer, or the final answer that it states, is a label, a text, both, or a place of one of the options."""
    value = options_of(example.extra)
    answer = (example.answer or "").strip()
    stated_answers = [statement.text.strip() for statement in find_stated_answers(answer) if statement.kind == "marked"]
    return any(
        option_index(value, text) is not None or (text.isdecimal() and int(text[:6]) < count)
        for text in (answer, *stated_answers)
    )


def _observe_task(
    task: str,
    with_options: int,
    total: int,
    broken: dict[tuple[str, str], list[int]],
    reader: Reader,
) -> list[Observation]:
    observations = []
    for problem, remedy in REMEDIES.items():
        if (task, problem) not in broken:
            continue
        count, total_rows = len(broken[task, problem]), total if problem == NO_OPTIONS else with_options
        examples = reader.first_examples(broken[task, problem])
        first_example = examples[0]
        options_text = join_some([f"{label}) {text}" for label, text in labelled_options(first_example).items()])
        text = f"{count} of {total_rows} rows{' with options' * (problem != NO_OPTIONS)} have {problem}. "
        text += f"The first is {first_example.source or first_example.id}: {first_example.answer!r:.{EXCERPT_CHARACTERS}}, "
        text += f"options {options_text[:EXCERPT_CHARACTERS] or 'none'}."
        evidence = tuple(_make_evidence(example) for example in examples)
        null = "none: every answer is one of several different options"
        observations.append(Observation("options", task, "warning", count, total_rows, text, remedy, null, evidence))
    if not observations:
        text = f"{with_options} of {total} rows have options; all are different, and each answer is one of them."
        observations.append(Observation("options", task, "info", with_options, total, text, ""))
    return observations


def _make_evidence(example: Example) -> dict[str, Any]:
    texts = [text[:EXCERPT_CHARACTERS] for text in labelled_options(example).values()]
    answer = (example.answer or "")[:EXCERPT_CHARACTERS]
    return {"id": example.id, "source": example.source, "split": example.split, "answer": answer, "options": texts}
