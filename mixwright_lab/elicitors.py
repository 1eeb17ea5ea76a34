"""Elicitors that leave weights as they are: CoT-decoding, and steering vectors that are added where a response begins.

Steering acts at the last place of the prompt alone: it chooses how the response begins, and what is written behind that is
the model's own.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from mixwright.records import Example
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Rollouts
from mixwright_lab.training.language import END, HASH, PAD

STRENGTH_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Norms tried of a mean difference, as multiples of the mean norm of the stream that it is added to."""
RANDOM_DRAWS = 8
"""Random vectors, and random first tokens of each problem, of which the mean is taken."""


TRAINING_STEPS_AND_RATE = (60, 0.05)
"""Adam steps and learning rate of a trained steering vector."""


def elicited(
    model: GPT, known: Sequence[Example], traces: Sequence[str], tested: Sequence[Example], rng: np.random.Generator
) -> dict[str, float]:
    """Success with CoT-decoding, with steering vectors, and with random vectors and random first numbers.

    Args:
        model: that is decoded or steered.
        known: problems that vectors are made from.
        traces: a worked-out response to each of them.
        tested: other problems.
        rng: of what is random.
    """

    def steered(examples: Sequence[Example], vector: Tensor) -> float:
        return float(steered_paths(model, examples, vector).rewards.mean())

    vector, (direction, norm) = trained_vector(model, known, traces), direction_of(model, known)
    few = known[:: max(len(known) // 64, 1)]
    strength = norm * max(STRENGTH_MULTIPLES, key=lambda factor: steered(few, factor * norm * direction))
    drawn = torch.from_numpy(rng.normal(size=(RANDOM_DRAWS, len(vector)))).float()
    drawn = float(vector.norm()) * drawn / drawn.norm(dim=1, keepdim=True)
    numbers = torch.tensor([token for word, token in model.language.index.items() if word.isdecimal()])
    firsts = numbers[torch.from_numpy(rng.integers(len(numbers), size=(len(tested), RANDOM_DRAWS)))]
    return {
        "CoT-decoding": float(most_certain(model, tested, 2).mean()),
        "CoT-decoding, 10 paths": float(most_certain(model, tested, 10).mean()),
        "steering": steered(tested, vector),
        "strength": float(vector.norm()) / norm,
        "steering, mean difference": steered(tested, strength * direction),
        "random vector": float(np.mean([steered(tested, one) for one in drawn])),
        "random first token": float(paths(model, tested, firsts).rewards.mean()),
    }


def paths(model: GPT, examples: Sequence[Example], first: Int[Tensor, "examples paths"]) -> Rollouts:
    """Greedy continuations of given first tokens."""
    prompts, (count, longest) = _prompts(model, examples), (first.shape[1], model.language.response_tokens)
    begun = torch.cat((prompts.repeat_interleave(count, 0), first.reshape(-1, 1)), 1)
    rest = model.sample(begun, 1, longest - 1, greedy=True, generator=torch.Generator())[:, 0]
    ended = first.reshape(-1, 1) == model.language.index[END]
    rest = rest.masked_fill(ended, model.language.index[PAD])
    tokens = torch.cat((begun[:, -1:], rest), 1).view(len(prompts), count, longest)
    return Rollouts(list(examples), prompts, tokens, model.language)


@torch.no_grad()
def most_certain(model: GPT, examples: Sequence[Example], count: int) -> Float[np.ndarray, " examples"]:
    """CoT-decoding: what is earned by the continuation with the largest margin, of those of the likeliest first tokens.

    The margin is how much likelier the best token of the answer is than the second best; it is 0 without an answer.

    Args:
        model: that is decoded.
        examples: to be answered.
        count: first tokens that are tried.
    """
    prompts = _prompts(model, examples)
    found = paths(model, examples, model(prompts)[0][:, -1].topk(count).indices)
    tokens = found.tokens.flatten(0, 1)
    top = model.logits_of(prompts.repeat_interleave(count, 0), tokens).softmax(-1).topk(2).values
    answer = torch.roll(tokens == model.language.index[HASH], 1, 1)
    answer[:, 0] = False
    margin = ((top[..., 0] - top[..., 1]) * answer).sum(1) / answer.sum(1).clamp(min=1)
    best = margin.view(len(prompts), count).argmax(1).numpy()
    return found.rewards[np.arange(len(prompts)), best]


@torch.no_grad()
def steered_paths(model: GPT, examples: Sequence[Example], vector: Float[Tensor, " width"]) -> Rollouts:
    """Greedy responses of which the first token is chosen with a vector added behind the first block."""
    prompts = _prompts(model, examples)
    return paths(model, examples, model(prompts, add=_at_the_end(prompts, vector))[0][:, -1:].argmax(-1))


def trained_vector(model: GPT, examples: Sequence[Example], texts: Sequence[str]) -> Float[Tensor, " width"]:
    """The vector that, added behind the first block, makes the first words of these responses likeliest."""
    prompts, first = _prompts(model, examples), model.language.encode_responses(texts)[:, 0]
    vector = torch.zeros(model.places.embedding_dim, requires_grad=True)
    optimiser = torch.optim.Adam([vector], lr=TRAINING_STEPS_AND_RATE[1])
    for _ in range(TRAINING_STEPS_AND_RATE[0]):
        logits = model(prompts, add=_at_the_end(prompts, vector))[0][:, -1]
        (vector.grad,) = torch.autograd.grad(functional.cross_entropy(logits, first), [vector])
        optimiser.step()
    return vector.detach()


@torch.no_grad()
def direction_of(model: GPT, examples: Sequence[Example]) -> tuple[Float[Tensor, " width"], float]:
    """Mean stream behind the first block where a worked-out response begins, minus where a direct one does, of unit norm.

    Both means are over the last places of the same prompts, each weighted by how likely the model begins that format there:
    what many samples per prompt would give. The second value is the mean norm of the stream.
    """
    prompts = _prompts(model, examples)
    stream = model.hidden(prompts)[0][:, -1].double()
    direct = model(prompts)[0][:, -1].double().softmax(-1)[:, model.language.index[HASH], None]
    worked = 1 - direct
    difference = (worked * stream).sum(0) / worked.sum() - (direct * stream).sum(0) / direct.sum()
    return (difference / difference.norm()).float(), float(stream.norm(dim=1).mean())


def _at_the_end(prompts: Int[Tensor, "examples prompt"], vector: Float[Tensor, " width"]) -> tuple[int, Tensor]:
    """Behind the first block, at the last place alone."""
    return 0, functional.pad(vector[None], (0, 0, prompts.shape[1] - 1, 0))


def _prompts(model: GPT, examples: Sequence[Example]) -> Int[Tensor, "examples prompt"]:
    return model.language.encode_prompts([str(example.prompt) for example in examples])
