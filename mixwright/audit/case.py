"""Comparison of one task's eval rows with train rows, and of the overlap with what chance alone would give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixwright.audit.chance import Template, common_words, format_expected, tokens
from mixwright.audit.leaks import Leaks
from mixwright.audit.near_duplicates import Siblings, count_siblings
from mixwright.audit.rows import SAMPLE_ROWS, Reader, Row, draw_sample, positions_by_code

ROWS_COMPARED_PER_TASK = 1000
"""Rows of either split among which those that are worded alike are counted."""
LARGEST_SHARE = 1 - 1e-9
"""Of the rows that chance finds a partner for; where it is 1, nothing is known of how often two agree."""
BLOCK_ROWS = 4000
"""Rows read at once for tasks that follow each other."""
SAMPLE_ROWS_PER_TASK, SAMPLE_ROWS_TOGETHER = 4, 20_000
"""Rows sampled of each of many tasks, and of all tasks together where that is more: many tasks cost little more than one."""


class Cases:
    """The tasks of the eval split, one by one.

    Args:
        reader: of the corpus.
        leaks: what was found in it.
    """

    def __init__(self, reader: Reader, leaks: Leaks) -> None:
        self.reader, self.leaks = reader, leaks
        overlap = leaks.overlap
        self.held_out_positions_by_task = positions_by_code(overlap.task[overlap.held_out])
        self.train_rows_by_task = {
            code: overlap.train[positions] for code, positions in positions_by_code(overlap.task[overlap.train]).items()
        }
        codes = {name: code for code, name in enumerate(leaks.tasks)}
        self.indexed_positions_by_task = positions_by_code(np.array([codes[row.task] for row in leaks.rows], np.int64))
        self.sample_rows_per_task = min(
            SAMPLE_ROWS, max(SAMPLE_ROWS_PER_TASK, SAMPLE_ROWS_TOGETHER // max(len(self.held_out_positions_by_task), 1))
        )

    def __iter__(self) -> Iterator[Case]:
        codes, overlap = list(self.held_out_positions_by_task), self.leaks.overlap
        tasks_per_block = max(1, BLOCK_ROWS // self.sample_rows_per_task)
        for start in range(0, len(codes), tasks_per_block):
            block_codes = codes[start : start + tasks_per_block]
            row_numbers_of_groups = [overlap.held_out[self.held_out_positions_by_task[code]] for code in block_codes]
            row_numbers_of_groups += [
                self.train_rows_by_task[code] for code in block_codes if code in self.train_rows_by_task
            ]
            sampled_numbers = np.unique(
                np.concatenate(
                    [draw_sample(row_numbers, self.sample_rows_per_task) for row_numbers in row_numbers_of_groups]
                )
            )
            self._row_by_number = dict(zip(sampled_numbers.tolist(), self.reader.rows(sampled_numbers), strict=True))
            yield from (Case(self, code) for code in block_codes)

    def sample(self, members: np.ndarray, size: int) -> list[Row]:
        """At most `size` of these rows; those that a block of tasks read together are not read again."""
        drawn_numbers = draw_sample(members, size)
        rows_read_before = [
            self._row_by_number[number] for number in drawn_numbers.tolist() if number in self._row_by_number
        ]
        return rows_read_before if len(rows_read_before) == len(drawn_numbers) else self.reader.rows(drawn_numbers)


class Case:
    """One task beside the train rows of its partners' tasks; without any partner those of its own name.

    `held_out_positions` (int64) are its positions among the held-out rows; `expected` is how many of them chance alone puts
    in train.
    """

    def __init__(self, cases: Cases, code: int) -> None:
        self.leaks, self.reader, self.name = cases.leaks, cases.reader, cases.leaks.tasks[code]
        overlap = self.leaks.overlap
        self.held_out_positions = cases.held_out_positions_by_task[code]
        self.total = len(self.held_out_positions)
        self.indexed_positions = cases.indexed_positions_by_task.get(code, np.zeros(0, np.int64)).tolist()
        self.wrapped = {at: self.leaks.wrapped[at] for at in self.indexed_positions if at in self.leaks.wrapped}
        self.near = {at: self.leaks.near[at] for at in self.indexed_positions if at in self.leaks.near}
        partners = overlap.partner[self.held_out_positions]
        matched_train_rows = [number for number, _, _ in self.wrapped.values()] + list(self.near.values())
        related_tasks = np.unique(
            overlap.task[np.concatenate([partners[partners >= 0], np.array(matched_train_rows, np.int64)])]
        )
        self.train_rows_of_same_name = len(cases.train_rows_by_task.get(code, ()))
        related_train_rows = [
            cases.train_rows_by_task[task] for task in (related_tasks.tolist() or [code]) if task in cases.train_rows_by_task
        ]
        self._train_numbers = np.sort(np.concatenate(related_train_rows)) if related_train_rows else np.zeros(0, np.int64)
        self.train_rows = len(self._train_numbers)
        sample_size = SAMPLE_ROWS if len(related_tasks) else cases.sample_rows_per_task
        self._train_sample = cases.sample(self._train_numbers if self.train_rows else overlap.train, sample_size)
        self._train_prompts = [row.prompt for row in self._train_sample]
        held_out_sample = cases.sample(overlap.held_out[self.held_out_positions], sample_size)
        self._held_out_prompts = [row.prompt for row in held_out_sample]
        self._template = Template.learn(self._train_prompts, self._held_out_prompts)
        self.expected, self.null = 0.0, ""
        self.siblings = Siblings()
        if len(related_tasks):
            compared = self._train_sample[:ROWS_COMPARED_PER_TASK], held_out_sample[:ROWS_COMPARED_PER_TASK]
            self.siblings = count_siblings(*compared, self.leaks.near_index.similarity)
            by_slots = self._template.expected_shared(
                self._train_prompts, self._held_out_prompts, self.train_rows, self.total
            )
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

    def count_worded_alike(self) -> tuple[int, int, int]:
        """Held-out rows with the wording of a train row, slots apart; held-out rows, and train rows, that were looked at.

        A row is worded alike, too, when it has all words that nearly every train row of its task has: what stands in slots
        may come so often that it looks like wording.
        """
        train_forms = set(map(self._template.coarse_form, self._train_prompts))
        words_of_train = common_words(self._train_prompts) if self.train_rows else frozenset[str]()

        def is_alike(prompt: str) -> bool:
            return self._template.coarse_form(prompt) in train_forms or bool(
                words_of_train and words_of_train <= set(tokens(prompt))
            )

        return sum(map(is_alike, self._held_out_prompts)), len(self._held_out_prompts), len(self._train_prompts)

    def expected_wrapped(self) -> float:
        """Rows expected to stand inside train rows, or to hold one, by chance."""
        positions, held_out_prompts = _thin_out(self.indexed_positions), _thin_out(self._held_out_prompts)
        train_prompts = _thin_out(self._train_prompts)
        sought = [self.leaks.wrapped_index.sought_words(position) for position in positions]
        rate = self._template.expected_holding(sought, train_prompts, self.train_rows) / max(len(positions), 1)
        if not all(inside for _, inside, _ in self.wrapped.values()):
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

    def find_shift(self, positions: np.ndarray) -> int | None:
        """Rows between held-out items and their partners, if 9 of 10 have the same distance: neighbouring seeds do that."""
        overlap = self.leaks.overlap
        distances = np.searchsorted(self._train_numbers, overlap.partner[positions]) - np.searchsorted(
            self.held_out_positions, positions
        )
        if len(distances) < 10:
            return None
        shift, most_frequent = Counter(distances.tolist()).most_common(1)[0]
        return shift if most_frequent >= 0.9 * len(distances) else None

    def wrapped_pairs(self, *, agreeing: bool) -> list[tuple[int, int]]:
        """Row numbers (held-out, train) of wrapped copies whose answers agree; or of those inside train whose do not."""
        return [
            (self.leaks.rows[position].number, row)
            for position, (row, inside, agrees) in self.wrapped.items()
            if agrees == agreeing and (agreeing or inside)
        ]

    def number_pairs(self, positions: np.ndarray) -> list[tuple[int, int]]:
        """Row numbers (held-out, train) of places among the held-out rows."""
        overlap = self.leaks.overlap
        return list(zip(overlap.held_out[positions].tolist(), overlap.partner[positions].tolist(), strict=True))

    def as_evidence(self, pairs: list[tuple[int, int]], *, near: bool = False) -> tuple[dict[str, Any], ...]:
        """Pairs of row numbers (held-out, train) as evidence."""
        return self.reader.pair_evidence(pairs, "eval_", "train_", near=near)


def _thin_out(rows: list[Any]) -> list[Any]:
    """Return at most `ROWS_COMPARED_PER_TASK` rows, evenly from all."""
    return rows[:: math.ceil(len(rows) / ROWS_COMPARED_PER_TASK) or 1]
