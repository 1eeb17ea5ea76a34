"""Callback that executes what was decided: learning-rate factor, skipped steps, stop, aligned saves."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from mixwright.errors import InputError
from mixwright.steer.beside.run import RunSteering
from mixwright.trainers.checks import STEPS_BETWEEN_CHECKS, check_same_data, check_same_run
from mixwright.trainers.finite import FiniteGuard
from mixwright.trainers.resume import Checkpoints


class SteeringHooks(TrainerCallback):
    """Runs beside a trainer; added by the steered trainers themselves.

    A skipped step drops the gradients (`None`, not zero): the optimiser then leaves weights, moments and step counts of
    every parameter alone, so Adam's momentum does not move them either. The scheduler still counts the step. Under a
    loss scaler gradients cannot be dropped; there the learning rate of that one step is 0 and the moments do see it.

    Args:
        run: what was decided.
        args: the trainer's arguments: where and how it saves.
        micro_steps: micro-steps that one generation batch feeds; saves wait for a multiple of it.
        trainer: the steered trainer.
    """

    def __init__(self, run: RunSteering, args: Any, *, micro_steps: int, trainer: Any) -> None:
        self.run, self.args, self.micro_steps, self.trainer = run, args, micro_steps, trainer
        self.checkpoints = Checkpoints(run, args.output_dir)
        self.finite = FiniteGuard(run, self.checkpoints.last_whole)
        """Stops the run where a number is none."""
        self.sampler: Any = None
        self.last_kl: float | None = None
        """KL of the last step, not yet handed to the engine."""
        self._micro_steps_done = self._micro_steps_in_step = 0
        self._scheduled_rates: list[float] | None = None
        self._delayed_flags: set[str] = set()
        self._staged = -1
        self._saved_layout: list[int] = []
        """What the sampler of the checkpoint served, where there is one."""

    def resume(self, folder: Path | None) -> None:
        """Bring the run to a checkpoint, or to a fresh start (None)."""
        extra = self.checkpoints.load(folder)
        saved_steps, steps = extra.get("max_steps", self.args.max_steps), self.args.max_steps
        if saved_steps != steps and self.run.files.writes:
            message = "max_steps was %d and is now %d: learning rates that depend on the number of steps differ from before."
            logging.getLogger("mixwright").warning(message, saved_steps, steps)
        self.last_kl = extra.get("last", [None])[0]
        self._saved_layout = list(extra.get("served") or [])

    @property
    def batch_is_done(self) -> bool:
        """Whether all steps of the last generation batch are done."""
        return self._micro_steps_done % self.micro_steps == 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Check that the processes and a resumed run agree."""
        self._micro_steps_done = self._micro_steps_in_step = 0
        self._delayed_flags.clear()
        self._scheduled_rates = None
        self.finite.losses, self.finite.gradient_norm = [], None  # those of an interrupted step
        self.run.begin()
        check_same_data(self.run)
        layout = self._read_layout()
        if self._saved_layout and layout and self._saved_layout != layout:
            names = "rows per batch, completions per row, times each batch is used, rows per epoch"
            raise InputError(
                f"the batches of this run ({names}): {self._saved_layout}", str(layout), "Resume with the same batch sizes."
            )
        self.trainer.begin_steering()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Tell the sampler where the epoch's rows begin; a resumed epoch is served from its start and skipped through."""
        if self.sampler is not None:
            self.sampler.epoch = math.floor((state.epoch or 0.0) + 1e-6)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop before completions are generated with weights that are no numbers: torch cannot, and says less."""
        if self.run.objective == "grpo" and self.batch_is_done:
            self.finite.check_weights(state.global_step, kwargs["model"])

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count micro-steps."""
        self._micro_steps_done += 1
        self._micro_steps_in_step += 1

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop at numbers that are none; scale the learning rate of this step, or drop its gradients."""
        self.finite.check_step(state.global_step, kwargs["optimizer"])
        self.trainer.hand_in(state.global_step)
        optimizer, factor = kwargs["optimizer"], self.run.lr_factor
        if self.run.skips_step:
            self.run.count_skipped_step()
            if getattr(optimizer, "scaler", None) is None:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        parameter.grad = None
            else:
                factor = 0.0
        if factor != 1.0:
            self._scheduled_rates = [group["lr"] for group in optimizer.param_groups]
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * factor

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put the scheduled learning rate back before the scheduler reads it."""
        if self._scheduled_rates is not None:
            for group, rate in zip(kwargs["optimizer"].param_groups, self._scheduled_rates, strict=True):
                group["lr"] = rate
            self._scheduled_rates = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Write lines, stop if decided, and move a save to the end of the generation batch."""
        self._micro_steps_done += 1
        self.last_kl, entropy = read_kl_and_entropy(self.trainer, self._micro_steps_in_step + 1)
        self._micro_steps_in_step = 0
        self.run.finish_step(kl=self.last_kl, entropy=entropy)
        if self.run.stop_reason:
            control.should_training_stop = True
        self._align(args, state, control)
        if control.should_save:
            self._stage(state.global_step, kwargs)
        elif state.global_step % STEPS_BETWEEN_CHECKS == 0:
            check_same_run(self.run, state.global_step)
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """State before the checkpoint of `save_strategy="epoch"`."""
        if control.should_save:
            self._stage(state.global_step, kwargs)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """State before the checkpoint of `save_strategy="best"`: whether there will be one is not known here."""
        if args.save_strategy == "best":
            self._stage(state.global_step, kwargs)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """State into the checkpoint; written now if another callback ordered the save after ours was asked."""
        if self._staged != state.global_step:
            self._stage(state.global_step, kwargs)
        self.checkpoints.move_state_in(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Draws and proof."""
        self.finite.check_weights(state.global_step, kwargs["model"])
        check_same_run(self.run, state.global_step)
        self.run.write()
        skipped_steps = self.run.proof()["skipped_steps"]
        if state.is_world_process_zero and 2 * skipped_steps >= max(state.global_step, 1):
            why = "in none of their groups did rewards differ"
            logging.getLogger("mixwright").warning("%d of %d steps skipped: %s", skipped_steps, state.global_step, why)

    def _read_layout(self) -> list[int]:
        """Layout of the live sampler, which decides where each draw goes; empty without one."""
        names = ("batch_size", "mini_repeat_count", "repeat_count", "rows")
        return [] if self.sampler is None else [getattr(self.sampler, name) for name in names]

    def _stage(self, step: int, arguments: Mapping[str, Any]) -> None:
        self.finite.check_weights(step, arguments["model"])
        check_same_run(self.run, step)
        extra: dict[str, Any] = {"last": [self.last_kl], "whole": self.batch_is_done}
        extra |= {"served": self._read_layout(), "max_steps": self.args.max_steps}
        self.checkpoints.stage_state(step, extra)
        self._staged = step

    def _align(self, args: Any, state: Any, control: Any) -> None:
        """Saves wait for the end of the generation batch, or of the run; so do evaluations that choose a checkpoint."""
        is_last_step = control.should_training_stop or state.global_step >= state.max_steps
        flag_names = ["should_save"]
        if args.load_best_model_at_end or args.save_strategy == "best":
            flag_names.append("should_evaluate")
        for flag in flag_names:
            is_wanted = getattr(control, flag) or flag in self._delayed_flags
            setattr(control, flag, is_wanted and (self.batch_is_done or is_last_step))
            if is_wanted and not getattr(control, flag):
                self._delayed_flags.add(flag)
            else:
                self._delayed_flags.discard(flag)


def read_kl_and_entropy(trainer: Any, count: int) -> tuple[float | None, float | None]:
    """KL and entropy (nats per token) of the last `count` micro-steps; None for what it does not keep, or is no number."""
    metrics = getattr(trainer, "_metrics", {}).get("train", {})
    values_by_metric = [list(metrics.get(name, []))[-count:] for name in ("kl", "entropy")]
    kl, entropy = (
        sum(values) / len(values) if values and all(map(math.isfinite, values)) else None for values in values_by_metric
    )
    return kl, entropy
