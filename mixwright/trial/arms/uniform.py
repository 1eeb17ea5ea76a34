"""Reference: every training example equally often, no lever.

Source: plain GRPO or SFT over the concatenated data, what a run does when nobody decides.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: proportional to the rows the corpus happens to have; `equal_shares` is the other simple rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan
from mixwright.trial.arms._bare import proportional_plan


class Uniform(Arm):
    """Proportional weights, uniform selector, no gates, controllers or monitors."""

    ROLE: ClassVar[Role] = "reference"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan without its levers."""
        return Branch(proportional_plan(plan, cells))
