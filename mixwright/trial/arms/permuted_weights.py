"""Null: the lever with its task weights permuted among the tasks, by another permutation for every seed.

Source: permutation of the labels that a method reads (permutation tests). Of use to SFT and DPO, which have no rewards.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: with two tasks there is one other order, and a small task that gets a large weight is repeated often.

The weights as numbers stay exactly the same, so a lever that beats this null owes something to which task got which weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class PermutedWeights(Arm):
    """The lever's plan with weights at other tasks."""

    ROLE: ClassVar[Role] = "null"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; weights permuted."""
        return Branch(plan, permute_weights=True)
