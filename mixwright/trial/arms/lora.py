"""Lever: the plan, trained through LoRA, factors of low rank, and merged into plain weights at the end.

Source: LoRA, 2106.09685; how much it learns and forgets beside full training, 2405.09673.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: a low rank may be too small for the task, and its learning rate is another one than full training's.

Options and learning rate of the adapter stand in `train.adapters.lora`; without the latter it has that of the other arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class Lora(Arm):
    """The plan with this adapter."""

    ROLE: ClassVar[Role] = "lever"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; the adapter `lora`."""
        return Branch(plan, adapter="lora")
