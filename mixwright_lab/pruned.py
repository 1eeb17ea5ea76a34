"""Comparisons to prune: rows with known wrong labels, models trained on those that are kept, scores from short runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.comparison import ANSWERS, DIGITS, Comparison, language, shares

KEPT_SHARE = 0.3
"""Share of the examples that is kept."""
LANGUAGE = language()


@dataclass(frozen=True)
class Settings:
    """Of the model and its training."""

    steps: int = 600
    """Optimiser steps on all rows."""
    width: int = 32
    rate: float = 3e-3
    batch: int = 64
    proxies: int = 3
    """Short runs that the score is the mean of."""
    proxy_steps: int = 120
    test: int = 500
    """Test examples per level."""


@dataclass(frozen=True)
class Rows:
    """Examples as tokens."""

    prompts: Tensor
    responses: Tensor
    answers: np.ndarray
    """Place in `ANSWERS`, as the label has it."""
    wrong: np.ndarray
    """Whether the label was made wrong."""


def examples(size: int, noise: float, rng: np.random.Generator, *, flip: int | None = None) -> Rows:
    """Examples of the train split, levels as in nature, a share of the labels wrong, and all those of the level `flip`."""
    levels = rng.choice(DIGITS, size, p=shares()) + 1
    made = [Comparison().make(int(rng.integers(2**31)), float(level), "train") for level in levels]
    wrong = (rng.random(size) < noise) ^ (levels == flip)
    answers = np.array([ANSWERS.index(str(example.answer)) for example in made]) ^ wrong
    prompts = LANGUAGE.encode_prompts([str(example.prompt) for example in made])
    return Rows(prompts, LANGUAGE.encode_responses([f"# {ANSWERS[answer]}" for answer in answers]), answers, wrong)


def best_of(score: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Places of the `KEPT_SHARE` share with the highest score within each answer."""
    own = [np.flatnonzero(answers == answer) for answer in range(len(ANSWERS))]
    return np.concatenate(
        [rows[np.argsort(-score[rows], kind="stable")][: max(round(KEPT_SHARE * len(rows)), 1)] for rows in own]
    )


def trained(
    rows: Rows, kept: np.ndarray, steps: int, seed: int, settings: Settings, after: Callable[[GPT, int], None] | None = None
) -> GPT:
    """A fresh model after `steps` on these rows, in an order of its own for each epoch."""
    torch.manual_seed(seed)
    model = GPT(LANGUAGE, settings.width)
    rng, waiting = np.random.default_rng(seed), [np.zeros(0, dtype=int)]

    def batch(_: int) -> Batch:
        while len(waiting[0]) < settings.batch:
            waiting[0] = np.concatenate((waiting[0], rng.permutation(kept)))
        now, waiting[0] = np.split(waiting[0], [settings.batch])
        return Batch(rows.prompts[now], rows.responses[now])

    fit(model, batch, Schedule(steps, settings.rate), None if after is None else lambda done, _: after(model, done))
    return model


@torch.no_grad()
def _off(model: GPT, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Length of the difference between prediction and label, mean over response tokens, and whether the answer is right."""
    chances = model.logits_of(rows.prompts, rows.responses).softmax(-1)
    labels = torch.nn.functional.one_hot(rows.responses, chances.shape[-1])
    right = chances[:, 1].argmax(-1) == rows.responses[:, 1]
    return (chances - labels).norm(dim=-1).mean(1).numpy(), right.numpy()


def is_right(model: GPT, rows: Rows) -> np.ndarray:
    """Whether a model gives the rows' answers, bool of shape (rows,)."""
    return _off(model, rows)[1]


def at_random(rows: Rows, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """Scores that say nothing."""
    return rng.random(len(rows.answers))


def el2n(rows: Rows, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """EL2N: the error early in training, mean over runs."""
    every, seeds = np.arange(len(rows.answers)), rng.integers(2**31, size=settings.proxies)
    return np.mean([_off(trained(rows, every, settings.proxy_steps, int(s), settings), rows)[0] for s in seeds], 0)


def forgetting(rows: Rows, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """How often an answer that was right became wrong between ten passes; never right counts most. Ties at random."""
    passes: list[np.ndarray] = []

    def look(model: GPT, done: int) -> None:
        if done % max(settings.proxies * settings.proxy_steps // 10, 1) == 0:
            passes.append(_off(model, rows)[1])

    steps = settings.proxies * settings.proxy_steps
    trained(rows, np.arange(len(rows.answers)), steps, int(rng.integers(2**31)), settings, look)
    right = np.array(passes)
    lost = (right[:-1] & ~right[1:]).sum(0)
    return np.where(right.any(0), lost, len(right)) + rng.random(len(rows.answers)) / 2


def error(model: GPT, settings: Settings) -> float:
    """Greedy, over the eval split, levels weighted as in nature."""
    return float(shares() @ errors_by_level(model, settings))


def errors_by_level(model: GPT, settings: Settings) -> np.ndarray:
    """Greedy, over the eval split, shape (levels,)."""
    found = []
    for level in range(1, DIGITS + 1):
        made = [Comparison().make(index, float(level), "eval") for index in range(settings.test)]
        prompts = LANGUAGE.encode_prompts([str(example.prompt) for example in made])
        responses = LANGUAGE.encode_responses([f"# {example.answer}" for example in made])
        found.append(1 - is_right(model, Rows(prompts, responses, np.zeros(0), np.zeros(0))).mean())
    return np.array(found)
