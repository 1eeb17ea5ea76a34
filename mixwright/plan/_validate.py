"""Does a plan fit the data it is to steer? Used wherever a plan meets a corpus: CLI, trainers, trial, engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixwright.catalog import listing
from mixwright.errors import InputError, unknown_name
from mixwright.records import Cell, Plan, Stage


def validate_plan(plan: Plan, cells: Sequence[Cell]) -> None:
    """Raise InputError unless `plan` can steer data with these cells.

    Tasks of the data that a stage gives no weight are not drawn in it, but for an anchor's share; tasks of
    the plan that the data lacks are refused.

    Raises:
        InputError: no stage, a task that the data lacks, weights that are not shares, a band or steps that make no sense,
            or a plug-in that does not exist.
    """
    if not plan.stages:
        raise InputError("a plan with at least one stage", "none", "Make one with `mixwright plan`.")
    tasks = {cell.task for cell in cells}
    named = [task for stage in plan.stages for task in (*stage.weights, *stage.bands)] + [cell.task for cell in plan.cells]
    for task in named:
        if task not in tasks:
            raise unknown_name("task in the data that the plan names", task, tasks)
    for stage in plan.stages:
        _validate_stage(stage)


def _validate_stage(stage: Stage) -> None:
    """Numbers and names of one stage."""
    weights = list(stage.weights.values())
    if not weights or any(not 0 <= w <= 1 for w in weights) or not math.isclose(sum(weights), 1, abs_tol=1e-3):
        got = f"sum {sum(weights):g}, least {min(weights, default=0):g}"
        raise InputError(f"weights of stage {stage.name!r} between 0 and 1, summing to 1", got, "Correct them.")
    for whose, band in {"": stage.band, **{f" for {task!r}": band for task, band in stage.bands.items()}}.items():
        if not 0 <= band[0] < band[1] <= 1:
            raise InputError(f"a band of stage {stage.name!r}{whose} with 0 <= low < high <= 1", repr(band), "Correct it.")
    if stage.steps < 1:
        raise InputError(f"at least 1 step in stage {stage.name!r}", str(stage.steps), "Correct it.")
    groups = {
        "mixtures": (stage.mixture,) if stage.mixture else (),
        "selectors": (stage.selector,),
        "gates": stage.gates,
        "controllers": stage.controllers,
        "monitors": stage.monitors,
    }
    for kind, names in groups.items():
        if len(set(names)) < len(names):
            raise InputError(f"each of the {kind} of stage {stage.name!r} once", ", ".join(names), "Remove the second.")
        for name in names:
            if name not in listing(kind):
                raise unknown_name(kind.rstrip("s"), name, listing(kind))
    used = {"engine", *(f"{kind}.{name}" for kind, names in groups.items() for name in names)}
    for key in stage.options:
        if key not in used:
            raise unknown_name(f"plug-in in the options of stage {stage.name!r}", key, used)
