"""The plan of a run nobody steers: fixed weights, every example alike or every level alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mixwright.records import Cell, Plan


def without_levers(plan: Plan, weights: Mapping[str, float] | None = None, *, selector: str = "uniform") -> Plan:
    """`plan` with its steps, objectives and cells, and without its levers and its forecast, which was made for them.

    Args:
        plan: under trial.
        weights: over tasks, in every stage; None keeps the plan's.
        selector: one that adapts to nothing.
    """
    stages = []
    for stage in plan.stages:
        engine = stage.options.get("engine", {})
        kept = {"engine": {"reward_range": engine["reward_range"]}} if "reward_range" in engine else {}
        bare = replace(stage, mixture=None, selector=selector, gates=(), controllers=(), monitors=(), options=kept)
        stages.append(bare if weights is None else replace(bare, weights=dict(weights)))
    return Plan(planner="no levers", stages=tuple(stages), cells=plan.cells)


def proportional_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """`plan` without its levers: weights are shares of the examples. Raises ValueError when there are no examples."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.task] = counts.get(cell.task, 0) + cell.count
    total = sum(counts.values())
    if total == 0:
        raise ValueError("no training examples to take shares of")
    bare = without_levers(plan, {task: count / total for task, count in sorted(counts.items())})
    why = {
        f"stages.{index}.weights.{task}": f"{counts[task]} of {total} training examples"
        for index in range(len(bare.stages))
        for task in sorted(counts)
    }
    return replace(bare, planner="proportional", why=why)


def equal_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """`plan` without its levers: tasks weigh the same, and so do levels of a task. Raises ValueError without examples."""
    tasks = sorted({cell.task for cell in cells if cell.count})
    if not tasks:
        raise ValueError("no training examples to take shares of")
    bare = without_levers(plan, {task: 1 / len(tasks) for task in tasks}, selector="equal_levels")
    why = {f"stages.{index}.weights.{task}": "equal shares" for index in range(len(bare.stages)) for task in tasks}
    return replace(bare, planner="equal shares", why=why)
