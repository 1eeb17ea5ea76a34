"""Validation of a plan against the data it is to steer, wherever the two meet: CLI, trainers, trial, engine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mixwright import catalog
from mixwright.config import MOST_STEPS
from mixwright.errors import InputError, unknown_name
from mixwright.records import Cell, EngineOptions, Plan, Stage, cell_key, from_data


def validate_plan(plan: Plan, cells: Sequence[Cell]) -> None:
    """Raise InputError unless `plan` can steer data with these cells.

    Tasks of the data that a stage gives no weight are not drawn in it, but for the `rehearsal_share`; tasks of
    the plan that the data lacks are refused.

    Raises:
        InputError: no stage, a task that the data lacks, a cell twice, weights that are not shares, a
            band or steps that make no sense, a plug-in that does not exist, or an option that it does not take.
    """
    if not plan.stages:
        raise InputError("a plan with at least one stage", "none", "Make one with `mixwright plan`.")
    tasks = {cell.task for cell in cells}
    named = [task for stage in plan.stages for task in (*stage.weights, *stage.bands)] + [cell.task for cell in plan.cells]
    for task in named:
        if task not in tasks:
            raise unknown_name("task in the data that the plan names", task, tasks)
    for cell, count in Counter((cell.task, cell.level) for cell in plan.cells).items():
        if count > 1:
            raise InputError("each of the plan's cells once", f"{cell_key(*cell)!r} twice", "Remove one of them.")
    if twice := [name for name, count in Counter(stage.name for stage in plan.stages).items() if count > 1]:
        raise InputError("stages with different names", f"{twice[0]!r} twice", "Rename one of them.")
    drawn = {cell.task for cell in cells if cell.count}
    for stage in plan.stages:
        _validate_stage(stage)
        _validate_rehearsed(stage, tasks, drawn)
        for task in stage.expected:
            if task not in tasks:
                raise unknown_name("task in the data that the plan names", task, tasks)


def _validate_stage(stage: Stage) -> None:
    """Numbers and names of one stage."""
    weights = list(stage.weights.values())
    if not weights or any(not 0 <= w <= 1 for w in weights) or not math.isclose(sum(weights), 1, abs_tol=1e-3):
        got = f"sum {sum(weights):g}, least {min(weights, default=0):g}"
        raise InputError(f"weights of stage {stage.name!r} between 0 and 1, summing to 1", got, "Correct them.")
    for whose, band in {"": stage.band, **{f" for {task!r}": band for task, band in stage.bands.items()}}.items():
        if not 0 <= band[0] < band[1] <= 1:
            raise InputError(f"a band of stage {stage.name!r}{whose} with 0 <= low < high <= 1", repr(band), "Correct it.")
    if not 1 <= stage.steps <= MOST_STEPS:
        raise InputError(
            f"at least 1 step and at most {MOST_STEPS:,} in stage {stage.name!r}", str(stage.steps), "Correct it."
        )
    _validate_handover(stage)
    groups = {
        "selectors": (stage.selector,),
        "gates": stage.gates,
        "controllers": stage.controllers,
        "monitors": stage.monitors,
    }
    for kind, names in groups.items():
        if len(set(names)) < len(names):
            raise InputError(f"each of the {kind} of stage {stage.name!r} once", ", ".join(names), "Remove the second.")
        for name in names:
            catalog.find_entry(kind, name)
    used = {"engine", *(f"{kind}.{name}" for kind, names in groups.items() for name in names)}
    for key, options in stage.options.items():
        if key not in used:
            raise unknown_name(f"plug-in in the options of stage {stage.name!r}", key, used)
        check_options(key, options)


def _validate_rehearsed(stage: Stage, tasks: Collection[str], tasks_with_rows: Collection[str]) -> None:
    """Tasks whose rows to rehearse are drawn; `tasks_with_rows`: those that have training rows."""
    for task in stage.rehearse:
        if task not in tasks:
            raise unknown_name("task in the data that the plan names", task, tasks)
    if lacking := [
        task for task, weight in stage.weights.items() if weight and task not in {*tasks_with_rows, *stage.rehearse}
    ]:
        expected = f"training rows of {lacking[0]!r}, or its name under rehearse, in stage {stage.name!r}"
        raise InputError(expected, "rows to rehearse alone", "Add it to rehearse, or give it no weight.")


def _validate_handover(stage: Stage) -> None:
    """What a stage takes over from the one before, and what is expected after it."""
    if len(set(stage.kept)) < len(stage.kept):
        raise InputError(f"each of kept of stage {stage.name!r} once", ", ".join(stage.kept), "Remove the second.")
    if stage.learning_rate is not None and not 0 < stage.learning_rate < math.inf:
        raise InputError(f"a learning_rate above 0 of stage {stage.name!r}", repr(stage.learning_rate), "Correct it.")
    if not 0 <= stage.earlier_share <= 0.5:
        raise InputError(f"an earlier_share from 0 to 0.5 of stage {stage.name!r}", repr(stage.earlier_share), "Correct it.")
    for task, success in stage.expected.items():
        if not 0 <= success <= 1:
            expected = f"an expected success of {task!r} from 0 to 1 in stage {stage.name!r}"
            raise InputError(expected, repr(success), "Correct it.")


def check_options(owner: str, options: Mapping[str, Any]) -> None:
    """Whether `engine`, or a plug-in by `kind.name`, takes these options. Raises InputError."""
    kind, _, name = owner.partition(".")
    if owner == "engine":
        from_data(EngineOptions, dict(options))
    else:
        catalog.create(kind, name, dict(options))
