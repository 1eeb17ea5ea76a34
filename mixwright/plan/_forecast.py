"""What a plan expects of each task: a simple rule, written down before the run and scored after it.

A reachable cell moves by its room x (1 - exp(-s / 40)); room is its learnability (the variance of rewards within a prompt),
or u(1 - u) of its success above luck u where that was not measured, and s is the number of steps' worth
of draws it gets (steps x its task's weight, split over the task's reachable cells by their room): slow near luck, slow
near the top, and at most the room within one run. Other cells stay. The 80 % range starts at no gain, ends at twice the
gain, and is widened on both sides by the sampling error of two measurements and by 2 points. The 40 comes from pilots on
chain arithmetic (0.80 to 0.92 in 80 steps); how well it transfers is what the score will show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mixwright.plan._evidence import SUCCESS, success_rows
from mixwright.plan._states import above_luck
from mixwright.records import CellPlan, Forecast, Measurement

PACE = 40.0
"""Steps spent wholly on one cell that make 63 % of its possible gain."""
MARGIN = 0.02
"""Success by which a task may move without being trained on, beyond sampling error."""


def room(cell: CellPlan) -> float:
    """Learnability of a reachable cell, 0..0.25, else u(1 - u) of its success above luck u; 0 for every other state."""
    if cell.state != "reachable" or cell.success is None:
        return 0.0
    if cell.learnability is not None:
        return cell.learnability
    above = min(max(above_luck(cell.success, cell.luck), 0.0), 1.0)
    return above * (1 - above)


def forecast(
    cells: Sequence[CellPlan], competence: Sequence[Measurement], weights: Mapping[str, float], steps: int
) -> tuple[Forecast, ...]:
    """One statement per task that has no unknown cell, about the mean pass@1 over its cells (each cell counts the same).

    Args:
        cells: what the plan thinks.
        competence: the measurements behind it, for their intervals.
        weights: share of draws per task.
        steps: optimiser steps.
    """
    rows, found = success_rows(competence), []
    for task in sorted({cell.task for cell in cells}):
        own = [cell for cell in cells if cell.task == task]
        if any(cell.state == "unknown" or cell.success is None for cell in own):
            continue
        total = sum(room(cell) for cell in own)
        gains, variance = 0.0, 0.0
        for cell in own:
            spent = steps * weights.get(task, 0.0) * room(cell) / total if total else 0.0
            gains += room(cell) * (1 - cell.luck) * (1 - math.exp(-spent / PACE))
            row = rows[task, cell.level]
            variance += 2 * ((row.high - row.low) / 2 / 1.96) ** 2
        before = sum(cell.success or 0.0 for cell in own) / len(own)
        gain, noise = gains / len(own), 1.28 * math.sqrt(variance) / len(own) + MARGIN
        low, high = max(before - noise, 0.0), min(before + 2 * gain + noise, 1.0)
        found.append(Forecast(task, SUCCESS, *(round(number, 4) for number in (before, before + gain, low, high))))
    return tuple(found)
