"""Sums of the logits of several tiny GPTs, weighted: their responses, their KL to a base; and SFT with a KL penalty.

Source: the sum is that of `mixwright.learner.dial.ExpertDial`, after Liu et al., 2401.08565.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import PAD
from mixwright_lab.training.sft import Schedule, Sft

WeightedModels = Sequence[tuple[float, GPT]]
"""Weights and models of one language; a single model has weight 1."""
Rows = tuple[Int[Tensor, "rows prompt"], Int[Tensor, "rows response"]]
"""Prompts and responses as tokens."""


def logits_of(parts: WeightedModels, rows: Rows) -> Float[Tensor, "rows response words"]:
    """Weighted sum of logits at each response token, teacher-forced; models of weight 0 are not read."""
    read = [weight * model.logits_of(*rows) for weight, model in parts if weight]
    return torch.stack(read).sum(0)


@torch.no_grad()
def greedy(
    parts: WeightedModels, prompts: Int[Tensor, "rows prompt"], begun: Sequence[int] = ()
) -> Int[Tensor, "rows response"]:
    """The likeliest response, token by token, behind tokens that it is made to begin with; to the language's full length."""
    language = parts[0][1].language
    made = torch.full((len(prompts), language.response_tokens), language.index[PAD])
    made[:, : len(begun)] = torch.tensor(begun, dtype=torch.long)
    for place in range(len(begun), language.response_tokens):
        made[:, place] = logits_of(parts, (prompts, made[:, : place + 1]))[:, -1].argmax(-1)
    return made


def divergence(parts: WeightedModels, base: GPT, rows: Rows) -> Float[Tensor, ""]:
    """KL(parts || base) in nats, mean over the tokens of the responses, padding left out."""
    own = logits_of(parts, rows).log_softmax(-1)
    with torch.no_grad():
        other = base.logits_of(*rows).log_softmax(-1)
    each, mask = (own.exp() * (own - other)).sum(-1), base.language.mask(rows[1]).float()
    return (each * mask).sum() / mask.sum()


def tune(
    model: GPT,
    base: GPT,
    batches: Callable[[int], Rows],
    schedule: Schedule,
    penalty: float,
    after: Callable[[int], None] | None = None,
) -> None:
    """SFT in place with a KL penalty.

    Args:
        model: trained.
        base: what it is held to.
        batches: rows of a step, 0 is the first.
        schedule: of the run.
        penalty: coefficient of KL(model || base) per response token on the rows of the step; 0 for plain SFT.
        after: called after each step with the steps taken.
    """
    sft = Sft(model, schedule)
    for step in range(schedule.steps):
        rows = batches(step)
        mask = model.language.mask(rows[1])
        loss = functional.cross_entropy(model.logits_of(*rows)[mask], rows[1][mask])
        if penalty:
            loss = loss + penalty * divergence([(1.0, model)], base, rows)
        sft.step(loss)
        if after is not None:
            after(sft.done)
