"""Log-probabilities of the tokens that TRL trains on, read off the forward pass it makes anyway.

TRL from 1.15 on shows them in the model's output. Older versions show logits, or with `loss_type="chunked_nll"` only sums
over the batch: there the last hidden states are caught on their way and the head is applied once more, without gradient.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mixwright.errors import InputError

TARGETS_AT_A_TIME = 512
"""Targets whose logits are made at once where the head is applied again."""
LOGIT_SETTINGS = ("final_logit_softcapping", "logit_scale", "output_multiplier")
"""Settings of models whose logits are not simply what the head gives."""


@dataclass
class TokenLogprobs:
    """What one forward pass showed; virtual tokens of prompt-learning adapters may stand in front."""

    log_probs: Float[Tensor, "batch time"]
    """Of every next token, nats, without gradient in older TRL; 0 where nothing is to be predicted."""
    label_mask: Bool[Tensor, "batch time"]
    """Where a token is to be predicted."""


@contextmanager
def capture_logprobs(module: Any, labels: Int[Tensor, "batch tokens"] | None) -> Iterator[list[Any]]:
    """The outputs with per-token log-probabilities (`TokenLogprobs`, or TRL's own) that `module` gives meanwhile, in order.

    Args:
        module: the model that TRL calls.
        labels: tokens to predict, -100 elsewhere; only TRL before 1.15 needs them, and shows nothing without.
    """
    outputs: list[Any] = []
    states: list[Tensor] = []
    base = getattr(module, "module", module)
    base = base.get_base_model() if hasattr(base, "get_base_model") else base
    backbone = getattr(base, "base_model", base)

    def keep_states(module: nn.Module, arguments: Any, output: Any) -> None:
        if getattr(output, "last_hidden_state", None) is not None:
            states[:] = [output.last_hidden_state.detach()]

    def keep_output(module: nn.Module, arguments: Any, output: Any) -> None:
        if getattr(output, "log_probs", None) is not None:
            outputs.append(output)
        elif labels is not None:
            recomputed = _recompute(base, labels, getattr(output, "logits", None), states)
            outputs.extend([] if recomputed is None else [recomputed])

    hooks = [module.register_forward_hook(keep_output)]
    if backbone is not base and labels is not None:
        hooks.append(backbone.register_forward_hook(keep_states))
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


def output_at(outputs: Sequence[Any], index: int) -> Any:
    """One of the outputs kept. Raises InputError when TRL's forward pass shows no log-probabilities."""
    if not outputs:
        import trl

        raise InputError(
            "a forward pass that returns log-probabilities per token",
            f"none, in TRL {trl.__version__} under these settings",
            "Leave loss_type, use_liger_kernel and model patches at TRL's defaults, or train with steering=None.",
        )
    return outputs[index]


@torch.no_grad()
def _recompute(base: Any, labels: Tensor, logits: Tensor | None, states: Sequence[Tensor]) -> TokenLogprobs | None:
    """Log-probabilities from logits, or from hidden states and the head; None when neither gives them exactly."""
    token_count = labels.shape[1]
    targets = labels[:, 1:]
    mask = targets != -100
    head = None
    if logits is None:
        config = base.config.get_text_config()
        if not states or any(getattr(config, name, None) for name in LOGIT_SETTINGS):
            return None
        logits, head = states[-1], base.get_output_embeddings()
    if logits.shape[0] != len(labels) or logits.shape[1] < token_count:
        return None
    rows, target_ids = logits[:, -token_count:][:, :-1][mask], targets[mask].to(logits.device)
    target_logprobs = torch.zeros(len(rows), device=logits.device)
    for start in range(0, len(rows), TARGETS_AT_A_TIME):
        chunk = slice(start, start + TARGETS_AT_A_TIME)
        chunk_logits = rows[chunk] if head is None else head(rows[chunk].to(head.weight.dtype))
        target_logprobs[chunk] = chunk_logits.float().log_softmax(-1).gather(1, target_ids[chunk, None])[:, 0]
    return TokenLogprobs(
        target_logprobs.new_zeros(mask.shape).masked_scatter(mask.to(target_logprobs.device), target_logprobs), mask
    )
