"""Validation of a plan against the data it is to steer, wherever the two meet: CLI, trainers, trial, engine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mixwright import catalog
from mixwright.config import MAX_LEARNING_RATE, MAX_STEPS
from mixwright.errors import InputError, unknown_name
from mixwright.records import Cell, EngineOptions, Plan, Stage, cell_key, from_data

STEERING_KINDS = ("selectors", "gates", "controllers", "monitors")
"""What steers, by kind of plug-in."""


def validate_plan(plan: Plan, cells: Sequence[Cell]) -> None:
    """Raise InputError unless `plan` can steer data with these cells.

    Tasks of the data that a stage gives no weight are not drawn in it; tasks of the plan that the data lacks are refused.

    Raises:
        InputError: no stage, a task that the data lacks, a cell twice, weights that are not shares, a
            band or steps that make no sense, a plug-in that does not exist, or an option that it does not take.
    """
    if not plan.stages:
        raise InputError("a plan with at least one stage", "none", "Write one with `mixwright plan`.")
    tasks = {cell.task for cell in cells}
    named_tasks = [task for s in plan.stages for task in (*s.weights, *s.bands, *s.rehearse, *s.expected)]
    for task in (*named_tasks, *(cell.task for cell in plan.cells)):
        if task not in tasks:
            error = unknown_name("task in the data that the plan names", task, tasks)
            raise InputError(
                error.expected, error.got, f"{error.remedy} Rows that the plan replays must be in the data, too."
            )
    if repeated_name := _find_repeated(cell_key(cell.task, cell.level) for cell in plan.cells):
        raise InputError("each of the plan's cells once", f"{repeated_name!r} twice", "Remove one of them.")
    if repeated_name := _find_repeated(stage.name for stage in plan.stages):
        raise InputError("stages with different names", f"{repeated_name!r} twice", "Rename one of them.")
    tasks_with_rows = {cell.task for cell in cells if cell.count}
    for stage in plan.stages:
        _validate_numbers(stage)
        _validate_names(stage)
        tasks_without_rows = [
            task for task, weight in stage.weights.items() if weight and task not in {*tasks_with_rows, *stage.rehearse}
        ]
        if tasks_without_rows:
            expected = f"training rows of {tasks_without_rows[0]!r}, or its name under rehearse, in stage {stage.name!r}"
            raise InputError(expected, "only rows to replay", "Add the task to rehearse, or remove its weight.")


def _find_repeated(names: Iterable[str]) -> str | None:
    """The first name that stands more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _validate_numbers(stage: Stage) -> None:
    """Weights, bands, steps, and what the stage is expected to reach."""
    weights, name = list(stage.weights.values()), f"stage {stage.name!r}"
    if not weights or any(not 0 <= w <= 1 for w in weights) or not math.isclose(sum(weights), 1, abs_tol=1e-3):
        got = f"sum {sum(weights):g}, least {min(weights, default=0):g}"
        raise InputError(f"weights of {name} between 0 and 1 that sum to 1", got, "Correct them.")
    checks: list[tuple[str, Any, bool]] = [
        (f"a band of {name}{owner} with 0 <= low < high <= 1", band, 0 <= band[0] < band[1] <= 1)
        for owner, band in {"": stage.band, **{f" for {task!r}": band for task, band in stage.bands.items()}}.items()
    ]
    rate, max_rate, steps = stage.learning_rate, MAX_LEARNING_RATE, stage.steps
    checks += [
        (f"at least 1 step and at most {MAX_STEPS:,} in {name}", steps, 1 <= steps <= MAX_STEPS),
        (f"a learning_rate above 0 and at most {max_rate:g} of {name}", rate, rate is None or 0 < rate <= max_rate),
    ]
    checks += [
        (f"an expected success of {task!r} from 0 to 1 in {name}", success, 0 <= success <= 1)
        for task, success in stage.expected.items()
    ]
    for expected, got, holds in checks:
        if not holds:
            raise InputError(expected, repr(got), "Correct it.")


def _validate_names(stage: Stage) -> None:
    """Plug-ins and their options, each once."""
    groups = {"selectors": (stage.selector,), "gates": stage.gates, "controllers": stage.controllers}
    groups |= {"monitors": stage.monitors}
    for kind, names in groups.items():
        if _find_repeated(names) is not None:
            raise InputError(f"each of the {kind} of stage {stage.name!r} once", ", ".join(names), "Remove the second.")
    used = {f"{kind}.{name}" for kind, names in groups.items() for name in names if catalog.find_entry(kind, name)}
    for key, options in stage.options.items():
        if key not in {"engine", *used}:
            raise unknown_name(f"plug-in in the options of stage {stage.name!r}", key, {"engine", *used})
        check_options(key, options)


def check_options(owner: str, options: Mapping[str, Any]) -> None:
    """Whether `engine`, or a plug-in by `kind.name`, takes these options. Raises InputError."""
    kind, _, name = owner.partition(".")
    if owner == "engine":
        from_data(EngineOptions, dict(options))
    else:
        catalog.create(kind, name, dict(options))


def check_levers(options_by_lever: Mapping[str, Mapping[str, Any]], setting: str) -> None:
    """Raise InputError unless each lever of a setting exists and takes the keyword arguments that are asked for."""
    for name, options in options_by_lever.items():
        if name != "engine" and name.partition(".")[0] not in STEERING_KINDS:
            known_names = ["engine", *(f"{kind}.NAME" for kind in STEERING_KINDS)]
            raise unknown_name(f"lever in {setting}", name, known_names)
        check_options(name, options)
