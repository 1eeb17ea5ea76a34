"""Null: steered sampling, but true rewards are permuted inside each group before the optimiser sees them.

Source: random-reward controls (Spurious Rewards, arXiv:2506.10947), made exact: mean, spread and number of signal-carrying
groups stay the same, only which completion earned what is lost.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: steering still sees true rewards, so the choice of items carries information even here.

Two readings. Its gain over its own start must not exceed 0: a gain would be made without knowing a right answer from a
wrong one (answer form, luck, a drifting measure), and no lever of the run is proven then. Its difference against
uniform says the same with the base and the evaluation noise shared; usually it is negative, the price of training on
noise at this learning rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch
from mixwright.records import Cell, Plan


class Permuted(Arm):
    """The plan with uninformative rewards."""

    NULL: ClassVar[bool] = True

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan, rewards permuted."""
        return Branch(plan, permute_rewards=True)
