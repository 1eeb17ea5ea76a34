"""State that a steered run adds to a checkpoint, so that a resumed run goes on as if it had never stopped.

A kill may come at any time. So the state of step N is whole in `<folder>/saving/N` before TRL writes its first file of
checkpoint-N, and moves into the checkpoint when TRL has written its last and all processes are done. The moved state lists
the checkpoint's files: whoever finds it finds a whole checkpoint, or knows what is missing.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from transformers import TrainerState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, TrainOutput

from mixwright.errors import InputError
from mixwright.run.folder import write_text
from mixwright.steer.beside.run import RunSteering
from mixwright.steer.beside.state_file import REMEDY, read_state, write_state

STATE_FILE_STEM = "steering"
"""Files in the checkpoint's folder: steering.json and steering.npz."""
TRAINER_STATE = "trainer_state.json"


class Checkpoints:
    """The steering part of one run's checkpoints.

    Args:
        run: whose state is kept.
        output_dir: the trainer's.
    """

    def __init__(self, run: RunSteering, output_dir: str) -> None:
        self.run, self.output = run, Path(output_dir)
        self.saves = run.files.writes
        """Whether this process writes into checkpoints: the main one."""

    def stage_state(self, step: int, extra: Mapping[str, Any]) -> None:
        """Before TRL writes checkpoint `step`: put the state where a kill cannot separate it from that checkpoint.

        Args:
            step: optimiser steps done.
            extra: JSON-ready, handed back by `load`.
        """
        if self.saves:
            state = self.run.state() | {
                "step": step,
                "lines": self.run.files.sizes_and_checksums(),
                "random": self._random_files(),
                "extra": dict(extra),
            }
            # an older checkpoint of this number is about to be written over: it must not look whole half way through
            old_checkpoint = self.output / f"{PREFIX_CHECKPOINT_DIR}-{step}"
            for stale in [
                old_checkpoint / TRAINER_STATE,
                old_checkpoint / f"{STATE_FILE_STEM}.json",
                *old_checkpoint.glob("rng_state*.pth"),
            ]:
                stale.unlink(missing_ok=True)
            staged = self._staging_folder(step)
            shutil.rmtree(staged, ignore_errors=True)
            staged.mkdir(parents=True)
            write_state(staged, STATE_FILE_STEM, state)
        PartialState().wait_for_everyone()

    def move_state_in(self, step: int) -> None:
        """After TRL has written checkpoint `step`: move the state into it."""
        PartialState().wait_for_everyone()
        folder = self.output / f"{PREFIX_CHECKPOINT_DIR}-{step}"
        if self.saves and not folder.is_dir():
            raise RuntimeError(f"the checkpoint of step {step} is not in {self.output}: it would have no steering state")
        if self.saves:
            self._move_state(folder, step)
            shutil.rmtree(self.run.files.folder / "saving", ignore_errors=True)
        self.run.write()

    def choose(self, resume: str | Path | bool | None) -> Path | None:
        """The checkpoint to resume from, the same on every process; None to start from the beginning.

        Args:
            resume: what `train` was given. True takes the last whole checkpoint, and starts from the beginning with a
                warning when no save was ever finished.

        Raises:
            InputError: the named checkpoint is not whole, or there are checkpoints and none of them can be resumed.
        """
        if not resume:
            return None
        if resume is not True:
            folder = Path(resume)
            (reason,) = broadcast_object_list([self.find_problem(folder)])
            if reason:
                got = f"one that cannot be resumed: {reason}"
                raise InputError("a complete checkpoint of a steered run", got, REMEDY, file=folder)
            return folder
        folders = self.list_folders()
        reasons = [self.find_problem(folder) or self._why_passed_over(folder) for folder in folders]
        folders, reasons = broadcast_object_list([folders, reasons])  # a shared disk may show each process another list
        count = next((place for place, reason in enumerate(reasons) if not reason), len(folders))
        passed_over = "; ".join(
            f"{folder.name} ({reason})" for folder, reason in zip(folders[:count], reasons, strict=False)
        )
        logger = logging.getLogger("mixwright")
        if count < len(folders):
            if passed_over and self.saves:
                logger.warning("Resuming from %s; skipped: %s.", folders[count].name, passed_over)
            return folders[count]
        for folder in folders:
            if (folder / TRAINER_STATE).exists() and not self._staging_folder(_step(folder)).exists():
                remedy = "Name one with resume_from_checkpoint=..., or move them away to start over."
                raise InputError("a checkpoint that can be resumed", passed_over[:600], remedy, file=self.output)
        if self.saves:
            message = "There is no finished checkpoint in %s%s, so training starts from the beginning."
            logger.warning(message, self.output, f" ({passed_over})" if passed_over else "")
        return None

    def load(self, folder: Path | None) -> dict[str, Any]:
        """Bring the run to where a checkpoint left it, or to a fresh start (None); returns `extra` of `stage_state`.

        Raises:
            InputError: the state does not fit the run, it cannot be read, or a run that has begun would start afresh.
        """
        run = self.run
        if folder is None:
            if run.batches:
                remedy = "Make a new trainer, or resume: train(resume_from_checkpoint=True)."
                raise InputError("a steered trainer that has not trained yet", "a second training", remedy)
            run.files.clear()
            return {}
        if self.saves:
            for unmoved in self.list_folders():  # saved whole, but killed before its state was moved in
                if not _state_file(unmoved).exists() and not self.find_problem(unmoved):
                    self._move_state(unmoved, _step(unmoved))
        PartialState().wait_for_everyone()
        state = read_state(folder, STATE_FILE_STEM)
        try:
            run.restore(state)
            self._warn(folder, state)
            run.files.truncate_to(state["lines"])
            if run.files.writes:
                message = "Resumed from %s, with its %d samples, evidence and coefficients."
                logging.getLogger("mixwright").warning(message, folder.name, len(run.draws))
            return state["extra"]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError("a complete steering state", repr(error), REMEDY, file=_state_file(folder)) from None

    def list_folders(self) -> list[Path]:
        """Checkpoint folders of the output folder, newest step first."""
        folders = [path for path in self.output.glob(f"{PREFIX_CHECKPOINT_DIR}-*") if path.is_dir() and _step(path) >= 0]
        return sorted(folders, key=_step, reverse=True)

    def find_problem(self, folder: Path) -> str:
        """Why a checkpoint cannot be resumed; empty when it is whole."""
        if not folder.is_dir():
            return "no such folder"
        if (step := _saved_step(folder)) is None:
            return f"{TRAINER_STATE} is missing or incomplete, so the save was interrupted"
        state_folder = self._state_folder(folder)
        if not _state_file(state_folder).exists():
            return f"{_state_file(folder).name} is missing, so it was made without steering"
        try:
            state = read_state(state_folder, STATE_FILE_STEM, arrays=False)
            if state.get("step") != step:
                return f"its steering state is from step {state.get('step')}, its {TRAINER_STATE} from step {step}"
            for name, size in state.get("inventory", {}).items():
                if not (folder / name).is_file() or (folder / name).stat().st_size != size:
                    return f"{name} is missing or has changed"
            for name in state["random"]:
                if not (folder / name).is_file() or not zipfile.is_zipfile(folder / name):  # a pipe would be waited for
                    return f"{name} is missing or incomplete: the save was interrupted, or made with save_only_model"
        except InputError as error:
            return error.got
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return f"its steering state is incomplete ({error!r})"
        return ""

    def last_whole(self, step: int) -> Path | None:
        """The newest checkpoint of at most `step` that can be resumed; None when there is none."""
        return next(
            (folder for folder in self.list_folders() if _step(folder) <= step and not self.find_problem(folder)), None
        )

    def _why_passed_over(self, folder: Path) -> str:
        """Why a whole checkpoint is not to be gone on from: the run was taken back, or overflowed, since."""
        lines = read_state(self._state_folder(folder), STATE_FILE_STEM, arrays=False)["lines"]
        if name := self.run.files.first_differing(lines):
            return f"{name} has changed since the checkpoint was saved"
        for decision in self.run.files.read_decisions_after(lines):
            last_good_name = decision.get("new") if decision.get("what") == "not finite" else None
            if last_good_name is not None and _step(folder) > _step(Path(last_good_name)):
                return f"its weights may not give finite numbers: at step {decision['step']}, {decision['because']}"
        return ""

    def _warn(self, folder: Path, state: Mapping[str, Any]) -> None:
        logger = logging.getLogger("mixwright")
        name = self.run.files.first_differing(state["lines"]) if self.run.files.writes else ""
        if name:
            logger.warning("%s differs from the copy in %s. Training continues with the current file.", name, folder.name)
        if sorted(state["random"]) != sorted(self._random_files()) and self.saves:
            logger.warning(
                "%s was saved by %d processes and is resumed by %d, so TRL cannot restore random states and "
                "completions differ from those of an uninterrupted run.",
                folder.name,
                len(state["random"]),
                PartialState().num_processes,
            )
        if not state["extra"].get("whole", True) and self.saves:
            logger.warning(
                "%s was saved in the middle of a generation batch, because the run ended there. The batch is generated "
                "again, and its outcomes count twice.",
                folder.name,
            )

    def _move_state(self, folder: Path, step: int) -> None:
        """Move the staged state into a checkpoint, its JSON last, with the sizes of the files that stand there."""
        staged = self._staging_folder(step)
        state = read_state(staged, STATE_FILE_STEM, arrays=False)
        shutil.copyfile(staged / f"{STATE_FILE_STEM}.npz", folder / f"{STATE_FILE_STEM}.npz")
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != _state_file(folder)]
        inventory = {str(path.relative_to(folder)): path.stat().st_size for path in files}
        write_text(_state_file(folder), json.dumps(state | {"inventory": inventory}, allow_nan=False))
        shutil.rmtree(staged)

    def _state_folder(self, folder: Path) -> Path:
        """Folder with the state of a checkpoint: itself, or where the state was staged if it was not moved in."""
        return folder if _state_file(folder).exists() else self._staging_folder(_step(folder))

    def _staging_folder(self, step: int) -> Path:
        return self.run.files.folder / "saving" / str(step)

    def _random_files(self) -> list[str]:
        """Names of the files in which TRL keeps the random states of the processes."""
        count = PartialState().num_processes
        return ["rng_state.pth"] if count == 1 else [f"rng_state_{rank}.pth" for rank in range(count)]


