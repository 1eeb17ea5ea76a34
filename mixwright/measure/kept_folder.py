"""Folder of the answers that are kept while something is measured: dropped when nothing is left to do with them.

They are dropped last, after all that was made of them is written: a command that was stopped at any moment goes on from
them, and writes the rest again. Needs no torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

FOLDER = "answers"
"""Where in the folder of a measuring they lie until it is finished."""
NAMES = ("before", "after")
"""What the files of the first two learners are called."""


def holds_answers_alone(folder: Path) -> bool:
    """Whether a folder holds kept answers and nothing else: a measuring was stopped there, and goes on."""
    return {path.name for path in folder.iterdir()} <= {FOLDER, ".lock"} and (folder / FOLDER).is_dir()


def was_stopped(folder: Path, made: Collection[str]) -> bool:
    """Whether the measuring of one checkpoint was stopped in a folder: its answers, dropped last, are there yet.

    Args:
        folder: of the measuring.
        made: names of what is written there before they are dropped; what begins with a point was being written.
    """
    kept = {path.name for path in (folder / FOLDER).glob("*")}
    others = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    return bool(kept) and kept <= {f"{NAMES[0]}.jsonl"} and others <= {FOLDER, *made}


def drop_kept(folder: Path) -> None:
    """Remove the kept answers of a measuring that is finished."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
