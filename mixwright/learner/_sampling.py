"""The token loop: one prefill per prompt, shared by all its samples, then one token a time with a key-value cache."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mixwright.learner._batches import left_padded

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


@dataclass
class Continuation:
    """One sampled row."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finished: bool = False


def uniforms(seed: int, prompts: Sequence[int], count: int, length: int) -> Float[Tensor, "rows length"]:
    """Uniform numbers in [0, 1), float64; those of a prompt depend only on (seed, its place), not on the batch."""
    draws = []
    for place in prompts:
        generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, place]))
        draws.append(generator.random((count, length)))
    return torch.from_numpy(np.concatenate(draws))


def choose(
    logits: Float[Tensor, "rows vocabulary"], temperature: float, uniform: Float[Tensor, " rows"] | None
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Next tokens and their log-probabilities: the likeliest without `uniform`, else by the inverse of the cumulative sum.

    The sum is float64, so that rare tokens of large vocabularies keep their share; a token of probability 0 is never
    drawn.
    """
    table = torch.log_softmax(logits.float() / (temperature or 1.0), -1)
    if uniform is None:
        tokens = table.argmax(-1)
    else:
        total = table.to(uniform.device).double().exp().cumsum(-1)
        tokens = torch.searchsorted(total, uniform[:, None] * total[:, -1:], right=True)[:, 0]
        tokens = tokens.clamp_max(table.shape[1] - 1).to(table.device)
    return tokens, table.gather(1, tokens[:, None])[:, 0]


def continue_prompts(
    learner: Learner,
    prompts: Sequence[Sequence[int]],
    count: int,
    temperature: float,
    max_new_tokens: int,
    noise: Float[Tensor, "rows length"] | None,
) -> list[Continuation]:
    """`count` rows per prompt, prompt by prompt; stops when all rows have ended. Call it without gradients, in eval mode."""
    device = learner.device
    ids, mask = (part.to(device) for part in left_padded(prompts, learner.tokenizer.pad_token_id or 0))
    ends = torch.tensor(sorted(learner.end_ids), device=device)
    noise = noise.to(device) if noise is not None and device.type != "mps" else noise  # Apple's has no float64
    cached = "past_key_values" in learner.accepts
    output = learner.forward(ids, mask, keep=1, use_cache=cached)
    logits, cache = output.logits[:, -1], getattr(output, "past_key_values", None) if cached else None
    if count > 1:
        if cache is not None:
            cache.batch_repeat_interleave(count)
        ids, mask, logits = (part.repeat_interleave(count, 0) for part in (ids, mask, logits))
    done = torch.zeros(len(ids), dtype=torch.bool, device=device)
    tokens, logprobs, over = [], [], []
    for step in range(max_new_tokens):
        token, logprob = choose(logits, temperature, noise[:, step] if noise is not None else None)
        over.append(done)
        tokens.append(token)
        logprobs.append(logprob)
        done = done | torch.isin(token, ends)
        if step == max_new_tokens - 1 or bool(done.all()):
            break
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
        ids = token[:, None] if cached else torch.cat([ids, token[:, None]], 1)
        output = learner.forward(ids, mask, keep=1, cache=cache, use_cache=cached)
        logits, cache = output.logits[:, -1], getattr(output, "past_key_values", None) if cached else None
    lengths = (~torch.stack(over, 1)).sum(1).tolist()
    columns = zip(torch.stack(tokens, 1).tolist(), torch.stack(logprobs, 1).tolist(), lengths, done.tolist(), strict=True)
    return [Continuation(row[:length], log[:length], ended) for row, log, length, ended in columns]
