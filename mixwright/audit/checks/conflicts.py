"""Check of conflicting labels: a prompt has several answers, although equal prompts of the task usually have one.

Source: Northcutt et al. 2021 (arXiv 2103.14749): at least 3.3 % of the labels of ten test sets are wrong; the tests are our
    own.
Unit: rows whose prompt stands with another answer, too; the probability that two rows with the same prompt disagree.
Cost: the fingerprints of `duplicates`; 2,000 rows of repeated prompts of a task; to list them, 50,000 prompts in conflict.
Blind spot: which answer is right; wrong labels of prompts that stand once; long answers without a mark or JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixwright.audit.conflicts import ConflictsOfTask, find_conflicts
from mixwright.audit.rows import Reader, tasks_of_files
from mixwright.audit.text import common_length
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.errors import join_some
from mixwright.records import Observation, Severity

MIN_CLASHES = 3
"""Prompts in conflict below which it is an info, unless the answers have one form."""
ERROR_SHARE = 0.1
"""Share of a graded task's rows in conflict from which on they are an error."""
ANSWER_CHARACTERS = 40
"""Characters of an answer that a message shows."""
REMEDY = (
    "Correct or remove the wrong rows: --out FOLDER lists each with the usual answer to its prompt. If both are right, add "
    "the missing detail to the prompt, or use a grader that accepts both."
)
NULL = "answers dealt out at random among these rows"


class Conflicts(Check):
    """Compares training rows with the same prompt."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Report conflicts of each task, and tasks whose prompts have several right answers."""
        found, reader = find_conflicts(corpus), Reader(corpus, whole=self.whole)
        told = [one for one in found if one.clashes and one.verdict != "open"]
        observations = [_observe(corpus, reader, one) for one in told]
        if undecided := [one for one in found if one.clashes and one.verdict == "open"]:
            prompts, names = sum(len(one.clashes) for one in undecided), join_some([_name(one) for one in undecided])
            text = f"{_count_prompts(prompts)} several answers in tasks with free answers: {names}."
            rows = sum(one.rows for one in undecided)
            total = sum(one.total for one in undecided)
            observations.append(Observation("conflicts", None, "info", rows, total, text, "", NULL))
        if not observations:
            prompts = sum(one.prompts for one in found)
            text = "No prompt has conflicting answers" + (
                " within a task" if len(corpus.tasks) > max(1, len(tasks_of_files(corpus))) else ""
            )
            text += f"; {prompts:,} prompts with several rows were compared." if prompts else ": none has several rows."
            observations.append(Observation("conflicts", None, "info", 0, len(corpus), text, "", NULL))
        return observations


def _observe(corpus: Corpus, reader: Reader, one: ConflictsOfTask) -> Observation:
    prompts, pairs = len(one.clashes), one.pairs
    evidence = reader.pair_evidence(pairs, "other_", "usual_")
    place = " in different files" if one.task is None else ""
    text = f"{_count_prompts(prompts)} conflicting answers{place}, such as "
    text += f"{_show_answers(one, evidence[0])}."
    null = "none: such a prompt has one answer"
    if one.verdict == "decided" and one.disagreement is not None:
        text += f" At least {len(pairs):,} of these rows are wrong."
        null = NULL
    elif one.disagreement is not None:
        text += " Both may be right: prompts of this task often have several answers."
    names = tasks_of_files(corpus) if one.task is None else (one.task,)
    is_graded = all(corpus.tasks[name].kind == "verifiable" for name in names)
    severity: Severity = (
        "error" if is_graded and one.verdict == "decided" and one.rows >= ERROR_SHARE * one.total else "warning"
    )
    if not one.has_one_form and prompts < MIN_CLASHES:
        severity = "info"
    remedy = "" if severity == "info" else REMEDY
    return Observation("conflicts", one.task, severity, one.rows, one.total, text, remedy, null, evidence)


def _name(one: ConflictsOfTask) -> str:
    return "several files" if one.task is None else repr(one.task)


def _show_answers(one: ConflictsOfTask, evidence: Mapping[str, Any]) -> str:
    """Return the two answers of the first pair, or where they are long the values in them."""
    answers = [evidence[f"{side}_answer"].strip() for side in ("usual", "other")]
    if max(map(len, answers)) > ANSWER_CHARACTERS:
        clash, (other, usual) = one.clashes[0], one.pairs[0]
        answers = [clash.values[clash.numbers.index(number)] for number in (usual, other)]
    if max(map(len, answers)) > ANSWER_CHARACTERS:
        start = max(0, common_length(*answers) - ANSWER_CHARACTERS // 2)
        answers = [answer[start : start + ANSWER_CHARACTERS] for answer in answers]
    return " and ".join(map(repr, answers))


def _count_prompts(count: int) -> str:
    return f"{count:,} prompt has" if count == 1 else f"{count:,} prompts have"
