"""Gradients of single examples of a tiny GPT, plain and as Adam would step, in a count sketch."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Sft

CHUNK_ROWS = 64
SKETCH_PLACES = 4096
"""Places of the sketch."""
Pairs = Sequence[tuple[str, str]]
"""Prompts and responses."""


def gradients(
    model: GPT, pairs: Pairs, sft: Sft | None = None, *, size: int = SKETCH_PLACES, seed: int = 0
) -> Float[np.ndarray, "rows size"]:
    """Gradient of the mean loss over the response tokens of each pair, in a count sketch of one seed.

    Args:
        model: is left as it is.
        pairs: examples.
        sft: a training whose Adam state turns each gradient into the step that it would make; None leaves them plain.
        size: places of the sketch.
        seed: of the sketch; vectors of one seed and model can be compared.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    count = sum(parameter.numel() for parameter in weights.values())
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(size, (count,), generator=generator)
    signs = torch.randint(2, (count,), generator=generator) * 2.0 - 1.0
    steps = None if sft is None else _moments(model, sft)
    grad = torch.func.vmap(torch.func.grad(_loss(model)), in_dims=(None, 0, 0))
    found = []
    for start in range(0, len(pairs), CHUNK_ROWS):
        own = pairs[start : start + CHUNK_ROWS]
        prompts = model.language.encode_prompts([prompt for prompt, _ in own])
        responses = model.language.encode_responses([response for _, response in own])
        with sdpa_kernel(SDPBackend.MATH):  # the others have no rule for vmap
            flat = torch.cat([part.flatten(1) for part in grad(weights, prompts, responses).values()], 1)
        if steps is not None:
            flat = _as_adam(flat, *steps)
        found.append(torch.zeros(len(own), size).index_add_(1, places, flat * signs))
    return torch.cat(found).numpy()


def hidden_states(model: GPT, pairs: Pairs) -> Float[np.ndarray, "rows width"]:
    """Stream behind the last block at the last token of each pair."""
    spoken = model.language
    prompts, responses = ([pair[side] for pair in pairs] for side in (0, 1))
    tokens = torch.cat((spoken.encode_prompts(prompts), spoken.encode_responses(responses)), 1)
    ends = spoken.prompt_tokens + spoken.mask(tokens[:, spoken.prompt_tokens :]).sum(1) - 1
    with torch.no_grad():
        return model.hidden(tokens)[-1][torch.arange(len(tokens)), ends].numpy()


def _loss(model: GPT):
    def loss(weights: dict[str, Tensor], prompt: Tensor, response: Tensor) -> Tensor:
        tokens = torch.cat((prompt, response[:-1]))[None]
        logits = torch.func.functional_call(model, weights, (tokens,))[0][0, len(prompt) - 1 :]
        each = functional.cross_entropy(logits, response, reduction="none")
        told = model.language.mask(response).float()
        return (each * told).sum() / told.sum()

    return loss


def _moments(model: GPT, sft: Sft) -> tuple[Tensor, Tensor, int]:
    state = sft.optimizer.state
    first, second = (torch.cat([state[p][name].flatten() for p in model.parameters()]) for name in ("exp_avg", "exp_avg_sq"))
    return first, second, sft.done


def _as_adam(flat: Tensor, first: Tensor, second: Tensor, done: int) -> Tensor:
    """Step of Adam with this gradient, bias-corrected; betas of the schedule's default."""
    low, high = 0.9, 0.95
    m = (low * first + (1 - low) * flat) / (1 - low ** (done + 1))
    v = (high * second + (1 - high) * flat**2) / (1 - high ** (done + 1))
    return m / (v.sqrt() + 1e-8)
