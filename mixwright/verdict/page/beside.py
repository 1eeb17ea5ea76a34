"""Third checkpoint of a comparison: what another checkpoint, trained from the same one, did to the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from mixwright.errors import InputError
from mixwright.estimates.outcome import Sides
from mixwright.run.folder import RunFolder, read_json
from mixwright.verdict.page.answers import BESIDE_NAME
from mixwright.verdict.rules.evidence import Evidence


@dataclass(frozen=True, slots=True)
class OtherCheckpoint:
    """Where the other checkpoint comes from."""

    name: str
    """Its path or name, as it was given."""
    folder: str
    """The comparison that measured it."""


def beside_file(run: RunFolder) -> Path:
    """Where it is noted."""
    return run.path / "beside.json"


@dataclass(frozen=True, slots=True)
class ThreeCheckpoints:
    """Three checkpoints measured on the same items."""

    names: tuple[str, str, str]
    """Of the start, of the other one and of the one that the page is about."""
    other: Sides
    """The start, and the other one."""
    after: Sides
    """The start, and the one that the page is about."""


def read_three_checkpoints(evidence: Evidence) -> ThreeCheckpoints | None:
    """The three checkpoints of a comparison; None where there is no third one. Raises InputError for broken files."""
    run, sides, manifest = evidence.run, evidence.sides, evidence.manifest
    path = beside_file(run)
    if sides is None or not path.is_file():
        return None
    table = run.measurements(BESIDE_NAME)
    if not table.is_file():
        raise InputError("the measurements of beside.json", "none", "Compare again.", file=table)
    after = str(manifest.settings.get("checkpoint after", "AFTER")) if manifest else "AFTER"
    paths = (manifest.parent if manifest else "BEFORE", read_json(path, OtherCheckpoint).name, after)
    return ThreeCheckpoints(shorten_paths(paths), (sides[0], [evidence.read_scores(table)]), sides)


def shorten_paths(paths: Sequence[str]) -> tuple[str, str, str]:
    """Last parts of three paths, more of them where two end alike."""
    before, beside, after = paths
    longest = max(len(PurePath(path).parts) for path in paths)
    for part_count in range(1, longest + 1):
        names = [str(PurePath(*PurePath(path).parts[-part_count:])) for path in (before, beside, after)]
        if len(set(names)) == len(set(paths)):
            return names[0], names[1], names[2]
    return before, beside, after
