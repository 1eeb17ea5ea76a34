"""Facts of what will be learnt, from rows as a trainer labels them: targets, templates and truncation.

Source: own; the faults are those of public reports of trainings in which nothing was learnt and the loss looked fine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mixwright.records import Observation, Severity


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """One training row as the trainer sees it."""

    number: int
    """Position in the file."""
    task: str
    """Task name."""
    source: str
    """File and line."""
    beginning: str
    """First characters of its text."""
    ids: np.ndarray
    """Token ids, after truncation; int, shape (tokens,). Empty for a row that is left out."""
    targets: np.ndarray
    """Whether the loss is taken on a token; bool, shape (tokens,)."""
    words: np.ndarray | None
    """Whether the assistant wrote a token, its end-of-turn token included; bool, shape (tokens,). None without a prompt."""
    full_tokens: int
    """Tokens before truncation."""
    ends: bool | None
    """Whether the last end-of-turn token is a target; None where the row has none, or it was cut."""
    faults: frozenset[str] = field(default_factory=frozenset)
    """Faults that the tokens or the text of the row show, as `WORDS` names them."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows as a trainer labels them, and what holds for all of them."""

    rows: tuple[LabelledRow, ...]
    """In the order of the file."""
    max_length: int | None
    """Most tokens of a row."""
    faults: frozenset[str] = field(default_factory=frozenset)
    """Faults of the settings, as `WORDS` names them."""
    marked: Mapping[int, Sequence[tuple[str, bool]]] = field(default_factory=dict)
    """Number of a row -> its text in pieces, each with whether the loss is taken on it; for the first rows."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What will be learnt of one task."""

    task: str
    rows: int
    """Rows that are trained."""
    tokens: int
    """In all rows, after truncation."""
    targets: int
    """Tokens that the loss is taken on."""

    @property
    def share(self) -> float:
        """Part of the tokens that the loss is taken on, 0..1."""
        return self.targets / max(self.tokens, 1)


WORDS: dict[str, dict[str, tuple[Severity, str, str]]] = {
    "targets": {
        "no target": (
            "error",
            "have no token that the loss is taken on, so nothing is learned from them",
            "Check assistant_only_loss, the template's {% generation %} marks, and max_length against the prompts.",
        ),
        "all targets": (
            "warning",
            "are trained on completely, prompt included",
            "Set completion_only_loss (prompt and completion) or assistant_only_loss (messages).",
        ),
        "prompt trained": (
            "warning",
            "have words of the prompt among the targets",
            "Set completion_only_loss or assistant_only_loss; with masks of your own, check where they begin.",
        ),
        "end not trained": (
            "error",
            "do not train the token that ends the answer: the model will not learn to stop",
            "Put the end-of-turn token inside {% generation %}, or end each completion with the eos token.",
        ),
    },
    "truncation": {
        "cut": (
            "warning",
            "are cut at max_length, so that the end of the answer is missing",
            "Raise max_length, or shorten or leave out these rows.",
        ),
        "left out": (
            "warning",
            "are longer than sequence_len, so that Axolotl leaves them out",
            "Raise sequence_len, shorten these rows, or set excess_length_strategy: truncate.",
        ),
        "rows read each other": (
            "error",
            "are packed, but attention does not keep them apart",
            "Use packing_strategy bfd with attn_implementation flash_attention_2, or no packing.",
        ),
    },
    "template": {
        "double bos": (
            "warning",
            "begin with two bos tokens",
            "Take the bos token out of the texts or of the template.",
        ),
        "generation prompt twice": (
            "error",
            "contain the start of the assistant's turn twice",
            "Give plain messages: the trainer adds the template itself.",
        ),
        "thoughts added": (
            "warning",
            "get thinking tags from the template that are not in the row",
            "Train with the template and settings of inference (enable_thinking=False).",
        ),
        "thoughts dropped": (
            "warning",
            "have thoughts that the template leaves out, so they are not trained on",
            "Put each turn whose thoughts count into a row of its own, or train with another template.",
        ),
        "prompt differs": (
            "warning",
            "start differently in training than the prompt at inference",
            "Use one template for both, and one that renders the prompt alike with and without an answer.",
        ),
        "template differs": (
            "warning",
            "have a different chat template in training than at inference",
            "Save the training template with the model, or train with the model's own.",
        ),
        "special token in text": (
            "warning",
            "contain a special token of the model inside a text",
            "Write plain texts: the trainer adds these tokens.",
        ),
        "wrong role": (
            "warning",
            "have turns that do not end with the assistant, or roles that do not alternate",
            "Name the roles system, user and assistant, and end with the assistant's answer.",
        ),
    },
}
"""Check under whose name it is reported -> fault -> severity, what is seen, what to do."""
CHECKS = ("targets", "template", "truncation")


def count_facts(labelled: Labelled) -> list[TaskFacts]:
    """Return rows, tokens and targets of each task, by name."""
    by_task: dict[str, list[LabelledRow]] = defaultdict(list)
    for row in labelled.rows:
        by_task[row.task] += [] if "left out" in row.faults else [row]
    return [
        TaskFacts(task, len(rows), sum(len(row.ids) for row in rows), int(sum(row.targets.sum() for row in rows)))
        for task, rows in sorted(by_task.items())
    ]


def faults_of(row: LabelledRow) -> set[str]:
    """Return the faults of one row, by its labels and as they were found in its text."""
    found = set(row.faults)
    if "left out" in found:
        return found
    if row.full_tokens > len(row.ids):
        found.add("cut")
    if not row.targets.any():
        return found | {"no target"}
    if row.words is not None and not row.words.all():
        outside = row.targets & ~row.words
        if row.targets[1:].all():
            found.add("all targets")
        elif outside.any():
            found.add("prompt trained")
    if row.ends is False:
        found.add("end not trained")
    return found


def observe_learnt(labelled: Labelled) -> list[Observation]:
    """Return the faults of the labels, and an info for each of `CHECKS` that finds none."""
    rows_by_fault: dict[str, list[LabelledRow]] = defaultdict(list)
    for row in labelled.rows:
        for fault in faults_of(row):
            rows_by_fault[fault].append(row)
    rows_by_fault |= {fault: list(labelled.rows) for fault in labelled.faults}
    total, observations = len(labelled.rows), list[Observation]()
    words = ((check, *pair) for check, faults in WORDS.items() for pair in faults.items())
    for check, fault, (severity, seen, remedy) in words:
        if rows := rows_by_fault.get(fault):
            evidence = tuple({"id": str(row.number), "source": row.source, "prompt": row.beginning} for row in rows)
            text = f"{len(rows):,} of {total:,} rows {seen}."
            observations.append(Observation(check, None, severity, len(rows), total, text, remedy, "none", evidence))
    for check in CHECKS:
        if not any(one.check == check for one in observations):
            observations.append(Observation(check, None, "info", 0, total, "Every row is fine.", ""))
    return observations
