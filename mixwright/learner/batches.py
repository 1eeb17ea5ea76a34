"""Batches of bounded size, and contexts in which a model is read and left as it was."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers.utils import logging

MAX_TOKENS_PER_PASS = 16384
"""Tokens per forward pass: 256 rows of 64, where small models on a CPU are fastest."""

GPU_SHARE_FOR_WRITING = 1 / 16
"""Share of a GPU's memory for keys and values of completions that are written together; several workers may share a GPU."""

MAX_LOGITS_PER_PASS = 2**27
"""Logits per forward pass: half a gigabyte in float32, for large vocabularies."""


def pass_token_limit(model: Any) -> int:
    """Most tokens per forward pass of this model."""
    vocabulary = model.config.get_text_config().vocab_size
    return max(1, min(MAX_TOKENS_PER_PASS, MAX_LOGITS_PER_PASS // vocabulary))


def count_cached_values(model: Any) -> int | None:
    """Numbers of a token among the keys and values of all layers; None where the settings do not say, or differ by layer."""
    config = model.config.get_text_config()
    try:
        heads = config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        return 2 * config.num_hidden_layers * (getattr(config, "num_key_value_heads", None) or heads) * width
    except (AttributeError, RuntimeError, TypeError):  # transformers raises a RuntimeError for settings that differ by layer
        return None


def writing_token_limit(model: Any, device_bytes: int | None) -> int:
    """Most tokens, those of prompts included, of completions that are written together, where logits are of one position.

    The size of the GPU decides, not what is free on it, so that a model is read in the same batches before and after.

    Args:
        model: writes.
        device_bytes: memory of its GPU; None on another device.
    """
    values = count_cached_values(model) if device_bytes else None
    if not device_bytes or not values:
        return MAX_TOKENS_PER_PASS
    return max(MAX_TOKENS_PER_PASS, int(GPU_SHARE_FOR_WRITING * device_bytes) // (values * model.dtype.itemsize))


def token_batches(sizes: Sequence[int], limit: int, most_rows: int | None = None) -> Iterator[list[int]]:
    """Indices of rows, shortest first, in batches whose padded size (rows x longest) is at most `limit`.

    A single row above the limit is a batch of its own; `most_rows` bounds the rows of a batch, too.
    """
    return split_sorted(sizes, lambda batch, size: (len(batch) + 1) * size > limit or len(batch) == most_rows)


def split_sorted(sizes: Sequence[int], is_full: Callable[[list[int], int], bool]) -> Iterator[list[int]]:
    """Indices of rows, shortest first; a new batch begins where `is_full` says so of the batch and the size of a row."""
    batch: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: (sizes[i], i)):
        if batch and is_full(batch, sizes[i]):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def left_padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Int[Tensor, "batch time"], Int[Tensor, "batch time"]]:
    """Token ids padded on the left to the longest row, and their mask (1 for real tokens)."""
    longest = max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def right_padded(rows: Sequence[Sequence[int]], pad: int) -> Int[Tensor, "batch time"]:
    """Token ids padded on the right to the longest row."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *([pad] * (longest - len(row)))] for row in rows])


@contextlib.contextmanager
def reading_mode(model: Any) -> Iterator[None]:
    """Eval mode without gradients; afterwards every submodule has its old mode again.

    Not `inference_mode`: what a model caches there cannot enter a loss later.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Without warnings that a user can do nothing about: of what PEFT sets by itself, and of a name that it reads.

    PEFT asks a model for `is_gradient_checkpointing`, which transformers calls `is_activation_checkpointing` now.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fan_in_fan_out")  # for Conv1D
        warnings.filterwarnings("ignore", category=FutureWarning, message=".*is_gradient_checkpointing")
        yield


@contextlib.contextmanager
def without_progress_bars() -> Iterator[None]:
    """Without the progress bars that transformers shows for each file; a stage has one progress line of its own."""
    were_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_shown:
            logging.enable_progress_bar()
