"""SFT loop in bare torch: a schedule, a counted step on any loss, and a fit of a tiny GPT to batches of texts."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from mixwright.errors import InputError
from mixwright_lab.training.gpt import GPT


@dataclass(frozen=True)
class Schedule:
    """Of an SFT run with AdamW: linear warm-up, flat, linear to 0 at the end."""

    steps: int
    """Optimiser steps of the whole run."""
    rate: float
    """Peak learning rate."""
    warm: int = 50
    """Steps of warm-up."""
    fall: float = 0.5
    """Share of the steps, the last ones, over which the learning rate falls to 0; 0 keeps it up."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Of AdamW."""
    weight_decay: float = 0.0
    """Of AdamW."""
    clip: float = 1.0
    """Largest norm of a step's gradients."""
    fused: bool = False
    """One kernel for all parameters: quicker where there are many, rounded otherwise."""

    def rate_at(self, step: int) -> float:
        """Learning rate of a step, 0 is the first."""
        rise = (step + 1) / self.warm if self.warm else 1.0
        left = (self.steps - step) / (self.fall * self.steps) if self.fall else 1.0
        return self.rate * min(1.0, rise, left)


class Sft:
    """A model in training, with what it has cost.

    Args:
        model: trained in place.
        schedule: of the run.
    """

    def __init__(self, model: nn.Module, schedule: Schedule) -> None:
        self.model, self.schedule = model, schedule
        self.done = 0
        """Steps taken."""
        self.seconds = 0.0
        """CPU seconds of the steps, and of the losses that were given as functions."""
        options = {"lr": schedule.rate, "betas": schedule.betas, "weight_decay": schedule.weight_decay}
        self.optimizer = torch.optim.AdamW(model.parameters(), **options, fused=schedule.fused)

    def step(self, loss: Float[Tensor, ""] | Callable[[], Float[Tensor, ""]]) -> float:
        """One optimiser step down this loss, or down what a function gives; returns its value.

        Raises:
            InputError: the schedule is over.
        """
        if self.done >= self.schedule.steps:
            raise InputError(f"{self.schedule.steps} steps, as the schedule has", "one more", "Make the schedule longer.")
        begun = time.process_time()
        value = loss() if callable(loss) else loss
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate_at(self.done)
        value.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        self.seconds += time.process_time() - begun
        return float(value.detach())


@dataclass(frozen=True)
class Batch:
    """Rows of one step, as texts or as tokens."""

    prompts: Sequence[str] | Int[Tensor, "rows prompt"]
    responses: Sequence[str] | Int[Tensor, "rows response"]
    weights: Float[Tensor, "rows response"] | None = None
    """Of each response token, texts padded to the language's longest response; 0 leaves it out; 1 by default."""


def nll(model: GPT, batch: Batch) -> Float[Tensor, ""]:
    """Weighted mean over the response tokens of a batch, in nats. Raises InputError where no token has a weight."""
    language, prompts, responses = model.language, batch.prompts, batch.responses
    prompts = prompts if isinstance(prompts, Tensor) else language.encode_prompts(prompts)
    responses = responses if isinstance(responses, Tensor) else language.encode_responses(responses)
    weights = language.mask(responses).float()
    longest = int(weights.sum(1).max())
    if batch.weights is not None:
        weights = weights * batch.weights
    if not float(weights.sum()) > 0:
        raise InputError("a batch with a weight above 0", "none", "Give some response token a weight.")
    responses, weights = responses[:, :longest], weights[:, :longest]
    logits = model.logits_of(prompts, responses)
    each = functional.cross_entropy(logits.flatten(0, 1), responses.flatten(), reduction="none")
    return (each * weights.flatten()).sum() / weights.sum()


def fit(
    model: GPT,
    batches: Callable[[int], Batch],
    schedule: Schedule,
    after: Callable[[int, float], None] | None = None,
) -> Sft:
    """Train a model in place.

    Args:
        model: whose language the texts are of.
        batches: the batch of a step, 0 is the first.
        schedule: how many steps at which rates.
        after: called after each step with the steps taken and the loss.

    Returns:
        The training, with its count of steps and CPU seconds.
    """
    sft = Sft(model, schedule)
    for step in range(schedule.steps):
        batch = batches(step)
        loss = sft.step(lambda batch=batch: nll(model, batch))
        if after is not None:
            after(sft.done, loss)
    return sft


def fit_rows(
    model: GPT, rows: Sequence[tuple[str, str]], schedule: Schedule, rng: np.random.Generator, *, count: int = 64
) -> Sft:
    """Train a model in place on `count` random rows a step, each a prompt and its response."""
    prompts = model.language.encode_prompts([prompt for prompt, _ in rows])
    responses = model.language.encode_responses([response for _, response in rows])

    def batch(_: int) -> Batch:
        drawn = torch.from_numpy(rng.integers(len(rows), size=count))
        return Batch(prompts[drawn], responses[drawn])

    return fit(model, batch, schedule)
