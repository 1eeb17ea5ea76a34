"""Third checkpoint of a comparison: what another checkpoint, trained from the same one, did to the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from mixwright.run.folder import RunFolder


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


def shorten_paths(paths: Sequence[str]) -> list[str]:
    """Last parts of paths, more of them where two end alike."""
    longest = max(len(PurePath(path).parts) for path in paths)
    for part_count in range(1, longest + 1):
        names = [str(PurePath(*PurePath(path).parts[-part_count:])) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)
