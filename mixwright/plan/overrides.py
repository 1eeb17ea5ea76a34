"""Overrides of a plan: fields of its stages that the user wants otherwise than the planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixwright.errors import InputError, unknown_name
from mixwright.plan.validate import check_options, validate_plan
from mixwright.records import Cell, Plan, Stage, from_data, to_data

STEERING_KINDS = ("selectors", "gates", "controllers", "monitors")
"""What steers, by kind of plug-in."""


def apply_overrides(plan: Plan, overrides: Mapping[str, Any]) -> Plan:
    """The plan with these fields in every stage; options are laid over plug-in by plug-in, everything else is replaced.

    Raises:
        InputError: a field that a stage does not have, or a value it cannot have.
    """
    if not overrides:
        return plan
    stages = tuple(_override_stage(stage, overrides) for stage in plan.stages)
    why = {f"stages.{number}.{name}": "set in plan.stage" for number in range(len(stages)) for name in overrides}
    # reasons about one of these fields, or a part of it, are no longer true; options are laid over, not replaced
    replaced_fields = [field for field in why if not field.endswith(".options")]
    kept_paths = [
        path for path in plan.why if not any(path == field or path.startswith(field + ".") for field in replaced_fields)
    ]
    return replace(plan, stages=stages, why={path: plan.why[path] for path in kept_paths} | why)


def check_overrides(overrides: Mapping[str, Any], cells: Sequence[Cell], objective: str) -> None:
    """Refuse what no plan of data with these cells could have, before anything is measured. Raises InputError."""
    if (objective_override := overrides.get("objective", objective)) != objective:
        raise InputError(
            f"the objective {objective} in plan.stage too", repr(objective_override), "Set only train.objective."
        )
    tasks = sorted({cell.task for cell in cells})
    bare_stage = Stage("set in plan.stage", "grpo", 1, {task: 1 / len(tasks) for task in tasks})
    plan = apply_overrides(Plan("any", (bare_stage,)), overrides)
    # Which plug-ins the planner will name is not known yet: options are tried one by one.
    validate_plan(replace(plan, stages=(replace(plan.stages[0], options={}),)), cells)
    check_levers(plan.stages[0].options, "plan.stage.options")


def check_levers(options_by_lever: Mapping[str, Any], setting: str) -> None:
    """Raise InputError unless each lever of a setting exists and takes the keyword arguments that are asked for."""
    for name, options in options_by_lever.items():
        if name != "engine" and name.partition(".")[0] not in STEERING_KINDS:
            known_names = ["engine", *(f"{kind}.NAME" for kind in STEERING_KINDS)]
            raise unknown_name(f"lever in {setting}", name, known_names)
        if not isinstance(options, Mapping):
            expected = f"{setting}: a mapping of keyword arguments under {name}"
            raise InputError(expected, repr(options)[:80], "Write it as {'kind.name': {'argument': value}}.")
        check_options(name, options)


def _override_stage(stage: Stage, overrides: Mapping[str, Any]) -> Stage:
    planned = to_data(stage)
    changed = dict(overrides)
    if isinstance(options := changed.get("options"), Mapping):
        planned_options = planned["options"]
        changed["options"] = planned_options | {
            name: planned_options.get(name, {}) | changes if isinstance(changes, Mapping) else changes
            for name, changes in options.items()
        }
    return from_data(Stage, planned | changed)
