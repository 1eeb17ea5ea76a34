"""Planner that draws every training example equally often: each task's weight is its share of the examples.

Source: what trainers do without steering.
Unit: share of draws.
Cost: none.
Blind spot: lets the size of each data set decide what is learnt; rare tasks stay rare.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.contracts import Planner
from mixwright.plan.baseline import task_counts, weights_only
from mixwright.records import Cell, Measurement, Plan, TrainingSetup


class Proportional(Planner):
    """Baseline."""

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """Weights by examples. Raises InputError when there are none."""
        counts = task_counts(cells)
        reasons = {task: f"{count} of {sum(counts.values())} training examples" for task, count in counts.items()}
        return weights_only("proportional", counts, reasons, training)
