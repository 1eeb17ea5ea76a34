"""Resumption of a run that had already ended: transformers would train one step more."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

from transformers import TrainerState
from transformers.trainer_utils import TrainOutput

from mixwright.steer.run.run import RunSteering
from mixwright.trainers.checkpoints.resume import TRAINER_STATE


def finish_if_ended(trainer: Any, run: RunSteering, folder: Path, *, named_by_user: bool) -> TrainOutput | None:
    """What `train` returns when a checkpoint, just restored, is the end of its run; None when steps are left.

    The trainer gets the checkpoint's weights (the best one's with `load_best_model_at_end`) and state. A run that was
    stopped by decision has ended too, unless somebody names its checkpoint: then it goes on, and decisions.jsonl says so.

    Args:
        trainer: not trained yet.
        run: as restored from the checkpoint.
        folder: the checkpoint.
        named_by_user: whether the user named it, rather than asking for the last one.
    """
    state = TrainerState.load_from_json(str(folder / TRAINER_STATE))
    steps = trainer.args.max_steps
    if steps <= 0:
        steps = state.max_steps if trainer.args.num_train_epochs <= state.num_train_epochs else math.inf
    if run.stop and named_by_user and state.global_step < steps:
        run.note(state.global_step, "stop lifted", f"resumed by name from {folder.name}; it had stopped because {run.stop}")
        run.stop = ""
    if (state.global_step < steps and not run.stop) or trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
        return None
    best = state.best_model_checkpoint if trainer.args.load_best_model_at_end else None
    trainer._load_from_checkpoint(best if best and Path(best).is_dir() else str(folder))
    trainer.state = state
    run.finish()
    run.write()
    if run.files.write:
        why = f"it was stopped: {run.stop}" if run.stop else "no step is left"
        logging.getLogger("mixwright").warning("The run had ended at %s: %s. Nothing was trained.", folder.name, why)
    return TrainOutput(state.global_step, 0.0, {})
