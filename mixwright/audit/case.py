"""Comparison of one task's eval rows with train rows, and of the overlap with what chance alone would give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixwright.audit.chance import Template, format_expected, tokens
from mixwright.audit.leaks import Leaks
from mixwright.audit.near_duplicates import Siblings, count_siblings
from mixwright.audit.rows import SAMPLE_ROWS, Reader, positions_by_code

ROWS_COMPARED_PER_TASK = 1000
"""Rows of either split among which those that are worded alike are counted."""
LARGEST_SHARE = 1 - 1e-9
"""Of the rows that chance finds a partner for; where it is 1, nothing is known of how often two agree."""
Pairs = list[tuple[int, int]]
"""Row numbers (held-out, train)."""


def read_cases(reader: Reader, leaks: Leaks) -> Iterator[Case]:
    """Yield the tasks of the eval split, one by one."""
    overlap, codes = leaks.overlap, {name: code for code, name in enumerate(leaks.tasks)}
    train_rows = {code: overlap.train[at] for code, at in positions_by_code(overlap.task[overlap.train]).items()}
    indexed = positions_by_code(np.array([codes[row.task] for row in leaks.rows], np.int64))
    for code, positions in positions_by_code(overlap.task[overlap.held_out]).items():
        yield Case(reader, leaks, code, positions, indexed.get(code, np.zeros(0, np.int64)).tolist(), train_rows)


class Case:
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
        self.siblings = count_siblings(*compared, leaks.near_index.similarity)
        by_slots = self._template.expected_shared(self._train_prompts, self._held_out_prompts, self.train_rows, self.total)
        self.expected = max(by_slots, self.siblings.expected_same(self.total, self.train_rows))
        rate = -math.log1p(-min(self.expected / max(self.total, 1), LARGEST_SHARE)) / max(self.train_rows, 1)
        pairs_per_agreement = 1 / rate if rate else float("inf")
        self.null = (
            f"by chance {format_expected(self.expected)} rows: two prompts of this task agree once in "
            f"{format_expected(pairs_per_agreement)} pairs"
        )

    def positions_where(self, mask: np.ndarray) -> np.ndarray:
        """Places of this task's held-out rows that are marked in `mask`, bool of shape (held-out rows,)."""
        return self.held_out_positions[mask[self.held_out_positions]]

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

    def number_pairs(self, positions: np.ndarray) -> Pairs:
        """Pairs of places among the held-out rows."""
        overlap = self.leaks.overlap
        return list(zip(overlap.held_out[positions].tolist(), overlap.partner[positions].tolist(), strict=True))


def _thin_out(rows: list[Any]) -> list[Any]:
    """Return at most `ROWS_COMPARED_PER_TASK` rows, evenly from all."""
    return rows[:: math.ceil(len(rows) / ROWS_COMPARED_PER_TASK) or 1]
