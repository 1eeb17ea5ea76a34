"""Folders of answers that are kept, so that nothing is written twice. Needs no torch.

`measure`, `plan` and `verdict` of a checkpoint keep what a model answered in the store, for each other and for later: a
command that was stopped goes on from there. A run keeps the answers of its own models while it measures them, and drops
them last, after all that was made of them is written.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ANSWERS_FOLDER = "answers"
"""Where in a run folder they lie until the models are measured."""
STORE_VARIABLE = "MIXWRIGHT_STORE"
"""Names another folder than `.mixwright` in the current one."""


def find_store() -> Path:
    """Return the folder of what is kept for later commands. All of it can be deleted at any time."""
    return Path(os.environ.get(STORE_VARIABLE) or ".mixwright")


def drop_kept(folder: Path) -> None:
    """Remove the kept answers of a run whose models are measured."""
    shutil.rmtree(folder / ANSWERS_FOLDER, ignore_errors=True)
