"""Reference: no training at all; the starting model as it is, measured anew for every seed.

Source: the plainest alternative to any training: it costs nothing and cannot damage anything.
Unit: one measurement per seed, with that seed's sampling numbers.
Cost: one measurement per seed; no training rollouts.
Blind spot: greedy success is the same in every seed of a starting model; only its sampled success is drawn anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan
from mixwright.trial.arms._bare import proportional_plan


class Frozen(Arm):
    """The starting model; always an arm, whether the settings name it or not."""

    ROLE: ClassVar[Role] = "untrained"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """No training; the plan stands for the objective and the steps that the others take."""
        return Branch(proportional_plan(plan, cells), trains=False)
