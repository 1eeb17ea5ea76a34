"""Check of levels of difficulty per task, and of cells where a rule without the skill does well.

Source: own; success must be read beside its chance level (in Reasoning Gym, gcd's answer is often 1).
Unit: rows without a level; chance level per cell (task and level), 0..1: the best rule without the skill, chosen on other
    rows.
Cost: the grader a few times on at most 500 rows of each cell.
Blind spot: whether a higher level really is harder (measure says), and guesses that read the prompt. Levels that only
    held-out rows have: `coverage`.
"""

from __future__ import annotations

from mixwright.audit.rows import EXCERPT_CHARACTERS, rows_by_task
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.records import Cell, Observation

LUCKY_CHANCE, MIN_ROWS = 0.25, 20
"""Chance level from which on a cell is told, and rows below which a cell is too small to judge."""


class Difficulty(Check):
    """Looks at the train split's levels, and at the chance level of its cells."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each task with levels in some rows only, and an info for each lucky cell."""
        train, observations = rows_by_task(corpus, "train"), list[Observation]()
        is_missing = pc.is_null(corpus.table["level"]).to_numpy()
        for task, numbers in sorted(train.items()):
            count, total = int(is_missing[numbers].sum()), len(numbers)
            if 0 < count < total:
                text = f"{count} of {total} training rows have no level, unlike the other rows of the task."
                remedy = "Fill in the level column, or leave it out for the whole task."
                observations.append(Observation("difficulty", task, "warning", count, total, text, remedy))
        return observations + [
            _observe_lucky(cell)
            for cell in (corpus.cells() if train else ())
            if cell.count >= MIN_ROWS and cell.chance >= LUCKY_CHANCE
        ]


def _observe_lucky(cell: Cell) -> Observation:
    text = f"{cell.key}: a rule without the skill gets {cell.chance:.1%} (± {100 * cell.chance_error:.0f} points) right "
    text += f"({cell.rule[:EXCERPT_CHARACTERS]})."
    remedy = "Compare success with this chance level (as `measure` does), or vary the answers."
    null = f"were all answers different: {1 / cell.count:.2%}"
    evidence = ({"level": cell.level, "chance": cell.chance},)
    count = round(cell.chance * cell.count)
    return Observation("difficulty", cell.task, "info", count, cell.count, text, remedy, null, evidence)
