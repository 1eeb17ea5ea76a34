"""Changes of a model by training: how far its weights moved, how undecided it is, and how ranks of two readings agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Rollouts


def weight_change(start: nn.Module, now: nn.Module) -> float:
    """Norm of the difference of all parameters, as a share of the norm at the start."""
    pairs = list(zip(start.parameters(), now.parameters(), strict=True))
    moved = sum(float((new.detach() - old.detach()).square().sum()) for old, new in pairs)
    return float(np.sqrt(moved / sum(float(old.detach().square().sum()) for old, _ in pairs)))


@torch.no_grad()
def entropy_of(model: GPT, rollouts: Rollouts) -> float:
    """Entropy of the next token in nats, mean over the tokens of these rollouts."""
    prompts, responses = rollouts.prompts.repeat_interleave(rollouts.tokens.shape[1], 0), rollouts.tokens.flatten(0, 1)
    logprobs, mask = model.logits_of(prompts, responses).log_softmax(-1), rollouts.language.mask(responses)
    return float(-(logprobs.exp() * logprobs).sum(-1)[mask].mean())


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Rank correlation, ties sharing their mean rank; 0 where all of one are alike."""
    first, second = (_ranks(np.array(values)) for values in (one, other))
    if not (first.std() and second.std()):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    return ((values[:, None] > values).sum(1) + (values[:, None] >= values).sum(1) - 1) / 2
