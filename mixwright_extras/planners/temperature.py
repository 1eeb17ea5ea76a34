"""Planner between `proportional` and `equal_shares`: weights are example counts to the power 1 / temperature.

Source: temperature sampling of multilingual pre-training (1907.05019).
Unit: share of draws.
Cost: none.
Blind spot: knows sizes only, not what the model can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mixwright.extend import Cell, InputError, Measurement, Plan, Planner, TrainingSetup, task_counts, weights_only


@dataclass(kw_only=True, eq=False)
class Temperature(Planner):
    """Baseline.

    Args:
        temperature: 1 is `proportional`, a large one `equal_shares`; at least 1.
    """

    temperature: float = 2.0

    def __post_init__(self) -> None:
        if not self.temperature >= 1:
            got = f"{self.temperature:g}"
            raise InputError("a temperature of at least 1", got, "Correct plan.options.temperature.")

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """Flattened weights. Raises InputError when there are no examples."""
        counts = task_counts(cells)
        weights = {task: count ** (1 / self.temperature) for task, count in counts.items()}
        reasons = {task: f"{count} examples to the power of 1/{self.temperature:g}" for task, count in counts.items()}
        return weights_only("temperature", weights, reasons, training)
