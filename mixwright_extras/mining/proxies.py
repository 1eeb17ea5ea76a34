"""Proxies: copies of the model that are trained for a few steps on some rows and read on rows held back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import RIGHT_FROM_SCORE, InputError, RowLosses, check_row_count, train_on
from mixwright_extras.mining.trainings import read_losses

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Example, Learner, TimedGrades
    from mixwright_extras.mining.crossover import TrainOnRows

HELD_BACK_SHARE, MIN_HELD_BACK, MAX_HELD_BACK = 0.2, 16, 256
"""Share of the training rows that no proxy sees and all are read on, and how many that is at least and at most."""
MIN_TRAINING_ROWS = 4 * MIN_HELD_BACK
"""Training rows below which none are held back."""


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


def make_proxy_trainer(
    learner: Learner, corpus: Corpus, numbers: NDArray[np.int64], held_back: NDArray[np.int64], sizes: Sizes
) -> TrainOnRows:
    """A trainer for the crossover test: train a copy on some rows, and read 1 - exp(-nats per token) on held-back ones.

    That error is bounded: a wrong label among the rows held back counts as one row, however sure the model is.

    Args:
        learner: copied, never changed.
        corpus: the rows.
        numbers: place in the corpus of each row that may be trained on, shape (rows,).
        held_back: place in the corpus of each row held back, shape (items,).
        sizes: of the trainings.
    """
    losses = RowLosses(learner, corpus)
    train_copy = make_copy_trainer(learner, losses, numbers, sizes)

    def train(rows: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
        return 1 - np.exp(-read_losses(train_copy(rows, seed), losses, held_back, sizes.batch))

    return train


def make_copy_trainer(
    learner: Learner, losses: RowLosses, numbers: NDArray[np.int64], sizes: Sizes
) -> Callable[[NDArray[np.int64], int], Any]:
    """A trainer of copies: places of rows and a seed, which orders the rows, give the model after its steps on them.

    Args:
        learner: copied, never changed.
        losses: of its rows.
        numbers: place in the corpus of each row, shape (rows,).
        sizes: of the trainings.
    """

    def train(rows: NDArray[np.int64], seed: int) -> Any:
        model: Any = copy.deepcopy(learner.model).eval()  # no dropout: the proxies differ by their rows alone
        rng = np.random.default_rng(seed)
        row_order = np.zeros(0, dtype=np.int64)
        while len(row_order) < sizes.steps * sizes.batch:
            row_order = np.concatenate((row_order, rng.permutation(rows)))
        batches = list(numbers[row_order[: sizes.steps * sizes.batch]].reshape(sizes.steps, sizes.batch))
        train_on(model, losses, batches, sizes.learning_rate)
        return model

    return train


def grade_greedy_answers(
    learner: Learner, model: Any, rows: Sequence[Example], grades: TimedGrades, max_new_tokens: int
) -> NDArray[np.float64]:
    """1 where the model's greedy answer to a row has full marks, else 0; shape (rows,).

    Args:
        learner: its tokenizer and form of prompts.
        model: a copy of its model.
        rows: with answers.
        grades: judge.
        max_new_tokens: tokens of an answer.
    """
    from mixwright.extend import Learner as Reader

    options = {"form": learner.form, "batch_size": learner.batch_size}
    reader = Reader(model, learner.tokenizer, learner.name, **options)
    prompts = [row.prompt for row in rows]
    answers = reader.sample(prompts, count=1, temperature=0, max_new_tokens=max_new_tokens, seed=0)
    scores = [
        grades.grade(row, completions[0].text, cut=not completions[0].finished)
        for row, completions in zip(rows, answers, strict=True)
    ]
    return (np.array(scores) >= RIGHT_FROM_SCORE).astype(float)


def shared_room(learner: Learner, rows: Sequence[Example], max_tokens: int) -> int:
    """Tokens that every prompt leaves room for. Raises InputError where that is none."""
    if learner.context is None:
        return max_tokens
    room_tokens = learner.context - max(len(learner.encode(row.prompt)) for row in rows)
    if room_tokens < 1:
        raise InputError(
            f"prompts of fewer than {learner.context} tokens", f"{learner.context - room_tokens}", "Shorten them."
        )
    return min(max_tokens, room_tokens)


def count_answer_tokens(learner: Learner, text: str) -> int:
    """Tokens of an answer, without the end token."""
    return len(learner.tokenizer(text, add_special_tokens=False)["input_ids"])


def choose_held_back(tasks: NDArray[np.str_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows no proxy sees: the same share of every task, one row at least of a task that has four.

    Raises:
        InputError: too few rows to hold any back.
    """
    size = min(max(round(HELD_BACK_SHARE * len(tasks)), MIN_HELD_BACK), MAX_HELD_BACK)
    check_row_count(len(tasks), MIN_TRAINING_ROWS)
    chosen = np.zeros(len(tasks), dtype=bool)
    for task in np.unique(tasks):
        task_rows = rng.permutation(np.flatnonzero(tasks == task))
        chosen[task_rows[: max(round(size * len(task_rows) / len(tasks)), int(len(task_rows) > 3))]] = True
    return chosen
