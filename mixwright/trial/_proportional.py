"""The plan of a run nobody steers: every training example equally often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mixwright.records import Cell, Plan


def proportional_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """`plan` with its steps, objectives and cells, and without its levers: weights are shares of the examples.

    The forecast goes too: it was made for the plan under trial. Raises ValueError when there are no examples.
    """
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.task] = counts.get(cell.task, 0) + cell.count
    total = sum(counts.values())
    if total == 0:
        raise ValueError("no training examples to take shares of")
    weights = {task: count / total for task, count in sorted(counts.items())}
    stages = tuple(
        replace(stage, weights=weights, mixture=None, selector="uniform", gates=(), controllers=(), monitors=(), options={})
        for stage in plan.stages
    )
    why = {
        f"stages.{index}.weights.{task}": f"{counts[task]} of {total} training examples"
        for index in range(len(stages))
        for task in weights
    }
    return Plan(planner="proportional", stages=stages, cells=plan.cells, why=why)
