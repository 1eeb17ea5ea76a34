"""Steering for a trainer class of your own: a callback, a live dataset and watched reward functions.

    steering = SteeringCallback("plan.yaml", dataset, [reward], args)
    trainer = MyGRPOTrainer(model, steering.reward_funcs, args, steering.train_dataset, callbacks=[steering])
    steering.trainer = trainer  # optional: lets beta be moved, and KL and entropy be seen

Only public parts of TRL are used: the class may patch or replace the trainer's insides, as long as it calls the reward
functions once per generation batch with the dataset's columns, and leaves a completion that none of them scores out.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType, gather_object
from datasets import IterableDataset
from torch import nn
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from mixwright.errors import InputError
from mixwright.run.folder import check_regular
from mixwright.trainers.checks import refuse, refuse_unresumable, warn_at_start
from mixwright.trainers.hooks import SteeringHooks
from mixwright.trainers.resume import TRAINER_STATE
from mixwright.trainers.rewards import (
    is_async,
    limit_and_check,
    mask_refused,
    read_completions,
    refuse_weights,
    reward_name,
    reward_names,
)
from mixwright.trainers.steered_trainer import DEEPSPEED_REASON
from mixwright.trainers.steering import (
    INDEX_COLUMN,
    SteeringConfig,
    make_dataset_pool,
    make_run,
    read_steering,
    with_row_numbers,
)

if TYPE_CHECKING:
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig


class SteeringCallback(SteeringHooks):
    """Runs beside any GRPO trainer that takes TRL's arguments.

    What is lost against `SteeredGRPOTrainer`: canaries, and with them what reads them (drift at beta 0, forgetting); silent
    refusals (a refused group gets None from every reward function, of which TRL warns each time); the check, at each
    refusal, that a refused group has advantage 0; async rewards and reward models; groups split over processes;
    epochs (a stream has no length: `max_steps` must be set) and `shuffle_dataset` (a buffer would stand between
    drawing and training).

    Its attribute `trainer` may be set to the trainer, if you want beta moved and KL and entropy seen.

    Args:
        steering: True, the path of a plan.yaml, or a `SteeringConfig`.
        dataset: the training data, map-style.
        reward_funcs: the reward functions, synchronous.
        args: the trainer's GRPOConfig.

    Raises:
        InputError: a plan that does not fit, a reward that cannot be watched, or settings under which a process would see
            only parts of groups; in training, a trainer that does not use this object's `reward_funcs` and `train_dataset`.
    """

    def __init__(
        self,
        steering: SteeringConfig | str | Path | bool,
        dataset: Dataset,
        reward_funcs: Callable[..., Any] | Sequence[Callable[..., Any]],
        args: GRPOConfig,
    ) -> None:
        config = read_steering(steering)
        if config is None:
            raise InputError("steering with a SteeringCallback", "none", "Remove the callback.")
        functions = list(reward_funcs) if isinstance(reward_funcs, Sequence) else [reward_funcs]
        _refuse(functions, args)
        self._weights = torch.tensor(args.reward_weights or [1.0] * len(functions))
        refuse_weights(self._weights, functions)
        self.steering, self.args, self._functions = config, args, functions
        rows = with_row_numbers(dataset, "SteeringCallback")
        pool = make_dataset_pool(rows, config)
        is_main = PartialState().is_main_process
        is_sharded = bool(args.deepspeed) or PartialState().distributed_type == DistributedType.DEEPSPEED
        reason = DEEPSPEED_REASON if is_sharded else ""
        run = make_run(config, pool, objective="grpo", args=args, beta=float(args.beta), lr_reason=reason, is_main=is_main)
        run.reward_range.names = reward_names(functions)
        super().__init__(run, args, micro_steps=int(args.steps_per_generation or 1) * args.num_iterations)
        self.reward_funcs = [
            self._steered_reward_func(function_index, function) for function_index, function in enumerate(functions)
        ]
        """What the trainer is given instead of your reward functions."""
        self.train_dataset = IterableDataset.from_generator(_stream, gen_kwargs={"source": _Source(run.draws, rows)})
        """What the trainer is given instead of your dataset: rows are drawn when they are asked for."""
        self._reward_columns: list[list[float | None]] = []
        self._functions_due: set[int] = set()
        self._state: Any = None
        self._model: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """As the steered trainers'; the model tells training from evaluation, the state the step."""
        self._state, self._model = state, kwargs.get("model")
        super().on_train_begin(args, state, control, **kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """As the steered trainers'; a step without outcomes is one that was not steered."""
        if not self.run.batches:
            raise InputError(
                "a trainer that calls the reward functions of SteeringCallback",
                "a step without them",
                "Pass steering.reward_funcs instead of your own.",
            )
        return super().on_step_end(args, state, control, **kwargs)

    def last_checkpoint(self) -> str | None:
        """The last checkpoint that can be resumed, to be given to `train`; None, with a warning, when there is none.

        `resume_from_checkpoint=True` would take the last folder, whole or not. Raises InputError when there are checkpoints
        and none of them can be resumed.
        """
        folder = self.checkpoints.choose(True)
        return None if folder is None else str(folder)

    def begin(self, step: int) -> None:
        """A fresh start, or the state of the checkpoint that the trainer has resumed from."""
        folder = Path(str(self.args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{step}" if step else None
        self.resume(self.checkpoints.choose(folder))
        if folder is not None:
            check_regular(folder / TRAINER_STATE)
            log_history = json.loads((folder / TRAINER_STATE).read_text(encoding="utf-8"))["log_history"]
            if json.dumps(log_history) != json.dumps(self._state.log_history):
                remedy = "Resume from a checkpoint in output_dir, preferably with steering.last_checkpoint()."
                raise InputError(f"the trainer to have resumed from {folder.name} of output_dir", "another one", remedy)
        if not hasattr(self.trainer, "beta"):
            self.run.beta_reason = "SteeringCallback was not given the trainer (steering.trainer = trainer)"
        if self.run.batches == 0 and self.run.engine.canaries:
            self.run.note(
                0, "canaries off", "SteeringCallback does not generate, so the rows held out as canaries are not used"
            )
        warn_at_start(self.run, self.steering.plan)
        self._move_beta()

    def _steered_reward_func(self, function_index: int, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` under its own name; the first one called in a batch judges and steers for all of them."""

        @functools.wraps(function)
        def steered(**arguments: Any) -> list[float | None]:
            rows = arguments.pop(INDEX_COLUMN, None)
            if rows is None:  # evaluation data carries no row numbers
                if getattr(self._model, "training", False):
                    raise InputError(
                        "rows of steering.train_dataset in training",
                        "rows without their indices",
                        "Pass steering.train_dataset to the trainer, and keep its columns for the reward functions.",
                    )
                return function(**arguments)
            if function_index not in self._functions_due:
                self._reward_columns = self._judge(rows, arguments)
                self._functions_due = set(range(len(self._functions)))
            self._functions_due.remove(function_index)
            return self._reward_columns[function_index]

        steered.__name__ = reward_name(function)
        return steered

    def hand_in(self, step: int) -> None:
        """Do nothing: outcomes are handed in when the reward functions are called."""

    def watch(self, step: int) -> None:
        """Do nothing: no canaries are generated."""

    def _judge(self, rows: Sequence[int], arguments: dict[str, Any]) -> list[list[float | None]]:
        """All reward functions on this process's completions: observed over all processes, then refused or permuted."""
        group_size, pool, step = int(self.args.num_generations or 1), self.run.pool, self._state.global_step
        tasks = sorted({pool.tasks[pool.task_of[row]] for row in rows})
        functions = [
            limit_and_check(reward_func, self.steering, self.run, step, tasks, len(rows)) for reward_func in self._functions
        ]
        # read before reward functions run, which may change what they are given
        read = read_completions(pool, rows, arguments["completions"], arguments.get("completion_ids") or ())
        columns = [[torch.nan if reward is None else reward for reward in function(**arguments)] for function in functions]
        rewards = torch.tensor(gather_object(list(zip(*columns, strict=True))))
        permute = self.steering.permute_rewards
        judged = self.judge(rewards, self._weights, gather_object(read), group_size, step, permute=permute)
        self._move_beta()
        if "log_metric" in arguments:  # classes built on an older TRL have none; steps.jsonl has the same numbers
            for name, value in self.run.drain_metrics().items():
                arguments["log_metric"](name, value)
        first = PartialState().process_index * len(rows)
        own_rewards = mask_refused(*judged, group_size)[first : first + len(rows)]
        return [[None if value != value else value for value in column] for column in own_rewards.T.tolist()]

    def _move_beta(self) -> None:
        if getattr(self.trainer, "beta", 0.0) > 0:
            self.trainer.beta = self.run.beta


class _Source:
    """The draw log and the rows behind a stream, named for `datasets` by an id: it must not hash or copy a live run."""

    def __init__(self, log: Any, rows: Dataset) -> None:
        self.log, self.rows = log, rows

    def __reduce__(self) -> Any:
        return (str, (f"live stream {id(self)}",))


def _stream(source: _Source) -> Iterator[dict[str, Any]]:
    """Rows in drawn order, from the first draw of this training on, for ever."""
    position = 0
    while True:
        yield source.rows[source.log.read_or_draw(position, 1)[0]]
        position += 1


def _refuse(functions: Sequence[Any], args: GRPOConfig) -> None:
    """Raise InputError for what cannot be watched through public hooks."""
    refuse_unresumable(args)
    for function in functions:
        if isinstance(function, str | nn.Module) or is_async(function):
            raise InputError(
                "synchronous reward functions",
                type(function).__name__,
                "Wrap it in a synchronous function, or use SteeredGRPOTrainer.",
            )
    completions = args.per_device_train_batch_size * int(args.steps_per_generation or 1)
    splits_groups = completions % int(args.num_generations or 1)
    whole = "per_device_train_batch_size * steps_per_generation to be a multiple of num_generations"
    of_ours = "A worker process would sample from a copy of the run; SteeredGRPOTrainer samples in the main process."
    without_length, steps = "A live stream has no length, so set max_steps.", args.max_steps
    parts = "Otherwise reward functions see parts of groups. Change one of them, or use SteeredGRPOTrainer."
    seen = "Row indices must reach the reward functions."
    refuse(
        [
            (args.remove_unused_columns, "GRPOConfig(remove_unused_columns=False)", seen),
            (args.shuffle_dataset, "GRPOConfig(shuffle_dataset=False)", "Steering decides the order of rows."),
            (args.dataloader_num_workers, "GRPOConfig(dataloader_num_workers=0)", of_ours),
            (steps <= 0 and f"max_steps={steps}", "GRPOConfig(max_steps=...)", without_length),
            (splits_groups and f"{completions} and {args.num_generations}", whole, parts),
        ]
    )
