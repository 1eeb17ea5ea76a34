"""Short trainings of copies of the model: some steps on numbered rows."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

Losses = Callable[[nn.Module, np.ndarray], Float[Tensor, " rows"]]
"""(model, row numbers) -> nats per target token of each row, with gradients."""

WARMUP_STEPS = 5
"""Steps over which each branch's learning rate rises: Adam's first steps are as long as its later ones."""


def copy_with_adapter(model: Any, rank: int, seed: int) -> Any:
    """A copy to be trained: with a new LoRA adapter on all linear layers, or all weights where there can be none.

    Args:
        model: left as it is.
        rank: of the adapter; 0 for none, as where the model has one already or PEFT is not installed.
        seed: of the adapter's first weights.
    """
    copied: Any = copy.deepcopy(model).eval()  # no dropout: trainings differ by their rows and seeds alone
    if not rank or hasattr(copied, "peft_config") or importlib.util.find_spec("peft") is None:
        return copied
    from peft import LoraConfig, get_peft_model

    from mixwright.learner.batches import without_warnings

    with torch.random.fork_rng(devices=[]), without_warnings():
        torch.manual_seed(seed)
        settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
        return get_peft_model(copied, settings).eval()


def draw_batches(rows: np.ndarray, steps: int, batch: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows of each step: each row comes as often as any other, give or take once."""
    passes = -(-steps * batch // len(rows))
    order = np.concatenate([rng.permutation(rows) for _ in range(passes)])
    return list(order[: steps * batch].reshape(steps, batch))


def train_on(
    model: nn.Module,
    losses: Losses,
    batches: Sequence[np.ndarray],
    learning_rate: float,
    calls_by_step: Mapping[int, Callable[[], Any]] | None = None,
) -> None:
    """Steps of AdamW without weight decay, gradients clipped at 1; `calls_by_step` is called after that many steps."""
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=learning_rate, weight_decay=0.0)
    for step, rows in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, step / WARMUP_STEPS)
        optimizer.zero_grad()
        losses(model, rows).mean().backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if calls_by_step and step in calls_by_step:
            calls_by_step[step]()
