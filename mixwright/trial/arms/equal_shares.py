"""Reference: tasks equally often, and within a task its levels equally often; no lever.

Source: the simplest rule against an unbalanced pool. On a wide pool it was nearly as good as the selector `difficulty`
(docs/controllers.md), so a lever has to beat it.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: spends as much on what is mastered or out of reach as on what can be learnt; small levels are repeated often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan
from mixwright.trial.arms._bare import equal_plan


class EqualShares(Arm):
    """Equal weights over tasks, the selector `equal_levels`, no gates, controllers or monitors."""

    ROLE: ClassVar[Role] = "reference"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan without its levers, in equal shares."""
        return Branch(equal_plan(plan, cells))
