"""Null: a broken verifier under uniform sampling: true rewards are permuted inside each group.

Source: random-reward controls (Spurious Rewards, arXiv:2506.10947), made exact: mean, spread and number of signal-carrying
groups stay the same, only which completion earned what is lost.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: it says nothing about the sampling of the plan under trial; that is the arm `permuted`.

Against uniform it differs in the information of the rewards alone: that difference is what the reward signal is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan
from mixwright.trial.arms._bare import proportional_plan


class PermutedUniform(Arm):
    """The reference with uninformative rewards."""

    ROLE: ClassVar[Role] = "null"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan without its levers, rewards permuted."""
        return Branch(proportional_plan(plan, cells), permute_rewards=True)
