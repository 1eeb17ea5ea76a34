"""Rows of a micro-step flattened into one sequence without padding, for SFT: what each row showed, and how many rows fit.

TRL packs a data set before training, so that what is drawn are packs. Here rows are drawn by the plan, as ever, and those of
one micro-step are flattened into one sequence. Position ids begin at 0 with each row, and attention follows them: by the
kernel in FlashAttention, by a mask elsewhere. Before training two rows are read both ways, because a model whose attention
looked across rows would learn from them without a sign of it.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mixwright.errors import InputError
from mixwright.learner.batches import reading_mode

ROW_TOKENS_COLUMN = "mixwright_row_tokens"
"""Tokens of each row of a flattened batch, in their order."""
MAX_DIFFERENCE_NATS = {torch.float32: 1e-3, torch.float64: 1e-3}
"""Dtype of the weights -> how far the log-probability of a token may lie from that of its row alone; 0.25 in others."""
DEVIATIONS = 2.0
"""Standard deviations of a micro-step's tokens that are left free below what the packs hold."""


def sum_by_row(values: Float[Tensor, "1 targets"], row_tokens: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """Sums over the rows of a flattened batch.

    Args:
        values: of each token but the first, 0 where nothing is to be predicted; a row's first token is never predicted.
        row_tokens: tokens of each row; padding may follow the last.
    """
    rows = torch.arange(len(row_tokens), device=row_tokens.device).repeat_interleave(row_tokens)[1:].to(values.device)
    return torch.zeros(len(row_tokens), device=values.device).index_add_(0, rows, values[0, : len(rows)].float())


def padded(collator: Any) -> Any:
    """TRL's collator of flattened batches as the one that pads."""
    return dataclasses.replace(collator, padding_free=False)


def rows_that_fit(tokens_by_task: Mapping[str, Sequence[int]], shares: Mapping[str, float], room: int) -> int:
    """How many drawn rows have at most `room` tokens in about 39 of 40 micro-steps; at least 1.

    Args:
        tokens_by_task: task -> tokens of each of its rows.
        shares: task -> share of the draws.
        room: tokens of a micro-step's packs.
    """
    drawn = {task: np.asarray(tokens_by_task[task], float) for task, share in shares.items() if share > 0}
    total = sum(shares[task] for task in drawn)
    mean = sum(shares[task] * tokens.mean() for task, tokens in drawn.items()) / total
    square = sum(shares[task] * (tokens**2).mean() for task, tokens in drawn.items()) / total
    spread = math.sqrt(max(0.0, square - mean**2))
    root = (-DEVIATIONS * spread + math.sqrt((DEVIATIONS * spread) ** 2 + 4 * mean * room)) / (2 * mean)
    return max(1, math.floor(root**2 + 1e-9))


def take_rows_for_packs(trainer: Any, shares: Mapping[str, float]) -> None:
    """Make the batch size of a packed run one of rows, as many as its packs hold, and say so.

    Args:
        trainer: SFT with `packing`, whose rows are prepared and drawn by a run.
        shares: task -> share of the draws.

    Raises:
        InputError: no length of a pack.
    """
    pool, args = trainer.steered.pool, trainer.args
    if args.max_length is None:
        raise InputError("max_length under packing", "None", "Set it to the tokens per pack.")
    tokens_by_task: dict[str, list[int]] = {}
    for task, row in zip(pool.task_of, trainer.train_dataset["input_ids"], strict=True):
        tokens_by_task.setdefault(pool.tasks[task], []).append(len(row))
    room = args.per_device_train_batch_size * args.max_length
    rows = min(rows_that_fit(tokens_by_task, shares, room), max(1, len(pool.task_of) // args.world_size))
    message = "packing: each micro-step takes %d rows of the plan, in one sequence that rarely exceeds %d tokens, "
    message += "instead of %d packs"
    logging.getLogger("mixwright").warning(message, rows, room, args.per_device_train_batch_size)
    args.per_device_train_batch_size = rows
    trainer._train_batch_size = args.train_batch_size


def check_boundaries(trainer: Any) -> None:
    """Read two rows flattened and padded, and compare the log-probabilities of their targets.

    Args:
        trainer: SFT with flattened batches and a run beside it.

    Raises:
        InputError: attention, or something else in the model, looks across the rows of a flattened batch.
    """
    lengths = [len(row) for row in trainer.train_dataset["input_ids"]]
    items = [item for item in np.argsort(lengths, kind="stable").tolist() if lengths[item] > 1][:2]
    if len(items) < 2:
        return
    flat = trainer.prepare_batch(items)
    flat.pop(ROW_TOKENS_COLUMN, None)
    side_by_side = trainer.prepare_batch(items, padded(trainer.data_collator.collate))
    flattened, alone = (_target_logprobs(trainer.model, batch) for batch in (flat, side_by_side))
    dtype = next(trainer.model.parameters()).dtype
    difference = float((flattened - alone).abs().max()) if len(alone) else 0.0
    if difference > MAX_DIFFERENCE_NATS.get(dtype, 0.25):
        kernel = getattr(trainer.model.config, "_attn_implementation", "its attention")
        raise InputError(
            "the same log-probabilities for a row in a pack as for the row alone",
            f"a difference of {difference:.3g} nats, because with {kernel!r} attention rows see each other",
            "Train with packing=False and padding_free=False, or with FlashAttention (attn_implementation).",
        )


def _target_logprobs(model: Any, batch: Mapping[str, Any]) -> Float[Tensor, " targets"]:
    """Log-probabilities of all targets, row after row."""
    device = next(model.parameters()).device
    inputs = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in batch.items()}
    labels = inputs.pop("labels")
    with reading_mode(model):
        logits = model(**inputs, use_cache=False).logits[:, -labels.shape[1] :][:, :-1].float()
    targets = labels[:, 1:]
    mask = targets != -100
    return logits.log_softmax(-1)[mask].gather(1, targets[mask][:, None])[:, 0]
