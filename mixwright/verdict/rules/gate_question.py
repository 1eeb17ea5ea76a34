"""Question that the gate was last asked about a folder: what was protected, by which margin. The page answers it anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mixwright.estimates.looks import Look
from mixwright.records import RunManifest, from_data
from mixwright.run.folder import RunFolder, read_json, write_json

LOOK_SETTING = "look"
"""Name of the setting in a comparison's manifest that says at which look it ended."""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What `verdict --gate` was asked."""

    protect: tuple[str, ...] = ()
    """Tasks and cells that the user named; empty for what was mastered before."""
    each: bool = False
    """Every protected cell by itself."""
    margin: float | None = None
    """Mean loss over what was named that is to be excluded, a share."""
    look: Look | None = None
    """Which of the planned looks it was asked at; None where all items were measured at once."""
    rings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Groups of tasks with a bound of their own, and their tasks; a group without any has those of no other."""
    behaviours: tuple[str, ...] = ()
    """Behaviours that must not be lost, of `mixwright.behaviours.BEHAVIOURS`."""
    same: bool = False
    """Whether both are to be one model: a change of the margin is to be excluded in both directions."""


def question_file(run: RunFolder) -> Path:
    """Where the question stands."""
    return run.path / "gate.json"


def write_question(run: RunFolder, question: GateQuestion) -> None:
    """Note what the gate is asked, for the page."""
    write_json(question_file(run), question)


def read_question(run: RunFolder) -> GateQuestion | None:
    """What the gate was asked last; None where it was not.

    A folder that was measured in looks is always asked at the last of them, also where the file is lost: one that knew of no
    look would judge by narrower intervals than those that it was stopped by.

    Raises:
        InputError: a broken file, or a manifest that does not say which look it was.
    """
    path, look = question_file(run), _read_look(run)
    question = read_json(path, GateQuestion) if path.is_file() else None
    return question if look is None else replace(question or GateQuestion(), look=look)


def _read_look(run: RunFolder) -> Look | None:
    """The look that the manifest names; None where there were none."""
    noted = read_json(run.manifest, RunManifest).settings.get(LOOK_SETTING) if run.manifest.is_file() else None
    return None if noted is None else from_data(Look, noted, file=run.manifest)
