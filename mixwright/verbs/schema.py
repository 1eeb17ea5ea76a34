"""Verb `schema`: JSON schemas of the files that Mixwright reads and writes, and of what `--json` prints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from mixwright.verbs import output

Kind = Literal["run", "plan", "verdict", "audit", "measure", "preview", "rewards", "diagnose", "review"]


def schema(kind: Annotated[Kind, typer.Argument(metavar="KIND")]) -> dict[str, Any]:
    """Print the JSON schema of a settings file or a result. For editors, and for programs that read --json.

    Examples:
        >>> sorted(schema("plan")["required"])
        ['planner', 'stages']

    Args:
        kind: run.yaml: run; plan.yaml: plan; verdict.json: verdict; JSON of other commands: audit, measure, preview,
            rewards, diagnose, review.
    """
    from pydantic import TypeAdapter, create_model

    from mixwright.audit.learnt import TaskFacts
    from mixwright.config import RunConfig
    from mixwright.records import Measurement, Observation, Plan, Verdict
    from mixwright.verbs.diagnose import Diagnosis
    from mixwright.verdict.review import Review

    observations = {"observations": (list[Observation], ...)}
    types: dict[str, Any] = {"run": RunConfig, "plan": Plan, "verdict": Verdict, "diagnose": Diagnosis, "review": Review}
    printed: dict[str, dict[str, Any]] = {
        "audit": observations,
        "measure": {"measurements": (list[Measurement], ...)},
        "preview": {"facts": (list[TaskFacts], ...), **observations},
        "rewards": {"read": (str, ...), "best_paid_form": (str, ...), **observations},
    }
    if kind in printed:
        types[kind] = create_model(kind, **printed[kind])
    return TypeAdapter(types[kind]).json_schema()


def show(found: dict[str, Any]) -> None:
    """Print the schema."""
    output.out_json(found)
