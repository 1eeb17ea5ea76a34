"""The callback that executes what was decided: learning-rate factor, skipped steps, stop, canaries, aligned saves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from mixwright.trainers._run import RunSteering


class SteeringHooks(TrainerCallback):
    """Runs beside a trainer; added by the steered trainers themselves.

    A skipped step drops the gradients (`None`, not zero): the optimiser then leaves weights, moments and step counts of
    every parameter alone, so Adam's momentum does not move them either. The scheduler still counts the step. Under a
    loss scaler gradients cannot be dropped; there the learning rate of that one step is 0 and the moments do see it.

    Args:
        run: what was decided.
        micro_steps: micro-steps that one generation batch feeds; saves wait for a multiple of it.
        begin: called once before the first step.
        hand_in: called before each optimiser step with the number of steps done; hands in outcomes collected since.
        watch: called after each step with its number; runs canaries when they are due.
        save: called with the checkpoint's folder.
        measured: gives (KL, entropy) in nats per token of the last `count` micro-steps, None where unknown.
    """

    def __init__(
        self,
        run: RunSteering,
        *,
        micro_steps: int,
        begin: Callable[[int], None],
        hand_in: Callable[[int], None],
        watch: Callable[[int], None],
        save: Callable[[int], None],
        measured: Callable[[int], tuple[float | None, float | None]],
    ) -> None:
        self.run, self.micro_steps = run, micro_steps
        self.begin, self.hand_in, self.watch, self.save, self.measured = begin, hand_in, watch, save, measured
        self.sampler: Any = None
        self.last: tuple[float | None, float | None] = (None, None)
        """KL and entropy of the last step, not yet handed to the engine."""
        self._micro = self._in_step = 0
        self._rates: list[float] | None = None
        self._save_waits = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Self-test, first canaries."""
        self._micro = self._in_step = 0
        self.begin(state.global_step)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Tell the sampler where the epoch's rows begin; a resumed epoch is served from its start and skipped through."""
        if self.sampler is not None:
            self.sampler.epoch = math.floor((state.epoch or 0.0) + 1e-6)

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count micro-steps."""
        self._micro += 1
        self._in_step += 1

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Scale the learning rate of this step, or drop its gradients."""
        self.hand_in(state.global_step)
        optimizer, factor = kwargs["optimizer"], self.run.lr_factor
        if self.run.skip:
            self.run.skipped()
            if getattr(optimizer, "scaler", None) is None:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        parameter.grad = None
            else:
                factor = 0.0
        if factor != 1.0:
            self._rates = [group["lr"] for group in optimizer.param_groups]
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * factor

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put the scheduled learning rate back before the scheduler reads it."""
        if self._rates is not None:
            for group, rate in zip(kwargs["optimizer"].param_groups, self._rates, strict=True):
                group["lr"] = rate
            self._rates = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Write lines, run canaries, stop if decided, and move a save to the end of the generation batch."""
        self._micro += 1
        self.last = self.measured(self._in_step + 1)
        self._in_step = 0
        self.watch(state.global_step)
        self.run.stepped(kl=self.last[0], entropy=self.last[1])
        if self.run.stop:
            control.should_training_stop = True
        last = control.should_training_stop or state.global_step >= state.max_steps
        whole = self._micro % self.micro_steps == 0
        if control.should_save and not whole and not last:
            control.should_save, self._save_waits = False, True
        elif self._save_waits and whole:
            control.should_save, self._save_waits = True, False
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """State beside the checkpoint."""
        self.save(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Draws and proof."""
        self.run.write()
