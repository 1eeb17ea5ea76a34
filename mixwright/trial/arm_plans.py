"""Plans that arms train under: without levers, with stages joined, and permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from mixwright.plan.baseline import task_counts
from mixwright.records import Cell, Plan, Stage

WEIGHT_PERMUTATION_SEED, ORDER_PERMUTATION_SEED = 5_000_011, 8_000_009
"""Permutations of weights: added to the branch's seed; of stages: a second number beside it."""


def without_levers(plan: Plan) -> Plan:
    """Return the plan with its weights, steps, objectives and cells, and without its levers."""
    stages = []
    for stage in plan.stages:
        engine = stage.options.get("engine", {})
        options = {"engine": {"reward_range": engine["reward_range"]}} if "reward_range" in engine else {}
        bare_stage = replace(stage, selector="uniform", gates=(), controllers=(), monitors=(), options=options)
        stages.append(replace(bare_stage, expected={}))
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


def joint_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """Return the plan without levers, with neighbouring stages of one objective joined, weights averaged by steps."""
    stages = [
        _join_stages(tuple(neighbours))
        for _, neighbours in groupby(without_levers(plan).stages, key=lambda stage: stage.objective)
    ]
    return Plan("joint", tuple(stages), plan.cells)


def _join_stages(stages: Sequence[Stage]) -> Stage:
    steps, longest = sum(stage.steps for stage in stages), max(stages, key=lambda stage: stage.steps)
    tasks = dict.fromkeys(task for stage in stages for task in stage.weights)
    weights = {task: sum(stage.steps * stage.weights.get(task, 0.0) for stage in stages) / steps for task in tasks}
    rehearse = tuple(dict.fromkeys(task for stage in stages for task in stage.rehearse))
    return replace(longest, name=stages[0].name, steps=steps, weights=weights, rehearse=rehearse)


def permuted_weights(plan: Plan, seed: int) -> Plan:
    """Return the plan with the weights of each stage at other tasks, in a random order that differs where one does."""
    rng, stages = np.random.default_rng([seed, WEIGHT_PERMUTATION_SEED]), []
    for stage in plan.stages:
        tasks = sorted(stage.weights)
        weights = _permute([stage.weights[task] for task in tasks], rng)
        stages.append(replace(stage, weights=dict(zip(tasks, weights, strict=True))))
    return replace(plan, stages=tuple(stages))


def permuted_order(plan: Plan, seed: int) -> Plan:
    """Return the plan with its stages in another random order, names staying in their places."""
    order = _permute([*range(len(plan.stages))], np.random.default_rng([seed, ORDER_PERMUTATION_SEED]))
    stages = [
        replace(plan.stages[number], name=stage.name, expected={}) for stage, number in zip(plan.stages, order, strict=True)
    ]
    return replace(plan, stages=tuple(stages), why={})


def _permute(values: list[Any], rng: np.random.Generator) -> list[Any]:
    """Return the values in a random order that differs from theirs, unless they are all equal."""
    permuted = values
    while permuted == values and len(set(values)) > 1:
        permuted = [values[number] for number in rng.permutation(len(values))]
    return permuted
