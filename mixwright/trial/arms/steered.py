"""Lever: the plan under trial as it stands.

Source: the plan of this run.
Unit: one branch per seed.
Cost: one training run per seed, canaries, and the measuring that the plan rests on.
Blind spot: levers are tried together; which of them worked needs a plan with one lever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class Steered(Arm):
    """Weights, selector, gates, controllers and monitors of the plan."""

    ROLE: ClassVar[Role] = "plan"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan, untouched."""
        return Branch(plan)
