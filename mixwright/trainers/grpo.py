"""GRPO as in TRL, steered: which rows are drawn, which groups may teach, and how hard the run is held back.

With `steering=None` it is TRL's own trainer, bit for bit. With steering, four methods are extended through `super()`:
the sampler draws, the rewards are seen, refused or permuted, the advantages are checked, the log gets our numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import broadcast_object_list, gather, gather_object
from torch.utils.data import Sampler
from trl.trainer.grpo_trainer import GRPOTrainer

from mixwright.records import GroupOutcome
from mixwright.skeleton import skeleton
from mixwright.trainers._canaries import CanaryPass, make_canaries
from mixwright.trainers._draws import SteeredSampler
from mixwright.trainers._hooks import SteeringHooks
from mixwright.trainers._refusals import GRPO_NAMES, check_names, no_lr_reason, refuse_dataloader
from mixwright.trainers._resume import load_run, save_run
from mixwright.trainers._rewards import group_rows, permute, refuse, weighted_sum
from mixwright.trainers._run import RunSteering
from mixwright.trainers._selftest import check_draws, check_refusal
from mixwright.trainers._steering import INDEX, Steering, indexed, make_run, pool_of, read_steering


class SteeredGRPOTrainer(GRPOTrainer):
    """TRL's `GRPOTrainer` with one more argument.

    Side effects of refusing a group, all TRL's own handling of unscorable completions: its rows have reward NaN in the
    completions table; `reward` and `rewards/*` means leave it out; `frac_reward_zero_std` does not count it; with
    `scale_rewards="batch"` or `normalize_then_sum` the other groups are scaled without it; its tokens still count in the
    denominator of the dapo and cispo losses; with beta > 0 the KL term still acts on it.

    Args:
        *args: as `GRPOTrainer` takes them.
        steering: None, True, the path of a plan.yaml, or a `Steering`.
        **kwargs: as `GRPOTrainer` takes them.

    Raises:
        InputError: a plan that does not fit the data, or a setting that cannot be steered.
    """

    def __init__(self, *args: Any, steering: Steering | str | Path | bool | None = None, **kwargs: Any) -> None:
        self.steered: RunSteering | None = None
        self.made_up_rewards: torch.Tensor | None = None
        self._refused_rows: torch.Tensor | None = None
        wanted = read_steering(steering)
        if wanted is None:
            super().__init__(*args, **kwargs)
            return
        check_names(GRPOTrainer, GRPO_NAMES)
        bound = inspect.signature(GRPOTrainer.__init__).bind(self, *args, **kwargs)
        dataset = indexed(bound.arguments.get("train_dataset"), "SteeredGRPOTrainer")
        pool = pool_of(dataset, wanted.columns)
        bound.arguments["train_dataset"] = dataset
        super().__init__(*bound.args[1:], **bound.kwargs)
        refuse_dataloader(self)
        self.steering = wanted
        self.steered = make_run(
            wanted,
            pool,
            objective="grpo",
            args=self.args,
            beta=self.beta,
            lr_reason=no_lr_reason(self),
            main=self.accelerator.is_main_process,
        )
        settings: Any = self.args
        self._canaries: CanaryPass | None = None
        self._hooks = SteeringHooks(
            self.steered,
            micro_steps=settings.steps_per_generation * self.num_iterations,
            begin=self._begin_steering,
            watch=self._watch,
            save=self._save_steering,
            measured=self._measured,
        )
        self.add_callback(self._hooks)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; resuming also brings draws, evidence and coefficients back to the checkpoint."""
        if self.steered is not None:
            start = load_run(self.steered, resume_from_checkpoint, str(self.args.output_dir))
            self._canaries = make_canaries(self, self.steered, self.steering)
            if self._canaries is not None and start is not None:
                self._canaries.start = [(tokens, logprobs) for tokens, logprobs in start]
            self.beta = self.steered.beta
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """As TRL's, with the steering metrics."""
        if self.steered is not None and _training(self):
            logs.update(self.steered.drain_metrics())
        super().log(logs, start_time)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if self.steered is not None and INDEX not in self._signature_columns:
            self._signature_columns = [*self._signature_columns, INDEX]

    def _get_train_sampler(self, dataset: Any = None) -> Sampler:
        theirs: Any = super()._get_train_sampler(dataset)
        if self.steered is None:
            return theirs
        self._hooks.sampler = SteeredSampler(
            self.steered.log,
            theirs.num_samples,
            batch_size=theirs.batch_size,
            mini_repeat_count=theirs.mini_repeat_count,
            repeat_count=theirs.repeat_count,
        )
        return self._hooks.sampler

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        if self._refused_rows is not None:
            local, rank = len(inputs), self.accelerator.process_index
            rows = self._refused_rows[rank * local : (rank + 1) * local]
            if bool((output["advantages"][rows] != 0).any()):
                raise RuntimeError("a refused group has advantages other than 0; stopped before it could teach")
            self._refused_rows = None
        return output

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        if self.made_up_rewards is not None:
            return self.made_up_rewards.to(self.accelerator.device)
        if self.steered is None or not _training(self):
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        device = self.accelerator.device
        rows = [{key: value for key, value in row.items() if key != INDEX} for row in inputs]
        rewards = super()._calculate_rewards(rows, prompts, completions, completion_ids_list)
        numbers = [[row[INDEX], len(ids)] for row, ids in zip(inputs, completion_ids_list, strict=True)]
        gathered: Any = gather(torch.tensor(numbers, device=device))
        indices, lengths = gathered.T.tolist()
        formats = gather_object([skeleton(_text(completion)) for completion in completions])
        return self._steer_rewards(self.steered, rewards, indices, lengths, formats)

    def _steer_rewards(
        self,
        run: RunSteering,
        rewards: torch.Tensor,
        indices: Sequence[int],
        lengths: Sequence[int],
        formats: Sequence[str],
    ) -> torch.Tensor:
        """Observe whole groups, refuse, permute; all arguments gathered over processes, in row order."""
        size, step = int(self.num_generations or 1), self.state.global_step
        rows = group_rows(indices, size)
        totals = weighted_sum(rewards, self.reward_weights).tolist()
        groups = group_outcomes(run.pool, rows, totals, lengths, formats, step)
        kl, entropy = self._hooks.last
        self._hooks.last = (None, None)
        batch = run.batches
        refused = run.observe(step, groups, rows=len(rows), kl=kl, entropy=entropy)
        self.beta = run.beta
        if self.steering.permute_rewards:
            rewards = permute(rewards, size, (self.args.seed, batch))
        out = [place for place, row in enumerate(rows) if run.pool.ids[row] in refused]
        if out:
            rewards = refuse(rewards, out, size)
            self._refused_rows = torch.isin(torch.arange(len(rewards)) // size, torch.tensor(out)).to(rewards.device)
        return rewards

    def _begin_steering(self, step: int) -> None:
        run = self.steered
        assert run is not None  # the hooks exist only under steering
        run.checks = [*check_draws(run, self._hooks.sampler), check_refusal(self)]
        if self._canaries is not None:
            run.charge(self._canaries.remember_start())
            if step == 0:
                self._watch(0)

    def _watch(self, step: int) -> None:
        run, every = self.steered, self.steering.canary_every
        if run is None or self._canaries is None or step % every:
            return
        result = broadcast_object_list([self._canaries.run(step)])[0]
        run.watch(step, result[0], rollouts=result[1])
        self.beta = run.beta

    def _save_steering(self, step: int) -> None:
        assert self.steered is not None
        save_run(self.steered, self._canaries, str(self.args.output_dir), step)

    def _measured(self, count: int) -> tuple[float | None, float | None]:
        """KL and entropy (nats per token) of the last `count` micro-steps, from TRL's own metrics."""
        found = [self._metrics["train"].get(name, [])[-count:] for name in ("kl", "entropy")]
        kl, entropy = (sum(values) / len(values) if values else None for values in found)
        return kl, entropy


def group_outcomes(
    pool: Any,
    rows: Sequence[int],
    totals: Sequence[float],
    lengths: Sequence[int],
    formats: Sequence[str],
    step: int,
) -> list[GroupOutcome]:
    """One outcome per group; completions that no reward function scored (NaN) are left out, and so are empty groups."""
    size = len(totals) // len(rows)
    outcomes = []
    for place, row in enumerate(rows):
        scored = [i for i in range(place * size, (place + 1) * size) if totals[i] == totals[i]]
        if not scored:
            continue
        cell = pool.cells[pool.cell_of[row]]
        outcomes.append(
            GroupOutcome(
                pool.ids[row],
                cell.task,
                cell.level,
                step,
                tuple(totals[i] for i in scored),
                tuple(lengths[i] for i in scored),
                tuple(formats[i] for i in scored),
            )
        )
    return outcomes


def _training(trainer: Any) -> bool:
    return trainer.model.training


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[-1].get("content") or "")
