"""Reference of a trial of several stages: all of their tasks together, in one stage per objective, with as many steps.

Each task keeps the share of draws that the stages together give it. There are no borders, so the optimiser is not reset on
the way; `uniform`, which has the plan's borders and draws from all tasks in each stage, is the control for that.

Source: what an order has to beat; staged training with resets beat mixed training in 2507.17512, which may be the resets.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: it takes the learning rate of the longest of the stages that it joins, and none of their levers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan, Stage
from mixwright.trial.arms._bare import without_levers


class Joint(Arm):
    """The plan without borders."""

    ROLE: ClassVar[Role] = "reference"

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """Neighbouring stages of one objective as one stage, with the mean of their weights by steps."""
        bare = without_levers(plan)
        joined = [_joined(tuple(own)) for _, own in groupby(bare.stages, key=lambda stage: stage.objective)]
        return Branch(replace(bare, planner="joint", stages=tuple(joined)))


def _joined(stages: Sequence[Stage]) -> Stage:
    steps, longest = sum(stage.steps for stage in stages), max(stages, key=lambda stage: stage.steps)
    tasks = dict.fromkeys(task for stage in stages for task in stage.weights)
    weights = {task: sum(stage.steps * stage.weights.get(task, 0.0) for stage in stages) / steps for task in tasks}
    return replace(longest, name=stages[0].name, steps=steps, weights=weights, kept=stages[0].kept)
