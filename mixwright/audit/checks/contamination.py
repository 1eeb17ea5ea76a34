"""Check for held-out items that the training data holds too: the same, with text around them, or nearly the same.

Source: Li & Flanigan 2023 (arXiv 2312.16337) for task seen against item seen; the nulls and the template mask are our own.
Unit: held-out rows with a partner in train, of the task's held-out rows (or of those indexed).
Cost: two passes, 45 bytes per row and per turn of a chat, an index of 5000 held-out rows.
Blind spot: paraphrases, translations, look-alike letters, copies reworded and wrapped at once or cut short, talk in chats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.audit.case import Case, Pairs, read_cases
from mixwright.audit.chance import chance_explains, format_expected
from mixwright.audit.leaks import find_leaks
from mixwright.audit.near_duplicates import have_common_passage
from mixwright.audit.rows import Reader
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation, Severity

REMEDY = "Remove these rows from train, or split by prompt."
TOLERATED_SHARE = 0.02
"""Share of a task's held-out rows up to which an overlap that chance explains is only a warning."""
TRAIN = "train_"
"""How the fields of a pair's training row begin."""


class Contamination(Check):
    """Compares the eval split with the train split, text by text: prompts, and each user turn of a chat."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Report leaked items, wrapped copies, prompts with two answers and near copies, per task of eval."""
        leaks = find_leaks(corpus)
        if not len(leaks.overlap.held_out) or not len(leaks.overlap.train):
            missing_split = "train" if len(leaks.overlap.held_out) else "eval"
            text = f"There is no {missing_split} split, so contamination was not checked."
            return [Observation("contamination", None, "info", 0, 0, text, "")]
        observations: list[Observation] = []
        clean_cases: list[Case] = []
        for case in read_cases(Reader(corpus, whole=self.whole), leaks):
            task_observations = [
                *_observe_item_leaks(case),
                *_observe_wrapped(case),
                *_observe_other_answers(case),
                *_observe_near(case),
            ]
            clean_cases += [] if task_observations else [case]
            observations += task_observations
        return [*observations, _observe_clean(clean_cases)] if clean_cases else observations


def _observe_item_leaks(case: Case) -> list[Observation]:
    shared = case.positions_where(case.leaks.overlap.shared)
    count, exact = len(shared), case.leaks.overlap.exact[shared].sum()
    text = f"{count} of {case.total} held-out items are also in train ({exact} exactly)."
    is_tolerated = chance_explains(count, case.expected) and count <= TOLERATED_SHARE * case.total
    severity: Severity = "warning" if is_tolerated else "error"
    return _observe(case, case.number_pairs(shared), text, case.null, case.total, severity, REMEDY, drop=TRAIN)


def _observe_wrapped(case: Case) -> list[Observation]:
    pairs = [(case.leaks.rows[position].number, row) for position, (row, _) in case.wrapped.items()]
    expected = case.expected_wrapped() if pairs else 0.0
    text = f"{len(pairs)} of {len(case.indexed_positions)} held-out items are in train with other text around them."
    return _judge(
        case, pairs, text, expected, f"by chance {format_expected(expected)} rows hold the same words in the same order"
    )


def _observe_other_answers(case: Case) -> list[Observation]:
    pairs = case.number_pairs(case.positions_where(case.leaks.overlap.other_answer))
    text = f"{len(pairs)} of {case.total} held-out prompts are in train with another answer."
    remedy = "Correct the wrong answer; if both are right, keep the prompt in one split."
    return _observe(case, pairs, text, case.null, case.total, "warning", remedy)


def _observe_near(case: Case) -> list[Observation]:
    pairs = [(case.leaks.rows[position].number, row) for position, row in case.near.items()]
    numbers = np.unique(np.array(pairs, np.int64))
    prompt_by_number = {number: row.prompt for number, row in zip(numbers.tolist(), case.reader.rows(numbers), strict=True)}
    about_one_text = {pair: have_common_passage(*(prompt_by_number[number] for number in pair)) for pair in pairs}
    passage_pairs, other_pairs = (
        [pair for pair in pairs if about_one_text[pair] == is_passage] for is_passage in (True, False)
    )
    total = len(case.indexed_positions)
    passage_text = (
        f"{len(passage_pairs)} of {total} held-out items share whole sentences, numbers and answer with a training row, but "
        "differ in other sentences: they ask something else about the same text, or are partly reworded copies."
    )
    observations = _observe(case, passage_pairs, passage_text, "none: look at the pairs", total, "info", "", near=True)
    if other_pairs:
        text = f"{len(other_pairs)} of {total} held-out items nearly match a training row: numbers, answer and most words."
        expected = case.expected_near()
        null = f"by chance {format_expected(expected)} rows, as often as rows that are worded alike have the same numbers "
        null += "and answer"
        observations += _judge(case, other_pairs, text, expected, null, near=True)
    return observations


def _observe_clean(clean_cases: Sequence[Case]) -> Observation:
    """Report the tasks without a finding."""
    total, indexed = sum(case.total for case in clean_cases), sum(len(case.indexed_positions) for case in clean_cases)
    tasks_text = f"tasks without one: {len(clean_cases)}" if len(clean_cases) > 1 else f"task {clean_cases[0].name}"
    text = f"No held-out item was found in train ({tasks_text}): {total} were compared whole, {indexed} of them also "
    return Observation(
        "contamination", None, "info", 0, total, text + "for copies inside other text and for near copies.", ""
    )


def _judge(case: Case, pairs: Pairs, text: str, expected: float, null: str, *, near: bool = False) -> list[Observation]:
    """Return an error, or an info where chance explains as many."""
    if not chance_explains(len(pairs), expected):
        return _observe(case, pairs, text, null, len(case.indexed_positions), "error", REMEDY, near=near)
    text += " Chance can explain them." + (" Check the pairs: most such pairs turned out to be copies." if near else "")
    return _observe(case, pairs, text, null, len(case.indexed_positions), "info", "", near=near)


def _observe(
    case: Case,
    pairs: Pairs,
    text: str,
    null: str,
    total: int,
    severity: Severity,
    remedy: str,
    *,
    near: bool = False,
    drop: str | None = None,
) -> list[Observation]:
    """One observation of these pairs; none without any."""
    if not pairs:
        return []
    evidence = case.reader.pair_evidence(pairs, "eval_", TRAIN, near=near)
    return [Observation("contamination", case.name, severity, len(pairs), total, text, remedy, null, evidence, drop)]
