"""Planner that draws every task equally often, however many examples it has.

The arm `equal_shares` of a trial weighs tasks in the same way; it draws the levels of a task equally often, too, where this
planner draws every row of a task equally often.

Source: common baseline of multi-task training.
Unit: share of draws.
Cost: none.
Blind spot: repeats small tasks often; spends as much on mastered and hopeless tasks as on the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.contracts import Planner
from mixwright.plan.baseline import task_counts, weights_only
from mixwright.records import Cell, Measurement, Plan, TrainingSetup


class EqualShares(Planner):
    """Baseline."""

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """Equal weights. Raises InputError when there are no examples."""
        counts = task_counts(cells)
        reasons = dict.fromkeys(counts, f"one of {len(counts)} tasks")
        return weights_only("equal_shares", dict.fromkeys(counts, 1.0), reasons, training)
