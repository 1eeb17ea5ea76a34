"""Verb `schema`: JSON schemas of the files that Mixwright reads and writes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from mixwright.verbs import output


def schema(kind: Annotated[Literal["run", "plan", "verdict"], typer.Argument(metavar="run|plan|verdict")]) -> dict[str, Any]:
    """Print the JSON schema of run.yaml, plan.yaml or verdict.json. For editors, and for programs that read them.

    Examples:
        >>> sorted(schema("plan")["required"])
        ['planner', 'stages']

    Args:
        kind: File to describe.
    """
    from pydantic import TypeAdapter

    from mixwright.config import RunConfig
    from mixwright.records import Plan, Verdict

    return TypeAdapter({"run": RunConfig, "plan": Plan, "verdict": Verdict}[kind]).json_schema()


def show(found: dict[str, Any]) -> None:
    """Print the schema."""
    output.out_json(found)
