"""DPO loss in bare torch: log-probabilities of right and wrong answers against those of the model before training."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from mixwright_lab.training.gpt import GPT


@dataclass(frozen=True)
class PreferencePairs:
    """Pairs as tokens, with what the starting model says of them."""

    prompts: Int[Tensor, "pairs prompt"]
    chosen: Int[Tensor, "pairs response"]
    rejected: Int[Tensor, "pairs response"]
    start_logprobs: tuple[Float[Tensor, " pairs"], Float[Tensor, " pairs"]]
    """Log-probabilities of chosen and of rejected under the starting model, nats."""

    def loss(self, model: GPT, places: Sequence[int], beta: float) -> Float[Tensor, ""]:
        """Mean over these pairs of -log sigmoid(beta * (change of chosen - change of rejected))."""
        own = torch.as_tensor(places)
        both = torch.cat((self.chosen[own], self.rejected[own]))
        now = logprob(model, self.prompts[own].repeat(2, 1), both)
        moved = now - torch.cat([side[own] for side in self.start_logprobs])
        return -functional.logsigmoid(beta * (moved[: len(own)] - moved[len(own) :])).mean()


def read_pairs(model: GPT, pairs: Sequence[tuple[str, str, str]]) -> PreferencePairs:
    """Pairs of (prompt, chosen, rejected), read by the model that the training begins with."""
    spoken = model.language
    prompts = spoken.encode_prompts([prompt for prompt, _, _ in pairs])
    chosen, rejected = (spoken.encode_responses([pair[side] for pair in pairs]) for side in (1, 2))
    with torch.no_grad():
        start = (logprob(model, prompts, chosen), logprob(model, prompts, rejected))
    return PreferencePairs(prompts, chosen, rejected, start)


def logprob(
    model: GPT, prompts: Int[Tensor, "rows prompt"], responses: Int[Tensor, "rows response"]
) -> Float[Tensor, " rows"]:
    """Log-probability of whole responses, their end included, nats."""
    told = model.language.mask(responses)
    longest = int(told.sum(1).max())
    responses, told = responses[:, :longest], told[:, :longest]
    logits = model.logits_of(prompts, responses)
    each = functional.cross_entropy(logits.flatten(0, 1), responses.flatten(), reduction="none").view(responses.shape)
    return -(each * told).sum(1)
