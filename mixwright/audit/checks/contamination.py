"""Check for held-out items that the training data holds too: the same, with text around them, or nearly the same.

Source: Li & Flanigan 2023 (arXiv 2312.16337) for task seen against item seen; the nulls and the template mask are our own.
Unit: held-out rows with a partner in train, of the task's held-out rows (or of those indexed).
Cost: two passes, 45 bytes per row and per turn of a chat, an index of 5000 held-out rows.
Blind spot: paraphrases, translations, look-alike letters, copies reworded and wrapped at once or cut short, talk in chats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mixwright.audit.chance import Template, chance_explains, format_expected, tokens
from mixwright.audit.leaks import Leaks, find_leaks
from mixwright.audit.near_duplicates import Siblings, count_siblings, have_common_passage
from mixwright.audit.rows import SAMPLE_ROWS, Reader, positions_by_code
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation, Severity

REMEDY = "Remove these rows from train, or split by prompt."
TOLERATED_SHARE = 0.02
"""Share of a task's held-out rows up to which an overlap that chance explains is only a warning."""
TRAIN = "train_"
"""How the fields of a pair's training row begin."""
ROWS_COMPARED_PER_TASK = 1000
"""Rows of either split among which those that are worded alike are counted."""
LARGEST_SHARE = 1 - 1e-9
"""Of the rows that chance finds a partner for; where it is 1, nothing is known of how often two agree."""
Pairs = list[tuple[int, int]]
"""Row numbers (held-out, train)."""


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
        clean_cases: list[_Case] = []
        for case in _read_cases(Reader(corpus, whole=self.whole), leaks):
            task_observations = [
                *_observe_item_leaks(case),
                *_observe_wrapped(case),
                *_observe_other_answers(case),
                *_observe_near(case),
            ]
            clean_cases += [] if task_observations else [case]
            observations += task_observations
        return [*observations, _observe_clean(clean_cases)] if clean_cases else observations


def _read_cases(reader: Reader, leaks: Leaks) -> Iterator[_Case]:
    """Yield the tasks of the eval split, one by one."""
    overlap, codes = leaks.overlap, {name: code for code, name in enumerate(leaks.tasks)}
    train_rows = {code: overlap.train[at] for code, at in positions_by_code(overlap.task[overlap.train]).items()}
    indexed = positions_by_code(np.array([codes[row.task] for row in leaks.rows], np.int64))
    for code, positions in positions_by_code(overlap.task[overlap.held_out]).items():
        yield _Case(reader, leaks, code, positions, indexed.get(code, np.zeros(0, np.int64)).tolist(), train_rows)


class _Case:
    """One task beside the train rows of its partners' tasks.

    `held_out_positions` (int64) are its positions among the held-out rows; `expected` is how many of them chance alone puts
    in train.
    """

    def __init__(
        self,
        reader: Reader,
        leaks: Leaks,
        code: int,
        held_out_positions: np.ndarray,
        indexed_positions: list[int],
        train_rows_by_task: dict[int, np.ndarray],
    ) -> None:
        self.leaks, self.reader, self.name = leaks, reader, leaks.tasks[code]
        self.held_out_positions, self.indexed_positions = held_out_positions, indexed_positions
        self.total = len(held_out_positions)
        self.wrapped = {at: leaks.wrapped[at] for at in indexed_positions if at in leaks.wrapped}
        self.near = {at: leaks.near[at] for at in indexed_positions if at in leaks.near}
        self.siblings, self.expected, self.null, self.train_rows = Siblings(), 0.0, "", 0
        overlap, found = leaks.overlap, [*(row for row, _ in self.wrapped.values()), *self.near.values()]
        partners = np.concatenate([leaks.overlap.partner[held_out_positions], np.array(found, np.int64)])
        partners = partners[partners >= 0]
        if not len(partners):
            return
        related = [train_rows_by_task[task] for task in np.unique(overlap.task[partners]).tolist()]
        self.train_rows = sum(map(len, related))
        self._train_sample = reader.sample(np.sort(np.concatenate(related)), SAMPLE_ROWS)
        held_out_sample = reader.sample(overlap.held_out[held_out_positions], SAMPLE_ROWS)
        self._train_prompts = [row.prompt for row in self._train_sample]
        self._held_out_prompts = [row.prompt for row in held_out_sample]
        self._template = Template.learn(self._train_prompts, self._held_out_prompts)
        compared = self._train_sample[:ROWS_COMPARED_PER_TASK], held_out_sample[:ROWS_COMPARED_PER_TASK]
        self.siblings = count_siblings(*compared)
        by_slots = self._template.expected_shared(self._train_prompts, self._held_out_prompts, self.train_rows, self.total)
        self.expected = max(by_slots, self.siblings.expected_same(self.total, self.train_rows))
        rate = -math.log1p(-min(self.expected / max(self.total, 1), LARGEST_SHARE)) / max(self.train_rows, 1)
        pairs_per_agreement = 1 / rate if rate else float("inf")
        self.null = (
            f"by chance {format_expected(self.expected)} rows: two prompts of this task agree once in "
            f"{format_expected(pairs_per_agreement)} pairs"
        )

    def expected_wrapped(self) -> float:
        """Rows expected to stand inside train rows, or to hold one, by chance."""
        positions, held_out_prompts = _thin_out(self.indexed_positions), _thin_out(self._held_out_prompts)
        train_prompts = _thin_out(self._train_prompts)
        sought = [self.leaks.wrapped_index.sought_words(position) for position in positions]
        rate = self._template.expected_holding(sought, train_prompts, self.train_rows) / max(len(positions), 1)
        if not all(inside for _, inside in self.wrapped.values()):
            train_words = list(map(tokens, train_prompts))
            held = self._template.expected_holding(train_words, held_out_prompts, 1)
            rate += held * self.train_rows / max(len(train_words), 1)
        total = len(self.indexed_positions)
        return max(total * min(rate, 1.0), self.siblings.expected_same(total, self.train_rows))

    def expected_near(self) -> float:
        """Rows expected to have a near-duplicate in train by chance."""
        by_wording = self.siblings.expected_near(len(self.indexed_positions), self.train_rows)
        by_differing = self.leaks.near_index.expected_near(
            self.indexed_positions, self._train_sample, self.train_rows, self.siblings
        )
        return max(by_wording, by_differing)

    def pairs_where(self, mask: np.ndarray) -> Pairs:
        """Pairs of this task's held-out rows that are marked in `mask`, bool of shape (held-out rows,)."""
        overlap, positions = self.leaks.overlap, self.held_out_positions[mask[self.held_out_positions]]
        return list(zip(overlap.held_out[positions].tolist(), overlap.partner[positions].tolist(), strict=True))


