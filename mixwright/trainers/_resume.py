"""What a steered run adds to a checkpoint, so that a resumed run draws and decides as if it had never stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

from mixwright.errors import InputError
from mixwright.runs import write_text
from mixwright.trainers._canaries import CanaryPass
from mixwright.trainers._run import RunSteering

NAME = "steering.json"
"""File in the checkpoint's folder."""


def save_run(run: RunSteering, canaries: CanaryPass | None, output_dir: str, step: int) -> None:
    """Write the run's state into the checkpoint of `step`, and draws and proof into the run's own folder."""
    run.write()
    if not run.files.write:
        return
    folder = Path(output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{step}"
    if folder.is_dir():
        state = run.state() | {"files": run.files.sizes(), "canaries": canaries.start if canaries else []}
        write_text(folder / NAME, json.dumps(state, allow_nan=False, default=float))


def load_run(run: RunSteering, resume: str | bool | None, output_dir: str) -> list[Any] | None:
    """Bring a run to where a checkpoint left it, or to a fresh start.

    Args:
        run: as constructed.
        resume: what `train` was given.
        output_dir: where the last checkpoint is looked for when `resume` is True.

    Returns:
        What the canaries remember of the start; None for a fresh start.

    Raises:
        InputError: the checkpoint has no steering state (it was made without steering), or it cannot be read.
    """
    if not resume:
        if run.batches:
            run.log.start = len(run.log)
        else:
            run.files.clear()
        return None
    folder = get_last_checkpoint(output_dir) if resume is True else resume
    if folder is None:
        return None  # TRL says what is missing
    path = Path(folder) / NAME
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        run.restore(state)
        run.files.cut(state["files"])
        return state["canaries"]
    except FileNotFoundError:
        raise InputError(
            "a checkpoint made under steering",
            f"no {NAME}",
            "Resume from another checkpoint or with steering=None.",
            file=path,
        ) from None
    except (json.JSONDecodeError, KeyError) as error:
        raise InputError("a whole steering state", repr(error), "Resume from an earlier checkpoint.", file=path) from None
