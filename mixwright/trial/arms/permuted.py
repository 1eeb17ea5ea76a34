"""Null: a broken verifier under steered sampling: true rewards are permuted inside each group.

Source: random-reward controls (Spurious Rewards, arXiv:2506.10947), made exact: mean, spread and number of signal-carrying
groups stay the same, only which completion earned what is lost.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: it loses by taking steps on noise, so beating it says that rewards carry information, not that the lever works;
steering still sees true rewards, so the choice of items carries information even here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class Permuted(Arm):
    """The lever's plan with uninformative rewards."""

    ROLE: ClassVar[Role] = "null"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan, rewards permuted."""
        return Branch(plan, permute_rewards=True)
