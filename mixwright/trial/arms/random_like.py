"""Reference of a trial over data: random training rows, as many of each task as were mined, drawn anew for every seed.

Source: random subsets of equal size, which many selection scores do not beat (2402.04333's re-studies; 2206.14486).
Unit: one branch per seed, on rows of its own.
Cost: one training run per seed.
Blind spot: equal in rows per task, not in their lengths or levels; target tokens of both arms are counted and shown.

Without it a gain of fewer rows could be that of repeating any rows more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class RandomLike(Arm):
    """The plan on random rows of equal count."""

    ROLE: ClassVar[Role] = "reference"
    OF_DATA: ClassVar[bool] = True

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; random rows like those of `trial.data`."""
        return Branch(plan, rows="random_like")
