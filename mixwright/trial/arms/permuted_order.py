"""Null of a plan of several stages: the same stages in a random order, another one for every seed.

Source: permutation of what a method decides (permutation tests); every order has its optimiser resets at the same places.
Unit: one branch per seed.
Cost: one training run per seed; stages that begin another branch of the seed in the same way are shared.
Blind spot: with two stages there is one other order; stages of different objectives change places, too.

A plan that beats all tasks together, but not this null, owes its gain to borders, and nothing to the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class PermutedOrder(Arm):
    """The lever's plan with its stages in another order."""

    ROLE: ClassVar[Role] = "null"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan; stages permuted."""
        return Branch(plan, permute_order=True)
