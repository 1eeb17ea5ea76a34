"""Null: the lever with false levels: they are permuted within each task before cells are measured.

Source: permutation of the labels that a method reads (permutation tests); the selection literature's shuffled scores.
Unit: one branch per seed; one permutation for the whole trial, among training and among held-out rows separately.
Cost: one training run per seed, and one more measurement of every starting model.
Blind spot: weights over tasks and evidence per example are not shuffled; what they earn alone, this null earns too.

The starting model is measured by the shuffled cells, the plan is made anew from that with the lever's own plug-ins, and the
run trains on rows with shuffled levels. It is judged on the true held-out items like every arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class ShuffledLevels(Arm):
    """The lever's plan, made anew from shuffled levels."""

    ROLE: ClassVar[Role] = "null"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; levels shuffled."""
        return Branch(plan, shuffle_levels=True)
