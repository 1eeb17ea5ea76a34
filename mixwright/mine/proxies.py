"""Proxies of pruning: copies of the model that are trained for a few steps on some rows and read on rows held back."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixwright.errors import InputError
from mixwright.measure.bursts import read_losses, train_on
from mixwright.measure.row_losses import RowLosses

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.mine.crossover import Train

HELD_BACK, LEAST, MOST = 0.2, 16, 256
"""Share of the training rows that no proxy sees and all are read on, and how many that is at least and at most."""


@dataclass(frozen=True)
class Sizes:
    """Of the short trainings."""

    steps: int = 100
    """Optimiser steps of each."""
    batch: int = 16
    """Rows per step."""
    learning_rate: float = 5e-4
    runs: int = 4
    """Seeds: random rows and orders that every end is tried with."""


def proxies(learner: Learner, corpus: Corpus, numbers: NDArray[np.int64], back: NDArray[np.int64], sizes: Sizes) -> Train:
    """A trainer for the crossover test: train a copy on some rows, and read 1 - exp(-nats per token) on held-back ones.

    That error is bounded: a wrong label among the rows held back counts as one row, however sure the model is.

    Args:
        learner: copied, never changed.
        corpus: the rows.
        numbers: place in the corpus of each row that may be trained on, shape (rows,).
        back: place in the corpus of each row held back, shape (items,).
        sizes: of the trainings.
    """
    losses = RowLosses(learner, corpus)

    def train(rows: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
        model: Any = copy.deepcopy(learner.model).eval()  # no dropout: the proxies differ by their rows alone
        order = np.random.default_rng(seed)
        waiting = np.zeros(0, dtype=np.int64)
        while len(waiting) < sizes.steps * sizes.batch:
            waiting = np.concatenate((waiting, order.permutation(rows)))
        batches = list(numbers[waiting[: sizes.steps * sizes.batch]].reshape(sizes.steps, sizes.batch))
        train_on(model, losses, batches, sizes.learning_rate)
        return 1 - np.exp(-read_losses(model, losses, back, sizes.batch))

    return train


def held_back(tasks: NDArray[np.str_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows no proxy sees: the same share of every task, one row at least of a task that has four.

    Raises:
        InputError: too few rows to hold any back.
    """
    size = min(max(round(HELD_BACK * len(tasks)), LEAST), MOST)
    if len(tasks) < 4 * LEAST:
        raise InputError(f"{4 * LEAST} training rows or more, to hold some back", str(len(tasks)), "Keep all of so few.")
    chosen = np.zeros(len(tasks), dtype=bool)
    for task in np.unique(tasks):
        own = rng.permutation(np.flatnonzero(tasks == task))
        chosen[own[: max(round(size * len(own) / len(tasks)), int(len(own) > 3))]] = True
    return chosen
