"""Reference of a trial over selected rows: what the simplest rule takes that knows as much as the miner.

A miner that is told which tasks are the targets has to beat training on the rows of these tasks alone, which needs no scan.

Source: in our own measurements the targets' rows alone were as good as rows chosen by gradients (docs/mining.md).
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: equal in steps, not in rows: few rows are repeated more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class SimpleRule(Arm):
    """The plan on the rows of the miner's simple rule."""

    ROLE: ClassVar[Role] = "reference"
    OF_DATA: ClassVar[bool] = True

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; rows of NAME.simple_rule.parquet beside `trial.data`."""
        return Branch(plan, rows="simple_rule")
