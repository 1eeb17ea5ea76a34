"""Canary pass of GRPO: fixed items of mastered tasks, answered greedily by the model, judged by the user's rewards.

The first pass also samples one completion per item from the starting model; how far later models have moved is the KL
from start to now per token of those completions, estimated by exp(d) - 1 - d with d = log now - log start (never negative
and unbiased, because the tokens were drawn from the start).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mixwright.learner.learner import Learner
from mixwright.records import CanaryOutcome
from mixwright.steer.pool import Pool
from mixwright.trainers.rewards import is_async, limit_and_check, sum_checked
from mixwright.trainers.steering import INDEX_COLUMN

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering
    from mixwright.trainers.steering import SteeringConfig

GradeCompletions = Callable[[Sequence[int], Sequence[str], Sequence[Sequence[int]]], list[float]]
"""(pool indices, completions, their token ids) -> reward per completion."""


MIN_STEPS_BETWEEN = 5
"""Steps between canary passes, at least, where nobody says otherwise: over-hard data did most of its damage in 40 steps."""
PASSES_AT_START = 2
"""Before the first step: what drift is measured on is sampled, and the items are answered (or read) for the first time."""
BUDGET_SHARE = 0.025
"""Share of the work of training, counted in rows, that passes are planned to cost where nobody says otherwise. Rows
differ in length: passes planned at 3 % took up to 3.3 % of the CPU time of SmolLM2's SFT with LoRA. They may take 3 %."""
ROLLOUT_COST_CANARIES = 1.25
"""What a completion that GRPO generates and trains on costs, in canaries (generated and read). From 1.3 (0.2M parameters,
128 tokens) to 2.1 (15M parameters, 16 tokens) were measured on a CPU; the longer the completions, the less. On an
accelerator a pass counts as a whole step, however few its items: tokens are written one after the other there, and 32 items
took .65 and .96 of a step of 128 completions on an H200."""


def schedule_passes(
    trainer: Any,
    run: RunSteering,
    asked_steps: int | None,
    item_count: int,
    row_cost_canaries: float,
    *,
    takes_a_step: bool = False,
) -> int:
    """Steps between canary passes; 0 for none, where the budget allows no second pass within so short a run.

    Every process runs all canaries and trains on its own part of a step, so the budget is that of one process. It holds for
    the run as a whole, the passes before the first step included; where the number of steps follows from epochs, it holds
    from each pass to the next. Work is counted in rows.

    Args:
        trainer: with its batch sizes and steps.
        run: where it is written down that there are none, or that the budget says more than `MIN_STEPS_BETWEEN`.
        asked_steps: by the user, who pays what it costs; None leaves it to the budget.
        item_count: canaries.
        row_cost_canaries: what a row of training costs, in canaries; a pair of DPO is two rows.
        takes_a_step: a pass counts as at least the work of one step.
    """
    steps = trainer.args.max_steps
    rows_per_step = trainer.args.per_device_train_batch_size * trainer.args.gradient_accumulation_steps
    rows_read = 2 * rows_per_step if run.objective == "dpo" else rows_per_step
    step_canaries = rows_read * row_cost_canaries
    affordable_passes_per_step = BUDGET_SHARE * step_canaries / max(item_count, step_canaries if takes_a_step else 0)
    if asked_steps is not None:
        steps_between = asked_steps
    elif steps > 0:
        affordable_passes = int(steps * affordable_passes_per_step) - PASSES_AT_START
        steps_between = max(MIN_STEPS_BETWEEN, math.ceil(steps / affordable_passes)) if affordable_passes > 0 else steps + 1
    else:
        steps_between = max(MIN_STEPS_BETWEEN, math.ceil(1 / affordable_passes_per_step))
    reason = (
        f"{item_count} items, while each process trains on {rows_per_step} per step; canaries may cost "
        f"{BUDGET_SHARE:.1%} of the work"
    )
    if 0 < steps < steps_between:
        if run.batches == 0:
            cause = f"you asked for a pass every {asked_steps} steps" if asked_steps is not None else reason
            run.note(0, "canaries off", f"{cause}; {steps} steps leave no time for a second pass, so no loss could be seen")
        return 0
    if asked_steps is None and steps_between > MIN_STEPS_BETWEEN and run.batches == 0:
        run.note(0, f"canaries every {steps_between} steps", reason)
    return steps_between


def row_cost_canaries(iterations: int) -> float:
    """What a row of a GRPO step costs, in canaries: half of `ROLLOUT_COST_CANARIES` is generation, done once for
    `iterations` steps.
    """
    return ROLLOUT_COST_CANARIES * (1 + 1 / iterations) / 2


