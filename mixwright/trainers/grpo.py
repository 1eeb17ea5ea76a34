"""Trainer for GRPO as in TRL, steered: which rows are drawn, which groups may change the weights, and the KL penalty.

With `steering=None` it is TRL's own trainer, bit for bit. With steering, four methods are extended through `super()`:
the sampler draws, the rewards are seen, refused or permuted, the advantages are checked, the log gets our numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch.utils.data import Sampler
from trl.trainer.grpo_trainer import GRPOTrainer

from mixwright.trainers.rewards import (
    group_outcomes,
    limit_and_check,
    permute_in_groups,
    read_completions,
    refuse_weights,
    reward_name,
    sum_checked,
)
from mixwright.trainers.sampler import SteeredSampler
from mixwright.trainers.steered_trainer import SteeredTrainer, is_training
from mixwright.trainers.steering import INDEX_COLUMN, SteeringConfig, make_dataset_pool

NO_PROBABILITY_MESSAGE = "probability tensor contains"
"""In torch's error when it is to sample from probabilities that are no numbers."""


@dataclass
class GenerationBatch:
    """What is known of one generation batch while TRL generates and scores it, which calls us back in between."""

    rows: Sequence[int] = ()
    """Pool index of each completion in this process; none in an evaluation."""
    generated: bool = False
    """Whether the completions are there."""
    refused: torch.Tensor | None = None
    """Whether each completion, over all processes, is of a refused group; None before they are judged."""


class SteeredGRPOTrainer(SteeredTrainer, GRPOTrainer):
    """TRL's `GRPOTrainer` with one more argument.

    The plan decides the order of rows, whatever `shuffle_dataset` says. Steering judges a group by its weighted sums of
    rewards, whatever `multi_objective_aggregation` makes of them, and counts what `mask_truncated_completions` masks.
    Completions without a finite reward are left out of a group; all completions are charged.

    Side effects of refusing a group, all TRL's own handling of unscorable completions: its advantages are exactly 0; its
    rows have reward NaN in the completions table; `reward` and `rewards/*` leave it out; `frac_reward_zero_std` counts it
    as a group with spread; with `scale_rewards="batch"` or `normalize_then_sum` the other groups are scaled without it; its
    completions still count in the denominator of every loss, so the step is smaller by its share; terms that know no
    advantage still act on it: KL (beta > 0), entropy bonus, and a mixture of experts' balance.

    Args:
        *args: as `GRPOTrainer` takes them.
        steering: None, True, the path of a plan.yaml, or a `SteeringConfig`.
        **kwargs: as `GRPOTrainer` takes them.

    Raises:
        InputError: a plan that does not fit the data, or a setting that cannot be steered (a stream, images, an environment
            without rows, batches dispatched or split by accelerate).
    """

    OBJECTIVE, EXTENDED_METHODS = "grpo", ("_calculate_rewards", "_generate_and_score_completions")
    _batch: GenerationBatch

    def steer_rows(self, steering: SteeringConfig, dataset: Dataset) -> None:
        """Put a run beside this trainer."""
        refuse_weights(self.reward_weights, self.reward_funcs)
        settings: Any = self.args
        micro_steps, pool = settings.steps_per_generation * self.num_iterations, make_dataset_pool(dataset, steering)
        run = self.steer(steering, pool, dataset, beta=self.beta, micro_steps=micro_steps)
        run.reward_names = list(map(reward_name, self.reward_funcs))

    def _get_train_sampler(self, dataset: Any = None) -> Sampler:  # pyright: ignore[reportIncompatibleMethodOverride] - TRL's
        trl_sampler: Any = super()._get_train_sampler(dataset)
        if self.steered is None:
            return trl_sampler
        return self._register_sampler(
            SteeredSampler(
                self.steered.draws,
                trl_sampler.num_samples,
                batch_size=trl_sampler.batch_size,
                mini_repeat_count=trl_sampler.mini_repeat_count,
                repeat_count=trl_sampler.repeat_count,
            )
        )

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        if self.steered is None:
            return super()._generate_and_score_completions(inputs)
        self._batch = batch = GenerationBatch([row[INDEX_COLUMN] for row in inputs] if is_training(self) else ())
        inputs_of_trl = [{key: value for key, value in row.items() if key != INDEX_COLUMN} for row in inputs]
        try:
            output = super()._generate_and_score_completions(inputs_of_trl)
        except RuntimeError as error:  # weights whose probabilities are no numbers stop the run as other such numbers do
            if not batch.generated and NO_PROBABILITY_MESSAGE in str(error):
                self.hooks.finite.stop(self.state.global_step, "probability of a token", "no completion could be generated")
            raise
        if batch.refused is not None:
            rows_per_process, rank = len(inputs), self.accelerator.process_index
            own = batch.refused[rank * rows_per_process : (rank + 1) * rows_per_process]
            if bool((output["advantages"][own] != 0).any()):
                raise RuntimeError("a refused group has advantages other than 0; stopped before the step")
        return output

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        if self.steered is None:
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        run, batch = self.steered, self._batch
        batch.generated = True
        # read before reward functions run, which may change what they are given, and the model's mode
        in_training, step = is_training(self), self.state.global_step
        read = read_completions(batch.rows, completions) if in_training else []
        tasks = sorted({run.pool.tasks[run.pool.task_of[row]] for row in batch.rows}) or ["of the evaluation"]
        user_reward_funcs = self.reward_funcs
        self.reward_funcs = [
            limit_and_check(reward_func, self.steering, run, step, tasks, len(prompts)) for reward_func in user_reward_funcs
        ]
        try:
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        finally:
            self.reward_funcs = user_reward_funcs
        if not in_training:
            return rewards
        # of all processes, in row order, so that whole groups are observed
        read, group_size = gather_object(read), int(self.num_generations or 1)
        rows = [completion.row for completion in read]
        totals = sum_checked(rewards, self.reward_weights, run, rows)
        groups = group_outcomes(run.pool, read, totals, group_size, step)
        kl, self.hooks.last_kl = self.hooks.last_kl, None
        batch_number = run.batches
        refused = run.observe(step, groups, rows=len(rows) // group_size, completions=len(totals), kl=kl)
        self.beta = run.beta
        if self.steering.permute_rewards:
            rewards = permute_in_groups(rewards, group_size, (self.args.seed, batch_number))
        batch.refused = torch.tensor([run.pool.ids[row] in refused for row in rows], device=rewards.device)
        # TRL leaves completions without a reward out of every mean and gives them advantage 0
        return rewards.masked_fill(batch.refused[:, None], torch.nan)

    def begin_steering(self) -> None:
        """Take over beta."""
        if self.steered is not None:
            self.beta = self.steered.beta  # brought back from a checkpoint, or as it was
