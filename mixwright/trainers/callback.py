"""Steering for a trainer class of your own: a callback, a live dataset and watched reward functions.

    steering = SteeringCallback("plan.yaml", dataset, [reward], args)
    trainer = MyGRPOTrainer(model, steering.reward_funcs, args, steering.train_dataset, callbacks=[steering])
    steering.trainer = trainer  # optional: lets beta be moved, and KL and entropy be seen

Only public parts of TRL are used. A refused group gets None from every reward function, of which TRL warns. The stream has
no length, so `max_steps` must be set; shuffling must be off, or a buffer would stand between drawing and training.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from datasets import IterableDataset
from torch import nn
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from mixwright.errors import InputError
from mixwright.skeleton import skeleton
from mixwright.trainers._canaries import is_async
from mixwright.trainers._draws import SteeredSampler
from mixwright.trainers._hooks import SteeringHooks
from mixwright.trainers._rewards import group_rows, permute, weighted_sum
from mixwright.trainers._selftest import check_draws
from mixwright.trainers._steering import INDEX, Steering, indexed, make_run, pool_of, read_steering
from mixwright.trainers._trainer import measured
from mixwright.trainers.grpo import group_outcomes, text_of

if TYPE_CHECKING:
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig


class SteeringCallback(SteeringHooks):
    """Runs beside any GRPO trainer that takes TRL's arguments. Canaries are off: it does not hold the model.

    Args:
        steering: True, the path of a plan.yaml, or a `Steering`.
        dataset: the training data, map-style.
        reward_funcs: the reward functions, synchronous.
        args: the trainer's GRPOConfig.

    Raises:
        InputError: a plan that does not fit, a reward that cannot be watched, or settings under which a process would see
            only parts of groups.
    """

    def __init__(
        self,
        steering: Steering | str | Path | bool,
        dataset: Dataset,
        reward_funcs: Callable[..., Any] | Sequence[Callable[..., Any]],
        args: GRPOConfig,
    ) -> None:
        wanted = read_steering(steering) or Steering()
        functions = list(reward_funcs) if isinstance(reward_funcs, Sequence) else [reward_funcs]
        _refuse(functions, args)
        self.steering, self.args, self._functions = wanted, args, functions
        self.trainer: Any = None
        """The trainer, if you want beta moved and KL and entropy seen."""
        rows = indexed(dataset, "SteeringCallback")
        pool = pool_of(rows, wanted)
        main = PartialState().is_main_process
        run = make_run(wanted, pool, objective="grpo", args=args, beta=float(args.beta), main=main)
        super().__init__(
            run,
            micro_steps=int(args.steps_per_generation or 1) * args.num_iterations,
            begin=self._begin,
            hand_in=lambda step: None,
            watch=lambda step: None,
            measured=lambda count: measured(self.trainer, count),
            args=args,
        )
        self.reward_funcs = [self._watched(place, function) for place, function in enumerate(functions)]
        """What the trainer is given instead of your reward functions."""
        self.train_dataset = IterableDataset.from_generator(_stream, gen_kwargs={"source": _Source(run.log, rows)})
        """What the trainer is given instead of your dataset: rows are drawn when they are asked for."""
        self._weights = torch.tensor(args.reward_weights or [1.0] * len(functions))
        self._columns: list[list[float | None]] = []

    def last_checkpoint(self) -> str | None:
        """The last checkpoint that can be resumed, to be given to `train`; None, with a warning, when there is none.

        `resume_from_checkpoint=True` would take the last folder, whole or not. Raises InputError when there are checkpoints
        and none of them can be resumed.
        """
        folder = self.checkpoints.choose(True)
        return None if folder is None else str(folder)

    def _begin(self, step: int) -> None:
        """A fresh start, or the state of the checkpoint that the trainer has resumed from; then the start-up checks."""
        self.resume(self.checkpoints.choose(f"{self.args.output_dir}/{PREFIX_CHECKPOINT_DIR}-{step}" if step else None))
        size = int(self.args.num_generations or 1)
        batch = int(self.args.generation_batch_size or size) // size
        served = int(self.args.steps_per_generation or 1) * self.args.num_iterations
        sampler = SteeredSampler(self.run.log, 2 * batch, batch_size=batch, mini_repeat_count=size, repeat_count=served)
        self.run.checks = check_draws(self.run, sampler)
        self._move_beta()

    def _watched(self, place: int, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` under its own name; the first one called judges and steers for all of them."""

        @functools.wraps(function)
        def watched(**given: Any) -> list[float | None]:
            rows = given.pop(INDEX, None)
            if rows is None:  # evaluation data carries no row numbers
                return function(**given)
            if place == 0:
                self._columns = self._judge(rows, given)
            return self._columns[place]

        return watched

    def _judge(self, rows: Sequence[int], given: dict[str, Any]) -> list[list[float | None]]:
        """All reward functions on this process's completions: observed over all processes, then refused or permuted."""
        size = int(self.args.num_generations or 1)
        columns = [[torch.nan if r is None else float(r) for r in function(**given)] for function in self._functions]
        table = torch.tensor(columns).T
        groups = group_rows(rows, size)
        lengths = [len(ids) for ids in given["completion_ids"]]
        formats = [skeleton(text_of(completion)) for completion in given["completions"]]
        totals = weighted_sum(table, self._weights).tolist()
        step = given["trainer_state"].global_step
        outcomes = gather_object(group_outcomes(self.run.pool, groups, totals, lengths, formats, step))
        kl, entropy = self.last
        self.last = (None, None)
        batch = self.run.batches
        count = len(gather_object(groups))
        refused = self.run.observe(step, outcomes, rows=count, completions=count * size, kl=kl, entropy=entropy)
        self._move_beta()
        for name, value in self.run.drain_metrics().items():
            given["log_metric"](name, value)
        if self.steering.permute_rewards:
            table = permute(table, size, (self.args.seed, batch, PartialState().process_index))
        out = [self.run.pool.ids[row] in refused for row in groups]
        return [
            [None if out[place // size] or value != value else value for place, value in enumerate(column)]
            for column in table.T.tolist()
        ]

    def _move_beta(self) -> None:
        if self.trainer is not None and self.trainer.beta > 0:
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
        yield source.rows[source.log.read(position, 1)[0]]
        position += 1


def _refuse(functions: Sequence[Any], args: GRPOConfig) -> None:
    """Raises InputError for what cannot be watched through public hooks."""
    for function in functions:
        if isinstance(function, str | nn.Module) or is_async(function):
            raise InputError(
                "synchronous reward functions", type(function).__name__, "Wrap it in one, or use SteeredGRPOTrainer."
            )
    if args.shuffle_dataset:
        raise InputError("GRPOConfig(shuffle_dataset=False)", "True", "The order of rows is what steering decides.")
    if getattr(args, "enable_jit_checkpoint", False):
        raise InputError(
            "GRPOConfig(enable_jit_checkpoint=False)", "True", "Only SteeredGRPOTrainer can align a save on SIGTERM."
        )
    if args.max_steps <= 0:
        raise InputError("GRPOConfig(max_steps=...)", str(args.max_steps), "A live stream has no length; set it.")
    local = args.per_device_train_batch_size * int(args.steps_per_generation or 1)
    if local % int(args.num_generations or 1):
        raise InputError(
            "per_device_train_batch_size * steps_per_generation to be a multiple of num_generations",
            f"{local} and {args.num_generations}",
            "Reward functions would see parts of groups; change one of them or use SteeredGRPOTrainer.",
        )
