"""Comparison of one task's eval rows with train rows, and of the overlap with what chance alone would give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixwright.audit.chance import Template, common_words, tokens
from mixwright.audit.leaks import Leaks
from mixwright.audit.near_duplicates import Siblings, count_siblings
from mixwright.audit.rows import SAMPLE_ROWS, Reader, Row, draw_sample, positions_by_code

MOST_ROWS_COMPARED = 1000
"""Rows of either split among which those that are worded alike are counted."""
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
        found = leaks.same
        self.held_out_places_by_task = positions_by_code(found.task[found.held_out])
        self.train_rows_by_task = {
            code: found.train[places] for code, places in positions_by_code(found.task[found.train]).items()
        }
        codes = {name: code for code, name in enumerate(leaks.tasks)}
        self.sought = positions_by_code(np.array([codes[row.task] for row in leaks.rows], np.int64))
        self.sample_rows_per_task = min(
            SAMPLE_ROWS, max(SAMPLE_ROWS_PER_TASK, SAMPLE_ROWS_TOGETHER // max(len(self.held_out_places_by_task), 1))
        )

    def __iter__(self) -> Iterator[Case]:
        codes, found = list(self.held_out_places_by_task), self.leaks.same
        block = max(1, BLOCK_ROWS // self.sample_rows_per_task)
        for start in range(0, len(codes), block):
            here = codes[start : start + block]
            members = [found.held_out[self.held_out_places_by_task[code]] for code in here]
            members += [self.train_rows_by_task[code] for code in here if code in self.train_rows_by_task]
            numbers = np.unique(np.concatenate([draw_sample(own, self.sample_rows_per_task) for own in members]))
            self._read = dict(zip(numbers.tolist(), self.reader.rows(numbers), strict=True))
            yield from (Case(self, code) for code in here)

    def sample(self, members: np.ndarray, size: int) -> list[Row]:
        """At most `size` of these rows; those that a block of tasks read together are not read again."""
        drawn = draw_sample(members, size)
        known = [self._read[number] for number in drawn.tolist() if number in self._read]
        return known if len(known) == len(drawn) else self.reader.rows(drawn)


class Case:
    """One task beside the train rows of its partners' tasks; without any partner those of its own name.

    `mine` (int64) are its places among the held-out rows; `expected` is how many of them chance alone puts in train.
    """

    def __init__(self, cases: Cases, code: int) -> None:
        self.leaks, self.reader, self.name = cases.leaks, cases.reader, cases.leaks.tasks[code]
        found = self.leaks.same
        self.mine = cases.held_out_places_by_task[code]
        self.total = len(self.mine)
        self.sought = cases.sought.get(code, np.zeros(0, np.int64)).tolist()
        self.wrapped = {at: self.leaks.wrapped[at] for at in self.sought if at in self.leaks.wrapped}
        self.near = {at: self.leaks.near[at] for at in self.sought if at in self.leaks.near}
        partners = found.partner[self.mine]
        others = [number for number, _, _ in self.wrapped.values()] + list(self.near.values())
        related = np.unique(found.task[np.concatenate([partners[partners >= 0], np.array(others, np.int64)])])
        self.train_rows_of_same_name = len(cases.train_rows_by_task.get(code, ()))
        chosen = [
            cases.train_rows_by_task[task] for task in (related.tolist() or [code]) if task in cases.train_rows_by_task
        ]
        self._train = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
        self.train_rows = len(self._train)
        size = SAMPLE_ROWS if len(related) else cases.sample_rows_per_task
        self._rows = cases.sample(self._train if self.train_rows else found.train, size)
        self._seen = [row.prompt for row in self._rows]
        held = cases.sample(found.held_out[self.mine], size)
        self._asked = [row.prompt for row in held]
        self._template = Template.learn(self._seen, self._asked)
        self.expected, self.null = 0.0, ""
        self.siblings = Siblings(0, 1.0, 0.0, 0)
        if len(related):
            compared = self._rows[:MOST_ROWS_COMPARED], held[:MOST_ROWS_COMPARED]
            self.siblings = count_siblings(*compared, self.leaks.index.similarity)
            by_slots = self._template.expected_shared(self._seen, self._asked, self.train_rows, self.total)
            self.expected = max(by_slots, self.siblings.expected_same(self.total, self.train_rows))
            space = self.total * self.train_rows / self.expected if self.expected else float("inf")
            self.null = f"by chance {self.expected:.3g} rows: two prompts of this task agree once in {space:.3g} pairs"

    def rows_where(self, mask: np.ndarray) -> np.ndarray:
        """Places of this task's held-out rows that are marked in `mask`, bool of shape (held-out rows,)."""
        return self.mine[mask[self.mine]]

    def worded_alike(self) -> tuple[int, int, int]:
        """Held-out rows with the wording of a train row, slots apart; held-out rows, and train rows, that were looked at.

        A row is worded alike, too, when it has all words that nearly every train row of its task has: what stands in slots
        may come so often that it looks like wording.
        """
        known = set(map(self._template.coarse_form, self._seen))
        common = common_words(self._seen) if self.train_rows else frozenset[str]()

        def alike(prompt: str) -> bool:
            return self._template.coarse_form(prompt) in known or bool(common and common <= set(tokens(prompt)))

        return sum(map(alike, self._asked)), len(self._asked), len(self._seen)

    def expected_wrapped(self) -> float:
        """Rows expected to stand inside train rows, or to hold one, by chance.

        A train row has as many places for a prompt as the prompt fits in; each holds just its words with the probability
        that slots of their classes agree.
        """
        length = sum(len(tokens(prompt)) for prompt in self._seen) / max(len(self._seen), 1)
        expected = 0.0
        for at in self.sought:
            words = self.leaks.sought.sought(at)
            places = self.train_rows * max(1.0, length / len(words))
            expected -= math.expm1(-self._template.chance_of_words(words) * places)
        if not all(inside for _, inside, _ in self.wrapped.values()):
            each = sum(self._template.chance_of_words(tokens(prompt)) for prompt in self._seen) / max(len(self._seen), 1)
            expected -= len(self.sought) * math.expm1(-each * self.train_rows)
        return max(expected, self.siblings.expected_same(len(self.sought), self.train_rows))

    def expected_near(self) -> float:
        """Rows expected to have a near-duplicate in train by chance."""
        by_wording = self.siblings.expected_near(len(self.sought), self.train_rows)
        return max(by_wording, self.leaks.index.expected_near(self.sought, self._rows, self.train_rows))

    def shift(self, which: np.ndarray) -> int | None:
        """Rows between held-out items and their partners, if 9 of 10 have the same distance: neighbouring seeds do that."""
        found = self.leaks.same
        distances = np.searchsorted(self._train, found.partner[which]) - np.searchsorted(self.mine, which)
        if len(distances) < 10:
            return None
        shift, times = Counter(distances.tolist()).most_common(1)[0]
        return shift if times >= 0.9 * len(distances) else None

    def found_around(self, *, agreeing: bool) -> list[tuple[int, int]]:
        """Row numbers (held-out, train) of wrapped copies whose answers agree; or of those inside train whose do not."""
        return [
            (self.leaks.rows[at].number, row)
            for at, (row, inside, agrees) in self.wrapped.items()
            if agrees == agreeing and (agreeing or inside)
        ]

    def pairs_of(self, which: np.ndarray) -> list[tuple[int, int]]:
        """Row numbers (held-out, train) of places among the held-out rows."""
        found = self.leaks.same
        return list(zip(found.held_out[which].tolist(), found.partner[which].tolist(), strict=True))

    def show(self, pairs: list[tuple[int, int]], *, near: bool = False) -> tuple[dict[str, Any], ...]:
        """Pairs of row numbers (held-out, train) as evidence."""
        return self.reader.pair_evidence(pairs, "eval_", "train_", near=near)
