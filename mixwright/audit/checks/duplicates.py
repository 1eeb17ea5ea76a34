"""Check for rows that repeat each other, exactly or nearly, and for preference pairs with equal sides.

Source: own; the null is how often prompts agree by chance, given how often their slots repeat.
Unit: rows of a task that repeat an earlier row or nearly another; preference pairs whose sides are equal.
Cost: two passes, 45 bytes per row, an index of 5000 rows, and a sample of 2000 rows for each task with repeats.
Blind spot: near-duplicates of train rows beyond the 5000 looked for; prompts with several answers (`conflicts`).
"""

from __future__ import annotations

import numpy as np

from mixwright.audit.chance import Template, chance_explains, format_expected
from mixwright.audit.near_duplicates import NearRepeats, near_repeats
from mixwright.audit.rows import SAMPLE_ROWS, Listing, Reader, combine, fingerprints, positions_by_code
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.records import Observation, plain

Pairs = list[tuple[int, int]]


class Duplicates(Check):
    """Compares the train split with itself."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Repeats and near-duplicates beside what chance explains, per task.

        One info when there are none.
        """
        (tasks, prints), reader = fingerprints(corpus).of_rows(), Reader(corpus, whole=self.whole)
        train = np.flatnonzero(~prints["held_out"])
        if not len(train):
            return []
        first_same = _find_first_equal(combine(prints["normal"], prints["answer"])[train])
        first_same_exactly = _find_first_equal(combine(prints["exact"], prints["answer"])[train])
        observations: list[Observation] = []
        for code, task_positions in positions_by_code(prints["task"][train]).items():
            repeats = task_positions[first_same[task_positions] < task_positions]
            exact = int((first_same_exactly[task_positions] < task_positions).sum())
            pairs = list(zip(train[repeats].tolist(), train[first_same[repeats]].tolist(), strict=True))
            observations += _observe_repeats(reader, tasks[code], train[task_positions], exact, pairs)
        observations += _observe_equal_sides(corpus, reader, train)
        distinct_rows = train[np.unique(first_same)]
        near_ones = near_repeats(corpus, reader, distinct_rows)
        observations += [_observe_near(reader, near) for near in near_ones]
        return observations or [
            Observation("duplicates", None, "info", 0, len(train), "No training row repeats another.", "")
        ]


def _observe_repeats(reader: Reader, name: str, task_rows: np.ndarray, exact: int, pairs: Pairs) -> list[Observation]:
    if not pairs:
        return []
    prompts, total = [row.prompt for row in reader.sample(task_rows, SAMPLE_ROWS)], len(task_rows)
    expected = Template.learn(prompts).expected_repeats(prompts, total)
    text = f"{len(pairs)} of {total} training rows repeat an earlier one ({exact} with exactly the same prompt)."
    severity, remedy = "warning", "Keep one of each; weight a row that should count more."
    if chance_explains(len(pairs), expected):
        text += " This is expected: the task has few different prompts at these levels."
        severity, remedy = "info", ""
    null = f"by chance {format_expected(expected)} rows"
    evidence = reader.pair_evidence(pairs, "repeat_", "first_")
    return [Observation("duplicates", name, severity, len(pairs), total, text, remedy, null, evidence, drop="repeat_")]


def _observe_equal_sides(corpus: Corpus, reader: Reader, train: np.ndarray) -> list[Observation]:
    """Report preference pairs with the same text on both sides, apart from space at the ends."""
    paired_rows, equal = train[pc.is_valid(corpus.table["chosen"]).to_numpy()[train]], Listing()
    for _, row in reader.iterate(paired_rows):
        if row.rejected is not None and plain(row.chosen).strip() == plain(row.rejected).strip():
            equal.add({"id": row.id, "source": row.source})
    if not equal.count:
        return []
    text = f"{equal.count} of {len(paired_rows)} preference pairs have equal sides, so they teach no preference."
    count, total, null = equal.count, len(paired_rows), "none: one side is preferred"
    return [Observation("duplicates", None, "warning", count, total, text, "Remove them.", null, tuple(equal.rows), drop="")]


def _observe_near(reader: Reader, repeats: NearRepeats) -> Observation:
    pairs, total = repeats.pairs, repeats.rows_sought
    text = f"{len(pairs)} of {total} training rows nearly repeat another: same numbers and answer, similar words."
    severity, remedy = "warning", "Keep one of each, or keep both in one split."
    if chance_explains(len(pairs), repeats.expected):
        text += " Chance can explain them. Check the pairs: most such pairs turned out to be copies."
        severity, remedy = "info", ""
    null = f"by chance {format_expected(repeats.expected)} rows, as often as rows that are worded alike have the same "
    null += "numbers and answer"
    evidence = reader.pair_evidence(pairs, "near_", "other_", near=True)
    return Observation("duplicates", repeats.task, severity, len(pairs), total, text, remedy, null, evidence)


def _find_first_equal(values: np.ndarray) -> np.ndarray:
    """Position of the first equal value, for each value; its own where it is the first."""
    _, first_positions, inverse = np.unique(values, return_index=True, return_inverse=True)
    return first_positions[inverse]
