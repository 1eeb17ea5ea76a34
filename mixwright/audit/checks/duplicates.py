"""Check for training rows that repeat each other, exactly or nearly, or contradict each other.

Source: own; the null is how often prompts agree by chance, given how often their slots repeat.
Unit: rows of a task that repeat an earlier row or nearly another, or whose prompt stands with several answers;
    preference pairs whose sides are equal.
Cost: two passes, 37 bytes per row, an index of 5000 rows, and a sample of 2000 rows for each task with repeats.
Blind spot: near-duplicates of train rows beyond the 5000 looked for, and answers that differ in wording only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixwright.audit.chance import Template, chance_explains
from mixwright.audit.leaks import NEAR_SIMILARITY
from mixwright.audit.repeats import NearRepeats, near_repeats
from mixwright.audit.rows import (
    MOST_PAIRS_LISTED,
    SAMPLE_ROWS,
    Fingerprints,
    Reader,
    fingerprints,
    note_unlisted,
    positions_by_code,
)
from mixwright.contracts import Check
from mixwright.corpus import texts
from mixwright.corpus.rows import pc
from mixwright.records import Observation

if TYPE_CHECKING:
    import pyarrow as pa

    from mixwright.corpus import Corpus


class Duplicates(Check):
    """Compares the train split with itself.

    Args:
        contradictory: share of a verifiable task's rows, 0..1, from which on contradictions are an error.
        similarity: least Jaccard similarity of word runs for a near-duplicate, 0..1.
    """

    def __init__(self, *, contradictory: float = 0.1, similarity: float = NEAR_SIMILARITY) -> None:
        self.contradictory = contradictory
        self.similarity = similarity

    def check(self, corpus: Corpus) -> list[Observation]:
        """Repeats and near-duplicates beside what chance explains, and prompts with several answers, per task.

        One info when there are none.
        """
        prints = fingerprints(corpus)
        train = np.flatnonzero(~prints.held_out)
        if not len(train):
            return []
        same = _first_alike(prints.combined(prints.normal, prints.answer)[train])
        same_exactly = _first_alike(prints.combined(prints.exact, prints.answer)[train])
        asked_before = _first_alike(prints.exact[train])
        contradicted = _contradicted(prints, train)
        reader = Reader(corpus)
        here = np.arange(len(train))
        seen: list[Observation] = []
        for code, mine in positions_by_code(prints.task[train]).items():
            name = prints.tasks[code]
            repeats = mine[same[mine] < mine]
            exact = int((same_exactly[mine] < mine).sum())
            pairs = list(zip(train[repeats].tolist(), train[same[repeats]].tolist(), strict=True))
            seen += self._repeats(reader, name, train[mine], exact, pairs)
            clashes = mine[contradicted[mine]]
            later = clashes[asked_before[clashes] < here[clashes]]
            pairs = list(zip(train[later].tolist(), train[asked_before[later]].tolist(), strict=True))
            seen += self._clashes(corpus, reader, name, len(mine), len(clashes), pairs)
        different = train[same == here]
        seen += _equal_sides(corpus, train)
        seen += [_observe_near(reader, found) for found in near_repeats(corpus, reader, different, self.similarity)]
        return seen or [Observation("duplicates", None, "info", 0, len(train), "No training row repeats another.", "")]

    def _repeats(
        self, reader: Reader, name: str, task_rows: np.ndarray, exact_count: int, pairs: list[tuple[int, int]]
    ) -> list[Observation]:
        if not pairs:
            return []
        prompts = [row.prompt for row in reader.sample(task_rows, SAMPLE_ROWS)]
        expected = Template.learn(prompts).expected_repeats(prompts, len(task_rows))
        usual = chance_explains(len(pairs), expected)
        text = f"{len(pairs)} of {len(task_rows)} training rows repeat an earlier one ({exact_count} to the character)."
        if usual:
            text += " So many are to be expected: the task has few different prompts at these levels."
        remedy = "" if usual else "Keep one of each, or say with weights what should count more."
        null = f"by chance {expected:.3g} rows"
        severity = "info" if usual else "warning"
        text += note_unlisted(len(pairs))
        shown = reader.pair_evidence(pairs, "repeat_", "first_")
        return [Observation("duplicates", name, severity, len(pairs), len(task_rows), text, remedy, null, shown)]

    def _clashes(
        self, corpus: Corpus, reader: Reader, name: str, total: int, count: int, pairs: list[tuple[int, int]]
    ) -> list[Observation]:
        if not count:
            return []
        verifiable = corpus.tasks[name].kind == "verifiable"
        text = f"{count} of {total} training rows have a prompt that stands there with another answer too."
        remedy = "Find out which answer is right; if all are, use a grader that accepts them all." if verifiable else ""
        grave = "error" if count >= self.contradictory * total else "warning"
        null = "none: a verifiable prompt has one answer" if verifiable else "common where many answers are good"
        text += note_unlisted(len(pairs))
        shown = reader.pair_evidence(pairs, "later_", "first_")
        severity = grave if verifiable else "info"
        return [Observation("duplicates", name, severity, count, total, text, remedy, null, shown)]


def _equal_sides(corpus: Corpus, train: np.ndarray) -> list[Observation]:
    """Preference pairs whose chosen and rejected side are one text, space at its ends apart."""
    paired = train[pc.is_valid(corpus.table["chosen"]).to_numpy()[train]]
    if not len(paired):
        return []
    rows = paired[np.concatenate([_sides_are_equal(batch) for batch in corpus.batches()])[paired]]
    if not len(rows):
        return []
    shown = tuple(corpus.table.select(["id", "source"]).take(rows[:MOST_PAIRS_LISTED]).to_pylist())
    text = f"{len(rows)} of {len(paired)} preference pairs have equal sides, space at their ends apart: nothing is "
    text += "preferred there, and the loss has no gradient but for that space." + note_unlisted(len(rows))
    null = "none: one side is preferred"
    return [Observation("duplicates", None, "warning", len(rows), len(paired), text, "Drop them.", null, shown)]


def _sides_are_equal(batch: pa.RecordBatch) -> np.ndarray:
    """Bool per row: it has two sides, and they are the same."""
    sides = zip(texts(batch, "chosen"), texts(batch, "rejected"), strict=True)
    same = np.array([one.strip() == other.strip() for one, other in sides], bool)
    both = pc.and_(pc.is_valid(batch.column("chosen")), pc.is_valid(batch.column("rejected")))
    return same & both.to_numpy(zero_copy_only=False)


def _observe_near(reader: Reader, found: NearRepeats) -> Observation:
    usual = chance_explains(len(found.pairs), found.expected)
    text = (
        f"{len(found.pairs)} of {found.rows_sought} training rows looked at nearly repeat another: same numbers and answer, "
    )
    text += (
        "like words." + (" Unrelated rows would share as much by chance." if usual else "") + note_unlisted(len(found.pairs))
    )
    null = f"by chance {found.expected:.3g} rows, as often as rows that are worded alike have the same numbers and answer"
    remedy = "" if usual else "Keep one of each, and keep both on one side when you split."
    shown = reader.pair_evidence(found.pairs, "near_", "other_", near=True)
    severity = "info" if usual else "warning"
    return Observation("duplicates", found.task, severity, len(found.pairs), found.rows_sought, text, remedy, null, shown)


def _first_alike(values: np.ndarray) -> np.ndarray:
    """Position of the first equal value, for each value; its own where it is the first."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return first[inverse]


def _contradicted(prints: Fingerprints, train: np.ndarray) -> np.ndarray:
    """Per train row: its prompt, to the character, stands in train with at least two final answers."""
    answered = prints.final[train] != 0
    _, prompt = np.unique(prints.exact[train], return_inverse=True)
    _, first = np.unique(prints.combined(prints.exact, prints.final)[train][answered], return_index=True)
    answers = np.bincount(prompt[answered][first], minlength=prompt.max() + 1)
    return (answers[prompt] > 1) & answered
