"""Lever of a trial over data: the plan on the rows of `trial.data`, which a miner selected or made.

Source: none of its own; each miner names its own.
Unit: one branch per seed.
Cost: one training run per seed; what mining cost stands in the miner's summary.
Blind spot: tasks keep the plan's weights, so a selection is judged within tasks; one that wants other shares needs a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class MinedArm(Arm):
    """The plan on mined rows."""

    ROLE: ClassVar[Role] = "lever"
    OF_DATA: ClassVar[bool] = True

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; rows of `trial.data`."""
        return Branch(plan, rows="mined")
