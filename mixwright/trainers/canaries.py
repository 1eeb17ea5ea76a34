"""Canary passes: fixed rows that are never drawn, on which a run is measured between its steps.

GRPO answers them greedily and lets the user's rewards judge. SFT and DPO read them: success is the probability of the row's
own completion (in DPO of the chosen one), as the trainer itself prepares and pads it; nothing is generated.

Before the first step one token per position is sampled from the starting model: in GRPO a completion per item, in SFT and
DPO a token at each target. Drift is the KL from start to now per such token, estimated by exp(d) - 1 - d with
d = log now - log start (never negative and unbiased, because the tokens were drawn from the start), so the vocabulary is
never stored. A pass leaves parameters, gradients, train/eval mode and the global random state alone.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mixwright.learner.batches import pass_token_limit, reading_mode, token_batches
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
"""Before the first step: what drift is measured on is sampled, and the items are answered (or read) for the first time."""
BUDGET_SHARE = 0.025
"""Share of the work of training, counted in rows, that passes are planned to cost where nobody says otherwise. Rows
differ in length: passes planned at 3 % took up to 3.3 % of the CPU time of SmolLM2's SFT with LoRA. They may take 3 %."""
TRAINING_COST_READINGS = 3.0
"""What a row of SFT or DPO costs in rows that are only read: a backward pass is worth two forward."""
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


class Reading(NamedTuple):
    """What a pass shows of one item."""

    item: int
    """Its place among the canaries."""
    success: float
    """0 to 1."""
    first_success: float | None
    """That of the first pass, where the meaning of rewards has changed since."""
    logprobs: list[float]
    """Log-probabilities now of the tokens that the starting model sampled, nats; empty where none were sampled."""


class CanaryPass:
    """Measures the canaries of one run.

    Args:
        trainer: whose model is measured, as it is at the time of each pass.
        items: pool indices.
        steps_between: optimiser steps between passes.
    """

    charged_as: ClassVar[Literal["rollouts", "tokens"]]
    """Unit of what a pass costs."""

    def __init__(self, trainer: Any, items: Sequence[int], steps_between: int) -> None:
        self.trainer, self.items, self.steps_between = trainer, items, steps_between
        self.model = trainer.accelerator.unwrap_model(trainer.model)
        self.seed = trainer.args.seed
        """Seed of the tokens that drift is measured on."""
        self.start: list[tuple[list[int], list[float]]] = []
        """Per item: tokens that the starting model sampled, and their log-probabilities then (nats)."""
        self.charged = 0
        """What the pass under way has cost so far."""

    @staticmethod
    def why_none(trainer: Any, items: Sequence[int]) -> str:
        """Return why no pass can run beside this trainer; empty when it can."""
        raise NotImplementedError

    @staticmethod
    def row_cost(trainer: Any) -> float:
        """Return what a row of training costs, in canaries."""
        raise NotImplementedError

    def remember_start(self) -> int:
        """Sample the tokens that drift is measured on; returns what to charge. No-op when already done."""
        self.charged = 0
        if not self.start:
            self.start = self._sample_start()
        return self.charged

    def run(self, step: int) -> tuple[list[CanaryOutcome], int]:
        """Return the outcomes of all items now, and what to charge."""
        self.charged = 0
        pool, outcomes = self.trainer.steered.pool, []
        for item, success, first_success, logprobs in sorted(self._read()):
            row = self.items[item]
            cell = pool.cells[pool.cell_of[row]]
            kl = kl_per_token(self.start[item][1], logprobs) if self.start else None
            outcomes.append(CanaryOutcome(pool.ids[row], cell.task, cell.level, step, success, kl, first_success))
        return outcomes, self.charged

    def _sample_start(self) -> list[tuple[list[int], list[float]]]:
        """Return what `start` keeps."""
        raise NotImplementedError

    def _read(self) -> Iterator[Reading]:
        """Measure every item that can be judged."""
        raise NotImplementedError


class GeneratedPass(CanaryPass):
    """Passes of GRPO: the model answers, the trainer's reward functions judge."""

    charged_as = "rollouts"

    def __init__(self, trainer: Any, items: Sequence[int], steps_between: int) -> None:
        super().__init__(trainer, items, steps_between)
        form = PromptForm(arguments=trainer.chat_template_kwargs or {})
        self.learner = Learner(self.model, trainer.processing_class, "the model in training", form=form)
        self.prompts = [trainer.train_dataset[item]["prompt"] for item in items]

    @staticmethod
    def why_none(trainer: Any, items: Sequence[int]) -> str:
        """Return why the trainer's model cannot answer alone, or its rewards cannot be called."""
        for function in trainer.reward_funcs:
            if isinstance(function, nn.Module):
                return "a reward is a model, but canaries need functions that can be called directly"
            if is_async(function):
                return "a reward function is async, but canaries need functions that can be called directly"
        if trainer.tools or trainer.environment_factories is not None or trainer.rollout_func is not None:
            return "prompts are answered by tools, environments or a rollout function, not by the model alone"
        if hasattr(trainer.processing_class, "image_processor"):
            return "prompts may hold images"
        return ""

    @staticmethod
    def row_cost(trainer: Any) -> float:
        """Return what a row costs: half of `ROLLOUT_COST_CANARIES` is generation, done once for `num_iterations` steps."""
        return ROLLOUT_COST_CANARIES * (1 + 1 / trainer.num_iterations) / 2

    def _sample(self, temperature: float) -> list[Any]:
        settings = {"count": 1, "max_new_tokens": self.trainer.max_completion_length, "seed": self.seed}
        self.charged += len(self.items)
        groups = self.learner.sample(self.prompts, temperature=temperature, **settings)
        return [completion for (completion,) in groups]

    def _sample_start(self) -> list[tuple[list[int], list[float]]]:
        return [(list(completion.token_ids), list(completion.logprobs)) for completion in self._sample(1.0)]

    def _read(self) -> Iterator[Reading]:
        answers = self._sample(0.0)
        texts = [answer.text for answer in answers]
        rewards = grade_rows(self.trainer, self.items, texts, [list(answer.token_ids) for answer in answers])
        logprobs: Sequence[Sequence[float]] = [[]] * len(answers)
        if self.start:
            logprobs = self.learner.logprobs(self.prompts, [tokens for tokens, _ in self.start])
        for item, reward in enumerate(rewards):
            if math.isnan(reward):
                continue  # no reward function could judge it
            name = self.trainer.steered.pool.ids[self.items[item]]
            success, first_success = self.trainer.steered.reward_range.success_now_and_first(name, reward)
            yield Reading(item, success, first_success, list(logprobs[item]))


