"""Folder of the answers that are kept while something is measured: dropped when nothing is left to do with them.

They are dropped last, after all that was made of them is written: a command that was stopped at any moment goes on from
them, and writes the rest again. Needs no torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

ANSWERS_FOLDER = "answers"
"""Where in the folder of a measuring they lie until it is finished."""
LEARNER_NAMES = ("before", "after")
"""What the files of the first two learners are called."""


def holds_answers_alone(folder: Path) -> bool:
    """Whether a folder holds kept answers and nothing else: a measuring was stopped there, and goes on."""
    return {path.name for path in folder.iterdir()} <= {ANSWERS_FOLDER, ".lock"} and (folder / ANSWERS_FOLDER).is_dir()


def was_stopped(folder: Path, file_names: Collection[str]) -> bool:
    """Whether the measuring of one checkpoint was stopped in a folder: its answers, dropped last, are there yet.

    Args:
        folder: of the measuring.
        file_names: names of what is written there before they are dropped; what begins with a point was being written.
    """
    kept_names = {path.name for path in (folder / ANSWERS_FOLDER).glob("*")}
    other_names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    return bool(kept_names) and kept_names <= {f"{LEARNER_NAMES[0]}.jsonl"} and other_names <= {ANSWERS_FOLDER, *file_names}


def drop_kept(folder: Path) -> None:
    """Remove the kept answers of a measuring that is finished."""
    shutil.rmtree(folder / ANSWERS_FOLDER, ignore_errors=True)