class CanaryPass:
    """Runs canaries for one training run.

    Args:
        learner: the model in training, as it is at the time of each pass.
        pool: names the items.
        items: pool indices.
        prompts: prompt per item.
        grade: rewards of completions.
        success_now_and_first: example id and reward -> success now and in the first pass, 0..1.
        max_new_tokens: longest completion.
        seed: of the one sampled completion per item.
        steps_between: optimiser steps between passes.
    """

    def __init__(
        self,
        learner: Learner,
        pool: Pool,
        items: Sequence[int],
        prompts: Sequence[Any],
        grade: GradeCompletions,
        *,
        success_now_and_first: Callable[[str, float], tuple[float, float]],
        max_new_tokens: int,
        seed: int,
        steps_between: int,
    ) -> None:
        self.success_now_and_first, self.steps_between = success_now_and_first, steps_between
        self.learner, self.pool, self.items, self.prompts, self.grade = learner, pool, items, prompts, grade
        self.max_new_tokens, self.seed = max_new_tokens, seed
        self.start: list[tuple[list[int], list[float]]] = []
        """Per item: tokens that the starting model sampled, and their log-probabilities then (nats)."""

    def remember_start(self) -> int:
        """Sample the completions that drift is measured on; returns the rollouts to charge. No-op when already done."""
        if self.start:
            return 0
        settings = {"count": 1, "temperature": 1.0, "max_new_tokens": self.max_new_tokens, "seed": self.seed}
        sampled = [group[0] for group in self.learner.sample(self.prompts, **settings)]
        self.start = [(list(completion.token_ids), list(completion.logprobs)) for completion in sampled]
        return len(self.items)

    def run(self, step: int) -> tuple[list[CanaryOutcome], int]:
        """Outcomes of all items now, and the rollouts to charge."""
        groups = self.learner.sample(
            self.prompts, count=1, temperature=0.0, max_new_tokens=self.max_new_tokens, seed=self.seed
        )
        answers = [group[0] for group in groups]
        rewards = self.grade(self.items, [answer.text for answer in answers], [list(answer.token_ids) for answer in answers])
        logprobs_now = self.learner.logprobs(self.prompts, [tokens for tokens, _ in self.start]) if self.start else []
        outcomes = []
        for item_index, item in enumerate(self.items):
            if math.isnan(rewards[item_index]):
                continue  # no reward function could judge it
            cell = self.pool.cells[self.pool.cell_of[item]]
            kl = kl_per_token(self.start[item_index][1], logprobs_now[item_index]) if self.start else None
            name = self.pool.ids[item]
            success, first_success = self.success_now_and_first(name, rewards[item_index])
            outcomes.append(CanaryOutcome(name, cell.task, cell.level, step, success, kl, first_success))
        return outcomes, len(self.items)


def kl_per_token(start: Sequence[float], now: Sequence[float]) -> float | None:
    """KL(start || now) in nats per token from log-probabilities of tokens that start drew; None without tokens."""
    gaps = [after - before for before, after in zip(start, now, strict=True)]
    return sum(math.exp(gap) - 1 - gap for gap in gaps) / len(gaps) if gaps else None


def make_canaries(trainer: Any, run: RunSteering, steering: SteeringConfig) -> CanaryPass | None:
    """The canary pass of a GRPO trainer, or None with the reason logged when there can be none."""
    if steering.canary_every == 0:
        return None
    items = list(run.engine.canaries)
    reason = _why_none(trainer) if items else run.engine.why_unwatched
    if reason:
        if run.batches == 0:
            run.note(0, "canaries off", reason)
        return None
    steps_between = schedule_passes(
        trainer,
        run,
        steering.canary_every,
        len(items),
        row_cost_canaries(trainer.num_iterations),
        takes_a_step=trainer.args.device.type != "cpu",
    )
    if steps_between == 0:
        return None
    rows = [trainer.train_dataset[item] for item in items]
    model = trainer.accelerator.unwrap_model(trainer.model)
    return CanaryPass(
        Learner(model, trainer.processing_class, "the model in training", trainer.chat_template_kwargs),
        run.pool,
        items,
        [row["prompt"] for row in rows],
        lambda indices, texts, ids: grade_rows(trainer, indices, texts, ids),
        success_now_and_first=run.reward_range.success_now_and_first,
        max_new_tokens=trainer.max_completion_length,
        seed=trainer.args.seed,
        steps_between=steps_between,
    )


def grade_rows(
    trainer: Any, indices: Sequence[int], texts: Sequence[str], token_ids: Sequence[Sequence[int]]
) -> list[float]:
    """The trainer's own reward functions on completions of rows, weighted and summed; NaN where none could judge."""
    rows = [trainer.train_dataset[index] for index in indices]
    column_names = () if trainer.args.remove_unused_columns else rows[0]
    columns = {key: [row[key] for row in rows] for key in column_names if key not in (INDEX_COLUMN, "prompt", "completion")}
    is_chat = not isinstance(rows[0]["prompt"], str)
    completions = [[{"role": "assistant", "content": text}] for text in texts] if is_chat else list(texts)
    rewards_table = torch.full((len(rows), len(trainer.reward_funcs)), torch.nan)
    run, step = trainer.steered, trainer.state.global_step
    tasks = sorted({run.pool.tasks[run.pool.task_of[index]] for index in indices})
    for number, function in enumerate(trainer.reward_funcs):
        rewards = limit_and_check(function, trainer.steering, run, step, tasks, len(rows))(
            prompts=[row["prompt"] for row in rows],
            completions=completions,
            completion_ids=[list(ids) for ids in token_ids],
            trainer_state=trainer.state,
            log_extra=lambda column, values: None,
            log_metric=lambda name, value: None,
            **columns,
        )
        rewards_table[:, number] = torch.tensor([math.nan if reward is None else reward for reward in rewards])
    return sum_checked(rewards_table, trainer.reward_weights.cpu(), run, indices)


def _why_none(trainer: Any) -> str:
    """Why no canary pass can run beside this trainer; empty when it can."""
    for function in trainer.reward_funcs:
        if isinstance(function, nn.Module):
            return "a reward is a model, but canaries need functions that can be called directly"
        if is_async(function):
            return "a reward function is async, but canaries need functions that can be called directly"
    if trainer.tools or trainer.environment_factories is not None or trainer.rollout_func is not None:
        return "prompts are answered by tools, environments or a rollout function, not by the model alone"
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        return "parameters may be sharded, so a single process cannot generate"
    if hasattr(trainer.processing_class, "image_processor"):
        return "prompts may hold images"
    return ""
