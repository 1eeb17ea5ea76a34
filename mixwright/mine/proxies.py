"""Crossover test: short runs of a copy of the model on the hard, the easy and random rows decide which end to keep."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.errors import InputError
from mixwright.estimates.intervals import mean_interval
from mixwright.measure.bursts import read_losses, train_on
from mixwright.measure.row_losses import RowLosses
from mixwright.mine.choosing import best_within

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

ENDS = ("hard", "easy")
HELD_BACK, LEAST, MOST = 0.1, 16, 256
"""Share of the training rows that no proxy sees and all are read on, and how many that is at least and at most."""


@dataclass(frozen=True)
class Crossover:
    """Which end wins against random rows, by the loss on rows that no proxy saw."""

    word: str
    """hard, easy, or "keep all" where neither is better than random rows beyond doubt."""
    gains: dict[str, tuple[float, float, float]]
    """Per end: nats per token better than random rows, and its 95 % interval over held-back rows and pairs of runs."""
    steps: int
    """Optimiser steps that all proxies took together."""


@dataclass(frozen=True)
class Proxies:
    """Sizes of the test."""

    steps: int = 100
    """Optimiser steps of each proxy."""
    batch: int = 16
    """Rows per step."""
    learning_rate: float = 5e-4
    runs: int = 2
    """Random subsets and orders of rows, each tried with both ends."""


def crossover(
    learner: Learner,
    corpus: Corpus,
    numbers: np.ndarray,
    tasks: list[np.ndarray],
    scores: np.ndarray,
    keep: float,
    sizes: Proxies,
    rng: np.random.Generator,
) -> Crossover:
    """Train a copy of the model on each end and on random rows, for as many steps, and compare losses on held-back rows.

    Args:
        learner: copied, never changed.
        corpus: the rows.
        numbers: place of each training row in the corpus, shape (rows,).
        tasks: places among these rows, per task.
        scores: high is hard, shape (rows,); rows that are NaN are left out.
        keep: share of the rows that is to be kept.
        sizes: of the test.
        rng: of subsets and orders.

    Raises:
        InputError: too few rows to hold any back.
    """
    losses = RowLosses(learner, corpus)
    gains: dict[str, list[np.ndarray]] = {end: [] for end in ENDS}
    for _ in range(sizes.runs):
        back = _held_back(len(numbers), rng)
        left = np.where(back, np.nan, scores)
        chance = np.where(np.isnan(left), np.nan, rng.random(len(left)))
        order = int(rng.integers(2**31))
        found = {}
        for name, ranks in (("hard", left), ("easy", -left), ("random", chance)):
            rows = numbers[best_within(ranks, tasks, keep)]
            model: Any = copy.deepcopy(learner.model).eval()  # no dropout: the proxies differ by their rows alone
            draws = np.random.default_rng(order)
            train_on(model, losses, [draws.choice(rows, sizes.batch) for _ in range(sizes.steps)], sizes.learning_rate)
            found[name] = read_losses(model, losses, numbers[back], sizes.batch)
        for end in ENDS:
            gains[end].append(found["random"] - found[end])
    told = {end: mean_interval(np.concatenate(parts)) for end, parts in gains.items()}
    better = [end for end in ENDS if told[end].low > 0 and all(part.mean() > 0 for part in gains[end])]
    word = max(better, key=lambda end: told[end].value) if better else "keep all"
    return Crossover(word, {end: (i.value, i.low, i.high) for end, i in told.items()}, 3 * sizes.runs * sizes.steps)


def _held_back(count: int, rng: np.random.Generator) -> np.ndarray:
    size = min(max(round(HELD_BACK * count), LEAST), MOST)
    if count < 4 * size:
        raise InputError(f"{4 * LEAST} training rows or more, to hold some back", str(count), "Keep all of so few.")
    chosen = np.zeros(count, dtype=bool)
    chosen[rng.permutation(count)[:size]] = True
    return chosen
