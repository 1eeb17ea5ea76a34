"""Canary pass of SFT and DPO: fixed rows that are never drawn, read by the model in training. Nothing is generated.

What is watched is the probability of the row's own completion (in DPO of the chosen one), as the trainer itself prepares
and pads it. At the first pass one token per target position is sampled from the starting model; how far later models have
moved is the KL from start to now at those positions, estimated from these tokens as `kl_per_token` does, so the
vocabulary is never stored. Reading leaves parameters, gradients, train/eval mode and the global random state alone.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mixwright.learner.batches import pass_token_limit, reading_mode, token_batches
from mixwright.records import CanaryOutcome
from mixwright.steer.pool import Pool
from mixwright.trainers.canaries.generated import kl_per_token, schedule_passes

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering

PrepareRows = Callable[[Sequence[int]], tuple[dict[str, Any], Tensor]]
"""Pool indices -> the model's inputs, and labels (rows, time) with -100 where nothing is to be predicted."""


TRAINING_COST_READINGS = 3.0
"""What a row of training costs in rows that are only read: a backward pass is worth two forward."""


class HeldOutPass:
    """Reads held-out rows for one training run.

    Args:
        model: the model in training, as it is at the time of each pass.
        pool: names the items.
        items: pool indices.
        sizes: tokens per item, at most; decides which are read together.
        prepare: the trainer's own collator on some of them.
        seed: of the tokens that drift is measured on.
        steps_between: optimiser steps between passes.
    """

    def __init__(
        self,
        model: Any,
        pool: Pool,
        items: Sequence[int],
        sizes: Sequence[int],
        prepare: PrepareRows,
        *,
        seed: int,
        steps_between: int,
    ) -> None:
        self.steps_between = steps_between
        self.model, self.pool, self.items, self.prepare, self.seed = model, pool, items, prepare, seed
        self.batches = list(token_batches(sizes, pass_token_limit(model)))
        self.start: list[tuple[list[int], list[float]]] = []
        """Per item: a token per target position that the starting model sampled, and its log-probability then (nats)."""

    def remember_start(self) -> int:
        """Sample the tokens that drift is measured on; returns target tokens to charge. No-op when already done."""
        if self.start:
            return 0
        generator = torch.Generator().manual_seed(self.seed)
        self.start = [([], []) for _ in self.items]
        tokens = 0
        for item_index, log_probabilities, targets in self._read():
            cumulated = log_probabilities.exp().cumsum(1)
            # Scaled to the last sum, which rounding leaves a little off 1, so that no token outside the vocabulary is hit.
            threshold = torch.rand(len(targets), 1, generator=generator).to(cumulated.device) * cumulated[:, -1:]
            sampled = torch.searchsorted(cumulated, threshold).clamp_max(log_probabilities.shape[1] - 1)
            self.start[item_index] = (sampled[:, 0].tolist(), log_probabilities.gather(1, sampled)[:, 0].tolist())
            tokens += len(targets)
        return tokens

    def run(self, step: int) -> tuple[list[CanaryOutcome], int]:
        """Outcomes of all items now, and the target tokens to charge."""
        outcome_by_item: dict[int, CanaryOutcome] = {}
        tokens = 0
        for item_index, log_probabilities, targets in self._read():
            tokens += len(targets)
            mean_logprob = log_probabilities.gather(1, targets[:, None]).mean().item()
            # a model that has overflowed can nothing any more
            success = math.exp(mean_logprob) if math.isfinite(mean_logprob) else 0.0
            kl = None
            if self.start:
                sampled, logprobs_before = self.start[item_index]
                logprobs_now = log_probabilities.gather(1, torch.tensor(sampled, device=log_probabilities.device)[:, None])[
                    :, 0
                ].tolist()
                kl = kl_per_token(logprobs_before, logprobs_now) if all(map(math.isfinite, logprobs_now)) else None
            item = self.items[item_index]
            cell = self.pool.cells[self.pool.cell_of[item]]
            outcome_by_item[item_index] = CanaryOutcome(self.pool.ids[item], cell.task, cell.level, step, success, kl)
        return [outcome_by_item[item_index] for item_index in sorted(outcome_by_item)], tokens

    def _read(self) -> Iterator[tuple[int, Float[Tensor, "time vocabulary"], Int[Tensor, " time"]]]:
        """(place, log-probabilities at the target positions, target tokens) per item; items without targets are left out."""
        for batch in self.batches:
            inputs, labels = self.prepare([self.items[item_index] for item_index in batch])
            device = next(self.model.parameters()).device
            inputs = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in inputs.items()}
            with reading_mode(self.model):
                # Prompt-learning adapters put virtual tokens in front: the last positions are the row's own.
                logits = self.model(**inputs, use_cache=False).logits[:, -labels.shape[1] :]
            targets = labels.to(logits.device)[:, 1:]
            for row, item_index in enumerate(batch):
                is_target = targets[row] != -100
                if bool(is_target.any()):
                    yield item_index, torch.log_softmax(logits[row, :-1][is_target].float(), -1), targets[row][is_target]


def make_heldout(
    trainer: Any, run: RunSteering, every: int | None, size: Callable[[Any], int], prepare: PrepareRows
) -> HeldOutPass | None:
    """The canary pass of an SFT or DPO trainer, or None with the reason logged when there can be none.

    Args:
        trainer: with prepared rows.
        run: beside it.
        every: steps between passes; 0: off; None: as the budget allows.
        size: tokens of a prepared row.
        prepare: as `HeldOutPass` takes it.
    """
    if every == 0:
        return None
    items = list(run.engine.canaries)
    reason = _why_none(trainer, prepare, items) if items else run.engine.why_unwatched
    if reason:
        if run.batches == 0:
            run.note(0, "canaries off", reason)
        return None
    steps_between = schedule_passes(trainer, run, every, len(items), TRAINING_COST_READINGS)
    if steps_between == 0:
        return None
    model = trainer.accelerator.unwrap_model(trainer.model)
    sizes = [size(trainer.train_dataset[item]) for item in items]
    return HeldOutPass(model, run.pool, items, sizes, prepare, seed=trainer.args.seed, steps_between=steps_between)


def _why_none(trainer: Any, prepare: PrepareRows, items: Sequence[int]) -> str:
    """Why no row can be watched beside this trainer; empty when it can."""
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        return "parameters may be sharded, so a single process cannot score rows"
    try:
        prepare(items[:1])
    except KeyError as error:
        return f"the data collator makes no {error.args[0]}"
    return ""
