"""Reference of a trial over data: every training row of the corpus, under the plan that the selection trains under.

Source: full-data training, the arm that selection papers compare with (LESS, 2402.04333; its re-studies beat it unevenly).
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: at equal steps it repeats rows less often than a selection does; what a selection saves is rows, not steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class All(Arm):
    """The plan on all rows."""

    ROLE: ClassVar[Role] = "reference"
    OF_DATA: ClassVar[bool] = True

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; rows of the corpus."""
        return Branch(plan)
