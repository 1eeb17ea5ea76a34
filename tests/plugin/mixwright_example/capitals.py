"""Answers that differ from another answer of their task in capital letters only.

Source: none; an example.
Unit: answers.
Cost: one pass over the answers; keeps each task's distinct answers in memory.
Blind spot: capitals that carry meaning, as in chemical formulae.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mixwright.contracts import Check
from mixwright.records import Observation

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


class Capitals(Check):
    """Exact graders call `Paris` right and `paris` wrong: the data should know which it wants.

    Args:
        least: fewest such answers that are worth a warning.
    """

    def __init__(self, *, least: int = 1) -> None:
        self.least = least

    def check(self, corpus: Corpus) -> list[Observation]:
        """One warning per task that writes the same answer in several ways."""
        spellings: dict[tuple[str, str], set[str]] = defaultdict(set)
        for example in corpus:
            if example.answer is not None:
                spellings[example.task, example.answer.casefold()].add(example.answer)
        seen = []
        for task in corpus.tasks:
            several = sorted(sorted(ways)[0] for (owner, _), ways in spellings.items() if owner == task and len(ways) > 1)
            if len(several) >= self.least:
                total = sum(owner == task for owner, _ in spellings)
                message = f"{len(several)} of {total} answers of {task} are written with different capitals."
                remedy = "Write each answer in one way, or use a grader that ignores capitals."
                seen.append(Observation("capitals", task, "warning", len(several), total, message, remedy))
        return seen
