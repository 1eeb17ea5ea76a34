"""Training rows that repeat or contradict each other.

Source: own; the null is how often prompts agree by chance, given how often their slots repeat.
Unit: rows of a task that repeat an earlier row, or whose prompt stands with several answers.
Cost: one pass, 29 bytes per row, and a sample of 2000 rows for each task with repeats.
Blind spot: near-duplicates within train, and answers that differ in wording only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixwright.audit._chance import Template, chance_explains
from mixwright.audit._rows import SAMPLE, SHOWN, Fingerprints, evidence, fingerprints, sample
from mixwright.contracts import Check
from mixwright.records import Observation

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


class Duplicates(Check):
    """Compares the train split with itself.

    Args:
        contradictory: share of a verifiable task's rows, 0..1, from which on contradictions are an error.
    """

    def __init__(self, *, contradictory: float = 0.1) -> None:
        self.contradictory = contradictory

    def check(self, corpus: Corpus) -> list[Observation]:
        """Repeats beside what chance explains, and prompts with several answers, per task; one info when there are none."""
        prints = fingerprints(corpus)
        train = np.flatnonzero(~prints.held_out)
        if not len(train):
            return []
        same = _first_alike(prints.pair(prints.normal)[train])
        same_exactly = _first_alike(prints.pair(prints.exact)[train])
        asked_before = _first_alike(prints.exact[train])
        contradicted = _contradicted(prints, train)
        here = np.arange(len(train))
        seen: list[Observation] = []
        for code in np.unique(prints.task[train]):
            mine = prints.task[train] == code
            name = prints.tasks[code]
            repeats = np.flatnonzero(mine & (same < here))
            exact = int((mine & (same_exactly < here)).sum())
            pairs = [(int(train[at]), int(train[same[at]])) for at in repeats[:SHOWN]]
            seen += self._repeats(corpus, name, train[mine], len(repeats), exact, pairs)
            clashes = np.flatnonzero(mine & contradicted)
            later = [(int(train[at]), int(train[asked_before[at]])) for at in clashes if asked_before[at] < at]
            seen += self._clashes(corpus, name, int(mine.sum()), len(clashes), later[:SHOWN])
        return seen or [Observation("duplicates", None, "info", 0, len(train), "No training row repeats another.", "")]

    def _repeats(
        self, corpus: Corpus, name: str, members: np.ndarray, count: int, exact: int, pairs: list[tuple[int, int]]
    ) -> list[Observation]:
        if not count:
            return []
        prompts = [row.prompt for row in sample(corpus, members, SAMPLE)]
        expected = Template.learn(prompts).expected_repeats(prompts, len(members))
        usual = chance_explains(count, expected)
        text = f"{count} of {len(members)} training rows repeat an earlier one ({exact} to the character)."
        if usual:
            text += " So many are to be expected: the task has few different prompts at these levels."
        remedy = "" if usual else "Keep one of each, or say with weights what should count more."
        shown = tuple(evidence(corpus, a, "repeat_") | evidence(corpus, b, "first_") for a, b in pairs)
        null = f"by chance {expected:.3g} rows"
        severity = "info" if usual else "warning"
        return [Observation("duplicates", name, severity, count, len(members), text, remedy, null, shown)]

    def _clashes(self, corpus: Corpus, name: str, total: int, count: int, pairs: list[tuple[int, int]]) -> list[Observation]:
        if not count:
            return []
        verifiable = corpus.tasks[name].kind == "verifiable"
        text = f"{count} of {total} training rows have a prompt that stands there with another answer too."
        remedy = "Find out which answer is right; if all are, use a grader that accepts them all." if verifiable else ""
        grave = "error" if count >= self.contradictory * total else "warning"
        null = "none: a verifiable prompt has one answer" if verifiable else "common where many answers are good"
        shown = tuple(evidence(corpus, a, "later_") | evidence(corpus, b, "first_") for a, b in pairs)
        severity = grave if verifiable else "info"
        return [Observation("duplicates", name, severity, count, total, text, remedy, null, shown)]


def _first_alike(values: np.ndarray) -> np.ndarray:
    """Position of the first equal value, for each value; its own where it is the first."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return first[inverse]


def _contradicted(prints: Fingerprints, train: np.ndarray) -> np.ndarray:
    """Per train row: its prompt, to the character, stands in train with at least two answers."""
    answered = prints.answer[train] != 0
    _, prompt = np.unique(prints.exact[train], return_inverse=True)
    _, first = np.unique(prints.pair(prints.exact)[train][answered], return_index=True)
    answers = np.bincount(prompt[answered][first], minlength=prompt.max() + 1)
    return (answers[prompt] > 1) & answered
