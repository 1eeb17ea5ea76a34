"""Forecast per task by a simple rule, written down before the run and scored after it.

A reachable or unknown cell moves by its room x (1 - exp(-s / 40)); room is k(1 - k) of its kappa k, times the share of
the variance of rewards that lies within a prompt, and s is the number of steps' worth of draws it gets (steps x its
task's weight, split over the task's cells by their room): slow near S, slow near the top, and at most the room within one
run. Other cells stay. The 80 % range starts at no gain, ends at twice the gain, and is widened on both sides by the
sampling error of two measurements and by 2 points. The 40 comes from first runs on chain arithmetic (0.80 to 0.92 in 80
steps); how well it transfers is what the score will show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mixwright.estimates.cell_states import room_to_learn as room_of
from mixwright.plan.cells import SUCCESS_MEASUREMENT, success_rows
from mixwright.records import CellAssessment, Forecast, Measurement

STEPS_TO_63_PERCENT = 40.0
"""Steps spent wholly on one cell that make 63 % of its possible gain."""
UNTRAINED_MOVE_SHARE = 0.02
"""Success by which a task may move without being trained on, beyond sampling error."""


def attainable_gain(cell: CellAssessment) -> float:
    """k(1 - k) of a reachable or unknown cell's kappa, 0..0.25, times the share of variance within a prompt; 0 for others.

    A cell that was not measured counts as half right.
    """
    if cell.state not in ("reachable", "unknown"):
        return 0.0
    if cell.success is None:
        return 0.125
    gain = float(room_of(cell.success, cell.swapped or 0.0)) / 4
    spread = cell.success * (1 - cell.success)
    return gain if cell.learnability is None or spread <= 0 else gain * min(cell.learnability / spread, 1.0)


def cells_by_task(cells: Sequence[CellAssessment]) -> dict[str, list[CellAssessment]]:
    """The cells of each task, tasks in the order in which they first come."""
    found: dict[str, list[CellAssessment]] = {}
    for cell in cells:
        found.setdefault(cell.task, []).append(cell)
    return found


def forecast(
    cells: Sequence[CellAssessment], competence: Sequence[Measurement], weights: Mapping[str, float], steps: int
) -> tuple[Forecast, ...]:
    """One statement per task all of whose cells were measured, about the mean pass@1 over its cells, each the same.

    Args:
        cells: what the plan thinks.
        competence: the measurements behind it, for their intervals.
        weights: share of draws per task.
        steps: optimiser steps.
    """
    rows, forecasts = success_rows(competence), []
    for task, task_cells in sorted(cells_by_task(cells).items()):
        if any(cell.success is None for cell in task_cells):
            continue
        room = sum(map(attainable_gain, task_cells))
        gains, variance = 0.0, 0.0
        for cell in task_cells:
            steps_spent = steps * weights.get(task, 0.0) * attainable_gain(cell) / room if room else 0.0
            gains += attainable_gain(cell) * (1 - (cell.swapped or 0.0)) * (1 - math.exp(-steps_spent / STEPS_TO_63_PERCENT))
            row = rows[task, cell.level]
            variance += 2 * ((row.high - row.low) / 2 / 1.96) ** 2
        before = sum(cell.success or 0.0 for cell in task_cells) / len(task_cells)
        gain, noise = gains / len(task_cells), 1.28 * math.sqrt(variance) / len(task_cells) + UNTRAINED_MOVE_SHARE
        low, high = max(before - noise, 0.0), min(before + 2 * gain + noise, 1.0)
        numbers = (round(number, 4) for number in (before, before + gain, low, high))
        forecasts.append(Forecast(task, SUCCESS_MEASUREMENT, *numbers))
    return tuple(forecasts)
