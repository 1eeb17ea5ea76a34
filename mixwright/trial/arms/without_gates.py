"""Ablation: the plan under trial without the gates; the difference to `steered` is what they are worth.

Source: ablation, one part left out at a time.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: parts that stand in for one another look worthless one by one; leave out several to see that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan
from mixwright.trial.arms._bare import without


class WithoutGates(Arm):
    """No group is refused; weights, selector, controllers and monitors stay."""

    ROLE: ClassVar[Role] = "ablation"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan without that part."""
        return Branch(without(plan, "gates", cells))