def _thin_out(rows: list[Any]) -> list[Any]:
    """Return at most `ROWS_COMPARED_PER_TASK` rows, evenly from all."""
    return rows[:: math.ceil(len(rows) / ROWS_COMPARED_PER_TASK) or 1]


def _observe_item_leaks(case: _Case) -> list[Observation]:
    pairs = case.pairs_where(case.leaks.overlap.shared)
    count, exact = len(pairs), case.leaks.overlap.exact[case.held_out_positions].sum()
    text = f"{count} of {case.total} held-out items are also in train ({exact} exactly)."
    is_tolerated = chance_explains(count, case.expected) and count <= TOLERATED_SHARE * case.total
    severity: Severity = "warning" if is_tolerated else "error"
    return _observe(case, pairs, text, case.null, case.total, severity, REMEDY, drop=TRAIN)


def _observe_wrapped(case: _Case) -> list[Observation]:
    pairs = [(case.leaks.rows[position].number, row) for position, (row, _) in case.wrapped.items()]
    expected = case.expected_wrapped() if pairs else 0.0
    text = f"{len(pairs)} of {len(case.indexed_positions)} held-out items are in train with other text around them."
    return _judge(
        case, pairs, text, expected, f"by chance {format_expected(expected)} rows hold the same words in the same order"
    )


def _observe_other_answers(case: _Case) -> list[Observation]:
    pairs = case.pairs_where(case.leaks.overlap.other_answer)
    text = f"{len(pairs)} of {case.total} held-out prompts are in train with another answer."
    remedy = "Correct the wrong answer; if both are right, keep the prompt in one split."
    return _observe(case, pairs, text, case.null, case.total, "warning", remedy)


def _observe_near(case: _Case) -> list[Observation]:
    pairs = [(case.leaks.rows[position].number, row) for position, row in case.near.items()]
    numbers = np.unique(np.array(pairs, np.int64))
    prompt_by_number = {row.number: row.prompt for row in case.reader.rows(numbers)}
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


def _observe_clean(clean_cases: Sequence[_Case]) -> Observation:
    """Report the tasks without a finding."""
    total, indexed = sum(case.total for case in clean_cases), sum(len(case.indexed_positions) for case in clean_cases)
    tasks_text = f"tasks without one: {len(clean_cases)}" if len(clean_cases) > 1 else f"task {clean_cases[0].name}"
    text = f"No held-out item was found in train ({tasks_text}): {total} were compared whole, {indexed} of them also "
    return Observation(
        "contamination", None, "info", 0, total, text + "for copies inside other text and for near copies.", ""
    )


def _judge(case: _Case, pairs: Pairs, text: str, expected: float, null: str, *, near: bool = False) -> list[Observation]:
    """Return an error, or an info where chance explains as many."""
    if not chance_explains(len(pairs), expected):
        return _observe(case, pairs, text, null, len(case.indexed_positions), "error", REMEDY, near=near)
    text += " Chance can explain them." + (" Check the pairs: most such pairs turned out to be copies." if near else "")
    return _observe(case, pairs, text, null, len(case.indexed_positions), "info", "", near=near)


def _observe(
    case: _Case,
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
