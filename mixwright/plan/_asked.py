"""What the user wants otherwise than the planner: fields of a plan's stages, laid over what was planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mixwright.records import Plan, Stage, from_data, to_data


def with_asked(plan: Plan, asked: Mapping[str, Any]) -> Plan:
    """The plan with these fields in every stage; options are laid over plug-in by plug-in, everything else is replaced.

    Raises:
        InputError: a field that a stage does not have, or a value it cannot have.
    """
    if not asked:
        return plan
    stages = tuple(_stage(stage, asked) for stage in plan.stages)
    why = {f"stages.{number}.{name}": "asked for in plan.stage" for number in range(len(stages)) for name in asked}
    kept = {path: reason for path, reason in plan.why.items() if not _under(path, why)}
    return replace(plan, stages=stages, why=kept | why)


def _stage(stage: Stage, asked: Mapping[str, Any]) -> Stage:
    planned = to_data(stage)
    changed = dict(asked)
    if isinstance(options := changed.get("options"), Mapping):
        before = planned["options"]
        changed["options"] = before | {
            name: before.get(name, {}) | given if isinstance(given, Mapping) else given for name, given in options.items()
        }
    return from_data(Stage, planned | changed)


def _under(path: str, fields: Mapping[str, str]) -> bool:
    """Whether a reason is about one of these fields, or a part of it."""
    return any(path == field or path.startswith(field + ".") for field in fields if not field.endswith(".options"))
