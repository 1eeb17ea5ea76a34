"""Plans that arms train under: without levers, with one part less, and permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mixwright.plan.baseline import task_counts
from mixwright.records import Cell, Plan, Stage

LEFT_OUT_VALUES: dict[str, Any] = {"selector": "uniform", "gates": (), "controllers": ()}
"""Part of a stage -> its value when it is left out."""
WEIGHT_PERMUTATION_SEED = 5_000_011
"""Of permutations of weights: beside the branch's seed."""


def without_levers(plan: Plan) -> Plan:
    """Return the plan with its weights, steps, objectives and cells, and without its levers."""
    stages = []
    for stage in plan.stages:
        engine = stage.options.get("engine", {})
        options = {"engine": {"reward_range": engine["reward_range"]}} if "reward_range" in engine else {}
        stages.append(replace(stage, selector="uniform", gates=(), controllers=(), monitors=(), options=options))
    return Plan(planner="no levers", stages=tuple(stages), cells=plan.cells)


def proportional_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """Return the plan without its levers, weights being shares of the examples. Raises InputError without examples."""
    counts = task_counts(cells)
    total = sum(counts.values())
    return _with_weights(plan, {task: count / total for task, count in counts.items()}, "proportional", "uniform")


def equal_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """Return the plan without its levers, tasks and their levels weighing the same. Raises InputError without examples."""
    tasks = task_counts(cells)
    return _with_weights(plan, dict.fromkeys(tasks, 1 / len(tasks)), "equal shares", "equal_levels")


def _with_weights(plan: Plan, weights: dict[str, float], planner: str, selector: str) -> Plan:
    stages = [replace(stage, weights=weights, rehearse=(), selector=selector) for stage in without_levers(plan).stages]
    return Plan(planner, tuple(stages), plan.cells)


def without_part(plan: Plan, cells: Sequence[Cell], *, part: Literal["weights", "selector", "gates", "controllers"]) -> Plan:
    """Return the plan without one part of its stages: shares of the examples in place of the weights, or no such lever."""
    if part == "weights":
        weights = proportional_plan(plan, cells).stages[0].weights
        stages = [replace(stage, weights=weights) for stage in plan.stages]
    else:
        stages = [_without_lever(stage, part) for stage in plan.stages]
    return replace(plan, planner=f"{plan.planner} without {part}", stages=tuple(stages), why={})


def _without_lever(stage: Stage, part: str) -> Stage:
    """Return the stage without a kind of lever and without the options of what is gone."""
    levers = getattr(stage, part)
    names = (levers,) if isinstance(levers, str) else levers
    kind = "selectors" if part == "selector" else part
    options = dict(stage.options)
    for name in names:
        options.pop(f"{kind}.{name}", None)
    return replace(stage, options=options, **{part: LEFT_OUT_VALUES[part]})


def permuted_weights(plan: Plan, seed: int) -> Plan:
    """Return the plan with the weights of each stage at other tasks, in a random order that differs where one does."""
    rng, stages = np.random.default_rng([seed, WEIGHT_PERMUTATION_SEED]), []
    for stage in plan.stages:
        tasks = sorted(stage.weights)
        weights = _permute([stage.weights[task] for task in tasks], rng)
        stages.append(replace(stage, weights=dict(zip(tasks, weights, strict=True))))
    return replace(plan, stages=tuple(stages))


def _permute(values: list[Any], rng: np.random.Generator) -> list[Any]:
    """Return the values in a random order that differs from theirs, unless they are all equal."""
    permuted = values
    while permuted == values and len(set(values)) > 1:
        permuted = [values[number] for number in rng.permutation(len(values))]
    return permuted