class HeldOutPass(CanaryPass):
    """Passes of SFT and DPO: the model reads rows that are never drawn."""

    charged_as = "tokens"

    def __init__(self, trainer: Any, items: Sequence[int], steps_between: int) -> None:
        super().__init__(trainer, items, steps_between)
        sizes = [trainer.count_tokens(trainer.train_dataset[item]) for item in items]
        self.batches = list(token_batches(sizes, pass_token_limit(self.model)))

    @staticmethod
    def why_none(trainer: Any, items: Sequence[int]) -> str:
        """Return what the trainer's collator lacks."""
        try:
            trainer.model_inputs(items[:1])
        except KeyError as error:
            return f"the data collator makes no {error.args[0]}"
        return ""

    @staticmethod
    def row_cost(trainer: Any) -> float:
        """Return what a row of training costs in rows that are only read."""
        return TRAINING_COST_READINGS

    def _sample_start(self) -> list[tuple[list[int], list[float]]]:
        generator = torch.Generator().manual_seed(self.seed)
        start: list[tuple[list[int], list[float]]] = [([], []) for _ in self.items]
        for item, log_probabilities, targets in self._read_targets():
            cumulated = log_probabilities.exp().cumsum(1)
            # Scaled to the last sum, which rounding leaves a little off 1, so that no token outside the vocabulary is hit.
            threshold = torch.rand(len(targets), 1, generator=generator).to(cumulated.device) * cumulated[:, -1:]
            sampled = torch.searchsorted(cumulated, threshold).clamp_max(log_probabilities.shape[1] - 1)
            start[item] = (sampled[:, 0].tolist(), log_probabilities.gather(1, sampled)[:, 0].tolist())
        return start

    def _read(self) -> Iterator[Reading]:
        for item, log_probabilities, targets in self._read_targets():
            mean_logprob = log_probabilities.gather(1, targets[:, None]).mean().item()
            # a model that has overflowed can nothing any more
            success = math.exp(mean_logprob) if math.isfinite(mean_logprob) else 0.0
            sampled = torch.tensor(self.start[item][0] if self.start else [], dtype=torch.long, device=targets.device)
            logprobs = log_probabilities[: len(sampled)].gather(1, sampled[:, None])[:, 0].tolist()
            yield Reading(item, success, None, logprobs)

    def _read_targets(self) -> Iterator[tuple[int, Float[Tensor, "time vocabulary"], Int[Tensor, " time"]]]:
        """Yield place, log-probabilities at the target positions, and targets of each item that has any."""
        device = next(self.model.parameters()).device
        for batch in self.batches:
            inputs, labels = self.trainer.model_inputs([self.items[item] for item in batch])
            inputs = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in inputs.items()}
            with reading_mode(self.model):
                # Prompt-learning adapters put virtual tokens in front: the last positions are the row's own.
                logits = self.model(**inputs, use_cache=False).logits[:, -labels.shape[1] :]
            targets = labels.to(logits.device)[:, 1:]
            for row, item in enumerate(batch):
                is_target = targets[row] != -100
                if bool(is_target.any()):
                    self.charged += int(is_target.sum())
                    yield item, torch.log_softmax(logits[row, :-1][is_target].float(), -1), targets[row][is_target]


def kl_per_token(start: Sequence[float], now: Sequence[float]) -> float | None:
    """KL(start || now) in nats per token from log-probabilities of tokens that start drew; None where there is no number."""
    gaps = [after - before for before, after in zip(start, now, strict=True)]
    if not gaps or not all(map(math.isfinite, now)):
        return None
    return sum(math.exp(gap) - 1 - gap for gap in gaps) / len(gaps)


def make_canaries(trainer: Any) -> CanaryPass | None:
    """Return the canary pass of a steered trainer with prepared rows, or None with the reason logged."""
    kind, run, asked_steps = trainer.canary_kind, trainer.steered, trainer.steering.canary_every
    if asked_steps == 0:
        return None
    items = list(run.engine.canaries)
    reason = run.engine.why_unwatched
    if items and (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        reason = "parameters may be sharded, so a single process cannot use the model"
    elif items:
        reason = kind.why_none(trainer, items)
    if reason:
        if run.batches == 0:
            run.note(0, "canaries off", reason)
        return None
    takes_a_step = kind is GeneratedPass and trainer.args.device.type != "cpu"
    row_cost = kind.row_cost(trainer)
    steps_between = schedule_passes(trainer, run, asked_steps, len(items), row_cost, takes_a_step=takes_a_step)
    return kind(trainer, items, steps_between) if steps_between else None


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
