"""Canary passes of GRPO: fixed rows that are never drawn, which a run answers greedily between its steps.

The user's rewards judge the answers. Before the first step a completion per item is sampled from the starting model, too.
Drift is the KL from start to now per token of it, estimated by exp(d) - 1 - d with d = log now - log start (never negative
and unbiased, because the tokens were drawn from the start), so the vocabulary is never stored. A pass leaves parameters,
gradients, train/eval mode and the global random state alone.

SFT and DPO have none: `GateCallback` looks at held-out items in any trainer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mixwright.learner.learner import Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.records import CanaryOutcome
from mixwright.trainers.rewards import is_async, limit_and_check, sum_checked
from mixwright.trainers.steering import INDEX_COLUMN

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering

MIN_STEPS_BETWEEN = 5
"""Steps between canary passes, at least, where nobody says otherwise: over-hard data did most of its damage in 40 steps."""
PASSES_AT_START = 2
"""Before the first step: what drift is measured on is sampled, and the items are answered for the first time."""
BUDGET_SHARE = 0.025
"""Share of the work of training, counted in rows, that passes are planned to cost where nobody says otherwise."""
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
        row_cost_canaries: what a row of training costs, in canaries.
        takes_a_step: a pass counts as at least the work of one step.
    """
    steps = trainer.args.max_steps
    rows_per_step = trainer.args.per_device_train_batch_size * trainer.args.gradient_accumulation_steps
    step_canaries = rows_per_step * row_cost_canaries
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


class CanaryPass:
    """Measures the canaries of one run: the model answers, the trainer's reward functions judge.

    Args:
        trainer: whose model is measured, as it is at the time of each pass.
        items: pool indices.
        steps_between: optimiser steps between passes.
    """

    def __init__(self, trainer: Any, items: Sequence[int], steps_between: int) -> None:
        self.trainer, self.items, self.steps_between = trainer, items, steps_between
        model = trainer.accelerator.unwrap_model(trainer.model)
        form = PromptForm(arguments=trainer.chat_template_kwargs or {})
        self.learner = Learner(model, trainer.processing_class, "the model in training", form=form)
        self.prompts = [trainer.train_dataset[item]["prompt"] for item in items]
        self.start: list[tuple[list[int], list[float]]] = []
        """Per item: tokens that the starting model sampled, and their log-probabilities then (nats)."""

    def remember_start(self) -> int:
        """Sample the tokens that drift is measured on; returns the rollouts to charge. No-op when already done."""
        if self.start:
            return 0
        self.start = [(list(answer.token_ids), list(answer.logprobs)) for answer in self._sample(1.0)]
        return len(self.items)

    def run(self, step: int) -> tuple[list[CanaryOutcome], int]:
        """Return the outcomes of all items now that some function could judge, and the rollouts to charge."""
        run, outcomes = self.trainer.steered, []
        answers = self._sample(0.0)
        rewards = grade_rows(
            self.trainer,
            self.items,
            [answer.text for answer in answers],
            [list(answer.token_ids) for answer in answers],
        )
        logprobs: Sequence[Sequence[float]] = [[]] * len(answers)
        if self.start:
            logprobs = self.learner.logprobs(self.prompts, [tokens for tokens, _ in self.start])
        for place, (row, reward) in enumerate(zip(self.items, rewards, strict=True)):
            if math.isnan(reward):
                continue
            cell, name = run.pool.cells[run.pool.cell_of[row]], run.pool.ids[row]
            success = run.reward_range.success(reward)
            kl = kl_per_token(self.start[place][1], logprobs[place]) if self.start else None
            outcomes.append(CanaryOutcome(name, cell.task, cell.level, step, success, kl))
        return outcomes, len(self.items)

    def _sample(self, temperature: float) -> list[Any]:
        settings = {"max_new_tokens": self.trainer.max_completion_length, "seed": self.trainer.args.seed}
        groups = self.learner.sample(self.prompts, count=1, temperature=temperature, **settings)
        return [completion for (completion,) in groups]


def why_none(trainer: Any) -> str:
    """Return why the trainer's model cannot answer alone, or its rewards cannot be called; empty when it can."""
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        return "parameters may be sharded, so a single process cannot use the model"
    for function in trainer.reward_funcs:
        if isinstance(function, nn.Module):
            return "a reward is a model, but canaries need functions that can be called directly"
        if is_async(function):
            return "a reward function is async, but canaries need functions that can be called directly"
    if trainer.tools or trainer.environment_factories is not None or trainer.rollout_func is not None:
        return "prompts are answered by tools, environments or a rollout function, not by the model alone"
    return "prompts may hold images" if hasattr(trainer.processing_class, "image_processor") else ""


def kl_per_token(start: Sequence[float], now: Sequence[float]) -> float | None:
    """KL(start || now) in nats per token from log-probabilities of tokens that start drew; None where there is no number."""
    gaps = [after - before for before, after in zip(start, now, strict=True)]
    if not gaps or not all(map(math.isfinite, now)):
        return None
    return sum(math.exp(gap) - 1 - gap for gap in gaps) / len(gaps)


def make_canaries(trainer: Any) -> CanaryPass | None:
    """Return the canary pass of a steered trainer with prepared rows, or None with the reason logged."""
    run, asked_steps = trainer.steered, trainer.steering.canary_every
    if asked_steps == 0:
        return None
    items = list(run.engine.canaries)
    reason = why_none(trainer) if items else run.engine.why_unwatched
    if reason:
        if run.batches == 0:
            run.note(0, "canaries off", reason)
        return None
    # half of what a completion costs is generation, which is done once for `num_iterations` steps
    row_cost = ROLLOUT_COST_CANARIES * (1 + 1 / trainer.num_iterations) / 2
    takes_a_step = trainer.args.device.type != "cpu"
    steps_between = schedule_passes(trainer, run, asked_steps, len(items), row_cost, takes_a_step=takes_a_step)
    return CanaryPass(trainer, items, steps_between) if steps_between else None


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
