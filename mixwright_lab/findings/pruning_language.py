"""Finding on pruning in a tiny language model: hard examples where data are abundant, easy ones where they are scarce.

A GPT learns which of two numbers is larger. 30 % of its examples are kept: at random, or the hardest or easiest by a score
that costs a few short runs, within each answer, so that no end holds one answer only. Kept rows are trained on for as many
steps as all rows would be (each is seen more often) and for as many epochs (fewer steps).

Source: Sorscher et al., Beyond neural scaling laws: beating power law scaling via data pruning, 2206.14486; scores of Paul
    et al., 2107.07075 (EL2N) and Toneva et al., 1812.05159 (forgetting).
Unit: test error, levels weighted as in nature.
Cost: about 110 CPU seconds per seed.
Blind spot: a task with a boundary and many alike examples, trained for many epochs; language models see theirs one to three
times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from mixwright.contracts import Finding
from mixwright.records import Curve, Expectation, Plot, difference
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.comparison import ANSWERS, DIGITS, Comparison, language, shares

SCARCE, ABUNDANT = 100, 6400
SIZES = (SCARCE, 800, ABUNDANT)
"""Examples before pruning."""
KEPT = 0.3
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


class PruningLanguage(Finding):
    """Comparison of numbers, 30 % of 100, 800 or 6,400 examples kept at random, hard or easy."""

    CLAIM = (
        "Scores from short runs tell what to keep: hard examples where data are abundant, easy ones where they are scarce."
    )
    SOURCE = "Sorscher et al., Beyond neural scaling laws: beating power law scaling via data pruning, 2206.14486"
    SHOWS = "x"
    POPULAR = "x"
    FEATURES = ("planners/proportional",)
    NOISE = (f"random, {ABUNDANT} examples",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(40, 16, proxies=1, proxy_steps=12, test=50),
        "laptop": Settings(),
    }
    EXPECT = (
        Expectation(
            f"{ABUNDANT} examples, as many steps: random - hard",
            difference(f"random, {ABUNDANT} examples", f"hard, {ABUNDANT} examples", "error, as many steps"),
            0.002,
            "x",
        ),
    )
    PLOTS = (
        Plot(
            "Test error where 30 % of the examples are kept, as many steps",
            "examples before pruning",
            "test error",
            tuple(
                Curve(way, tuple((float(size), f"{way}, {size} examples", "error, as many steps") for size in SIZES))
                for way in ("random", "hard", "easy")
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Every way at every size, another score, and wrong labels."""
        ways = [f"{way}, {size} examples" for way in ("random", "hard", "easy") for size in SIZES]
        return (*ways, *(f"{way}, {ABUNDANT} examples" for way in ("forgotten", "random, noise", "hard, noise")))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Test error after as many steps, and after as many epochs, as all rows would have."""
        way, size = arm.removesuffix(" examples").rsplit(", ", 1)
        rng = np.random.default_rng((seed, int(size)))
        rows = examples(int(size), 0.05 if way.endswith("noise") else 0.0, rng)
        if again:
            rng = np.random.default_rng((seed, int(size), 1))
        score = {"random": _at_random, "forgotten": _forgetting}.get(way.removesuffix(", noise"), _el2n)(rows, settings, rng)
        kept = best_of(-score if way == "easy" else score, rows.answers)
        short = max(round(KEPT * settings.steps), 1)
        found = {"wrong labels kept": float(rows.wrong[kept].mean())}
        for name, steps in (("error, as many steps", settings.steps), ("error, as many epochs", short)):
            found[name] = error(trained(rows, kept, steps, int(rng.integers(2**31)), settings), settings)
        return found


def examples(size: int, noise: float, rng: np.random.Generator) -> Rows:
    """Examples of the train split, levels as in nature, a share of the labels wrong."""
    levels = rng.choice(DIGITS, size, p=shares()) + 1
    made = [Comparison().make(int(rng.integers(2**31)), float(level), "train") for level in levels]
    wrong = rng.random(size) < noise
    answers = np.array([ANSWERS.index(str(example.answer)) for example in made]) ^ wrong
    prompts = LANGUAGE.encode_prompts([str(example.prompt) for example in made])
    return Rows(prompts, LANGUAGE.encode_responses([f"# {ANSWERS[answer]}" for answer in answers]), answers, wrong)


def best_of(score: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Places of the `KEPT` share with the highest score within each answer."""
    own = [np.flatnonzero(answers == answer) for answer in range(len(ANSWERS))]
    return np.concatenate([rows[np.argsort(-score[rows], kind="stable")][: max(round(KEPT * len(rows)), 1)] for rows in own])


def trained(rows: Rows, kept: np.ndarray, steps: int, seed: int, settings: Settings, after=None) -> GPT:
    """A fresh model after `steps` on these rows, in an order of its own for each epoch."""
    torch.manual_seed(seed)
    model = GPT(LANGUAGE, settings.width)
    rng, waiting = np.random.default_rng(seed), [np.zeros(0, dtype=int)]

    def batch(_: int) -> Batch:
        while len(waiting[0]) < settings.batch:
            waiting[0] = np.concatenate((waiting[0], rng.permutation(kept)))
        now, waiting[0] = np.split(waiting[0], [settings.batch])
        return Batch(rows.prompts[now], rows.responses[now])

    fit(
        model, LANGUAGE, batch, Schedule(steps, settings.rate), None if after is None else lambda done, _: after(model, done)
    )
    return model


@torch.no_grad()
def _off(model: GPT, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Length of the difference between prediction and label, mean over response tokens, and whether the answer is right."""
    chances = model.logits_of(rows.prompts, rows.responses).softmax(-1)
    labels = torch.nn.functional.one_hot(rows.responses, chances.shape[-1])
    right = chances[:, 1].argmax(-1) == rows.responses[:, 1]
    return (chances - labels).norm(dim=-1).mean(1).numpy(), right.numpy()


def _at_random(rows: Rows, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(rows.answers))


def _el2n(rows: Rows, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """EL2N: the error early in training, mean over runs."""
    every, seeds = np.arange(len(rows.answers)), rng.integers(2**31, size=settings.proxies)
    return np.mean([_off(trained(rows, every, settings.proxy_steps, int(s), settings), rows)[0] for s in seeds], 0)


def _forgetting(rows: Rows, settings: Settings, rng: np.random.Generator) -> np.ndarray:
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
    found = []
    for level in range(1, DIGITS + 1):
        made = [Comparison().make(index, float(level), "eval") for index in range(settings.test)]
        prompts = LANGUAGE.encode_prompts([str(example.prompt) for example in made])
        responses = LANGUAGE.encode_responses([f"# {example.answer}" for example in made])
        found.append(1 - _off(model, Rows(prompts, responses, np.zeros(0), np.zeros(0)))[1].mean())
    return float(shares() @ found)