def _state_file(folder: Path) -> Path:
    return folder / f"{STATE_FILE_STEM}.json"


def _step(folder: Path) -> int:
    """The step in a checkpoint's name; -1 when it has none."""
    number = folder.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _saved_step(folder: Path) -> int | None:
    """The step of a checkpoint as the trainer noted it; None where its note is not whole, or no file."""
    file = folder / TRAINER_STATE
    try:
        return json.loads(file.read_text(encoding="utf-8"))["global_step"] if file.is_file() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
    last_step = trainer.args.max_steps
    if last_step <= 0:
        last_step = state.max_steps if trainer.args.num_train_epochs <= state.num_train_epochs else math.inf
    if run.stop_reason and named_by_user and state.global_step < last_step:
        run.note(
            state.global_step, "stop lifted", f"resumed from {folder.name} by name; it had stopped because {run.stop_reason}"
        )
        run.stop_reason = ""
    if (state.global_step < last_step and not run.stop_reason) or trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
        return None
    best_checkpoint = state.best_model_checkpoint if trainer.args.load_best_model_at_end else None
    trainer._load_from_checkpoint(best_checkpoint if best_checkpoint and Path(best_checkpoint).is_dir() else str(folder))
    trainer.state = state
    run.write()
    if run.files.writes:
        reason = f"it was stopped: {run.stop_reason}" if run.stop_reason else "no steps are left"
        logging.getLogger("mixwright").warning("The run had ended at %s: %s. Nothing was trained.", folder.name, reason)
    return TrainOutput(state.global_step, 0.0, {})
