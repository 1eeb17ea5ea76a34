"""Question that the gate was last asked about a folder: what was protected, by which margin. The page answers it anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mixwright.estimates.looks import Look
from mixwright.runs import RunFolder, read_json, write_json


@dataclass(frozen=True, slots=True)
class GateAsked:
    """What `verdict --gate` was asked."""

    protect: tuple[str, ...] = ()
    """Tasks and cells that the user named; empty for what was mastered before."""
    each: bool = False
    """Every protected cell by itself."""
    margin: float | None = None
    """Mean loss, a share, by which what was named is judged as one group."""
    look: Look | None = None
    """Which of the planned looks it was asked at; None where all items were measured at once."""


def asked_file(run: RunFolder) -> Path:
    """Where the question stands."""
    return run.path / "gate.json"


def write_asked(run: RunFolder, asked: GateAsked) -> None:
    """Note what the gate is asked, for the page."""
    write_json(asked_file(run), asked)


def asked_of(run: RunFolder) -> GateAsked | None:
    """What the gate was asked last; None where it was not. Raises InputError for a broken file."""
    path = asked_file(run)
    return read_json(path, GateAsked) if path.is_file() else None
