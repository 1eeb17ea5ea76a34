"""Plans without levers (fixed weights, every example or every level alike), and plans with one part less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from mixwright.records import Cell, Plan, Stage

PlanPart = Literal["weights", "selector", "gates", "controllers"]
LEFT_OUT_VALUES: dict[str, Any] = {"selector": "uniform", "gates": (), "controllers": ()}
"""Part of a stage -> what stands there when it is left out."""


def without_levers(plan: Plan, weights: Mapping[str, float] | None = None, *, selector: str = "uniform") -> Plan:
    """`plan` with its steps, objectives and cells, and without its levers.

    Args:
        plan: under trial.
        weights: over tasks, in every stage; None keeps the plan's.
        selector: one that adapts to nothing.
    """
    stages = []
    for stage in plan.stages:
        engine = stage.options.get("engine", {})
        options = {"engine": {"reward_range": engine["reward_range"]}} if "reward_range" in engine else {}
        bare_stage = replace(stage, selector=selector, gates=(), controllers=(), monitors=(), options=options)
        bare_stage = replace(bare_stage, expected={}, earlier_share=0.0)
        stages.append(bare_stage if weights is None else replace(bare_stage, weights=dict(weights), rehearse=()))
    return Plan(planner="no levers", stages=tuple(stages), cells=plan.cells)


def proportional_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """`plan` without its levers: weights are shares of the examples. Raises ValueError when there are no examples."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell.task] = counts.get(cell.task, 0) + cell.count
    total = sum(counts.values())
    if total == 0:
        raise ValueError("no training examples to take shares of")
    bare_plan = without_levers(plan, {task: count / total for task, count in sorted(counts.items())})
    why = {
        f"stages.{index}.weights.{task}": f"{counts[task]} of {total} training examples"
        for index in range(len(bare_plan.stages))
        for task in sorted(counts)
    }
    return replace(bare_plan, planner="proportional", why=why)


def equal_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """`plan` without its levers: tasks weigh the same, and so do levels of a task. Raises ValueError without examples."""
    tasks = sorted({cell.task for cell in cells if cell.count})
    if not tasks:
        raise ValueError("no training examples to take shares of")
    bare_plan = without_levers(plan, {task: 1 / len(tasks) for task in tasks}, selector="equal_levels")
    why = {f"stages.{index}.weights.{task}": "equal shares" for index in range(len(bare_plan.stages)) for task in tasks}
    return replace(bare_plan, planner="equal shares", why=why)


def without_part(plan: Plan, part: PlanPart, cells: Sequence[Cell]) -> Plan:
    """`plan` without one part of its stages.

    Args:
        plan: under trial.
        part: weights (shares of the examples stand in for them) or a kind of lever.
        cells: of the corpus.
    """
    if part == "weights":
        stages = tuple(
            replace(stage, weights=bare_stage.weights)
            for stage, bare_stage in zip(plan.stages, proportional_plan(plan, cells).stages, strict=True)
        )
    else:
        stages = tuple(_without_levers_of(stage, part) for stage in plan.stages)
    return replace(plan, planner=f"{plan.planner} without {part}", stages=stages, why={})


def _without_levers_of(stage: Stage, part: str) -> Stage:
    """The stage without a kind of lever and without the options of what is gone."""
    levers = getattr(stage, part)
    names = {levers} if isinstance(levers, str) else set(levers or ())
    kind = part if part.endswith("s") else f"{part}s"
    options = {name: value for name, value in stage.options.items() if name not in {f"{kind}.{lever}" for lever in names}}
    return replace(stage, options=options, **{part: LEFT_OUT_VALUES[part]})
