"""Null: another seed's draws and refusals, served again: the same curriculum, but nothing adapts to this run.

Source: yoked controls (Church, 1964): the same events, without the subject's own behaviour deciding them.
Unit: one branch per seed; it takes the next seed of the lever that began with the same starting model.
Cost: one training run per seed; no canaries.
Blind spot: seeds of one starting model are alike, so a schedule that is good for all of them earns the same here: that part
of a gain belongs to the curriculum and not to adapting. Needs two seeds per starting model.

Learning-rate factors, KL coefficients and skipped steps of that seed are served again, too, one per generation batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan
from mixwright.trial.arms._bare import without_levers


class Replayed(Arm):
    """The lever's draws of another seed."""

    ROLE: ClassVar[Role] = "null"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan without its levers; draws come from the other seed."""
        return Branch(without_levers(plan), replays=True)
