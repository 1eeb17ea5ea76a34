"""Base of the steered trainers: the run beside them, its hooks, its log lines, and resuming it."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any, ClassVar

import torch
import trl
from datasets import Dataset
from transformers import Trainer

from mixwright.errors import InputError
from mixwright.learner.settings import slow_settings
from mixwright.steer.beside.run import RunSteering
from mixwright.steer.pool import Pool
from mixwright.trainers.checks import PLAIN_PROMPTS, has_plain_prompts, refuse_settings
from mixwright.trainers.hooks import SteeringHooks
from mixwright.trainers.resume import finish_if_ended
from mixwright.trainers.sampler import SteeredSampler
from mixwright.trainers.steering import INDEX_COLUMN, SteeringConfig, make_run, read_steering, with_row_numbers

DEEPSPEED_REASON = "DeepSpeed runs its optimizer step inside backward, before the learning rate can be scaled"
"""Why the learning rate of a single step cannot be scaled there."""


class SteeredTrainer(Trainer):
    """Parent beside TRL's class; without a run it changes nothing."""

    OBJECTIVE: ClassVar[str]
    """Of TRL's trainer: grpo, sft or dpo."""
    EXTENDED_METHODS: ClassVar[tuple[str, ...]]
    """Methods of TRL's trainer that steering extends, besides two of all trainers. Without one of them TRL would train
    unsteered."""
    steered: RunSteering | None = None
    """The run; None without steering."""
    steering: SteeringConfig
    """What the user asked for."""
    hooks: SteeringHooks
    """The callback that executes decisions."""

    def __init__(self, *args: Any, steering: SteeringConfig | str | Path | bool | None = None, **kwargs: Any) -> None:
        """Make TRL's trainer, and where it is steered number its rows before, and put a run beside it.

        Raises:
            InputError: data that are no map-style dataset, are empty, or have images; a setting that cannot be steered.
        """
        config = read_steering(steering)
        if config is None:
            super().__init__(*args, **kwargs)
            return
        bound = inspect.signature(super().__init__).bind(*args, **kwargs)
        dataset = with_row_numbers(bound.arguments.get("train_dataset"), type(self).__name__)
        bound.arguments["train_dataset"] = dataset
        super().__init__(*bound.args, **bound.kwargs)
        refuse_settings(self.args, self.OBJECTIVE)
        self.steer_rows(config, dataset)

    def steer_rows(self, steering: SteeringConfig, dataset: Dataset) -> None:
        """Put a run beside this trainer, by `steer`.

        Args:
            steering: as read by `read_steering`.
            dataset: with row numbers, as given to TRL.

        Raises:
            InputError: data that cannot be steered, or a plan that does not fit them.
        """
        raise NotImplementedError

    def steer(self, steering: SteeringConfig, pool: Pool, rows: Dataset, *, beta: float, micro_steps: int) -> RunSteering:
        """Put a run beside this trainer, whose rows were `rows` before TRL prepared them.

        Raises:
            InputError: the plan does not fit, a setting cannot be steered, or this version of TRL has other methods.
        """
        for name in ("_get_train_sampler", "_set_signature_columns_if_needed", *self.EXTENDED_METHODS):
            if not hasattr(super(), name):
                remedy = "Install a TRL version within the range of Mixwright's pyproject.toml, or train with steering=None."
                raise InputError(f"a method {name} of TRL's trainer", f"none in TRL {trl.__version__}", remedy)
        advice = [PLAIN_PROMPTS] if has_plain_prompts(self.processing_class, rows) else []
        for sentence in (*slow_settings(self.args), *advice):
            logging.getLogger("mixwright").warning(sentence)
        self.steering = steering
        self.steered = make_run(
            steering,
            pool,
            objective=self.OBJECTIVE,
            args=self.args,
            beta=beta,
            lr_reason=DEEPSPEED_REASON if self.is_deepspeed_enabled else "",
            is_main=self.accelerator.is_main_process,
        )
        self.hooks = SteeringHooks(self.steered, self.args, micro_steps=micro_steps, trainer=self)
        self.add_callback(self.hooks)
        return self.steered

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; resuming also brings draws, evidence and coefficients back to the checkpoint.

        Raises:
            InputError: a checkpoint without steering state.
        """
        if self.steered is not None:
            self.hooks.checkpoints.output = Path(str(self.args.output_dir))  # it may have been changed since
            self.hooks.args = self.args
            folder = self.hooks.checkpoints.choose(resume_from_checkpoint)
            self.hooks.resume(folder)
            by_name = resume_from_checkpoint is not True
            resume_from_checkpoint = None
            if folder is not None:
                output = finish_if_ended(self, self.steered, folder, named_by_user=by_name)
                if output is not None:
                    return output
                resume_from_checkpoint = str(folder)
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As TRL's; the loss is kept until the optimiser's step."""
        loss = super().training_step(*args, **kwargs)
        if self.steered is not None:
            self.hooks.finite.losses.append(loss.detach())
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> Any:
        norm = super()._get_grad_norm(*args, **kwargs)
        if self.steered is not None:
            self.hooks.finite.gradient_norm = norm
        return norm

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """As TRL's, with the steering metrics."""
        if self.steered is not None and is_training(self):
            logs.update(self.steered.drain_metrics())
        super().log(logs, start_time)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        columns = self._signature_columns or []
        if self.steered is not None and INDEX_COLUMN not in columns:
            self._signature_columns = [*columns, INDEX_COLUMN]

    def _register_sampler(self, sampler: SteeredSampler) -> SteeredSampler:
        """The sampler of this training, known to the hooks."""
        self.hooks.sampler = sampler
        return sampler

    def begin_steering(self) -> None:
        """Called once before the first step."""

    def hand_in(self, step: int) -> None:
        """Called before each optimiser step: outcomes that have not been handed to the run yet."""


def is_training(trainer: Any) -> bool:
    """Whether the model is in train mode, which is how TRL itself tells training from evaluation."""
    return trainer.model.training
