"""Stages of GRPO in every order, beginnings being trained once, and how orders compare with what was expected of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from mixwright.estimates.orders import Effects, expected_success
from mixwright.records import Example
from mixwright_lab.changes import entropy_of, spearman
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Settings
from mixwright_lab.training.rules import UniformRule

RowsByTask = Sequence[Sequence[Example]]
"""Problems of each task."""
Order = tuple[int, ...]


def trained(model: GPT, rows: Sequence[Example], steps: int, settings: Settings, seed: int) -> GPT:
    """A copy after so many steps with a new optimiser."""
    arena, rule = Arena(rows, model, settings, seed), UniformRule(len(rows), seed)
    for _ in range(steps):
        rule.step(arena)
    return arena.model


def success_of(model: GPT, held_out: RowsByTask, seed: int) -> np.ndarray:
    """Share of four samples per problem that are right, of each task, shape (tasks,)."""
    return np.array([Arena(rows, model, Settings(), seed).look(rows, 4).rewards.mean() for rows in held_out])


def entropy_change(start: GPT, model: GPT, rows: Sequence[Example]) -> float:
    """Nats per token on own responses, less those of the start on its own."""
    before, after = (entropy_of(each, Arena(rows, each, Settings(), 0).look(rows, 4)) for each in (start, model))
    return after - before


def success_by_order(
    start: GPT, train: RowsByTask, held_out: RowsByTask, steps: int, settings: Settings, seed: int
) -> dict[Order, float]:
    """Mean success over tasks after every order of stages."""
    models: dict[Order, GPT] = {(): start}
    found: dict[Order, float] = {}
    while models:
        done, model = models.popitem()
        if len(done) == len(train):
            found[done] = float(success_of(model, held_out, seed).mean())
        for task in set(range(len(train))) - set(done):
            stage = seed + len(done) * len(train) + task
            models[*done, task] = trained(model, train[task], steps, settings, stage)
    return found


def additive_prediction(before: np.ndarray, changes: np.ndarray) -> Effects:
    """Effects as 2507.14783 adds them up: a later task changes an earlier one as it changes the start.

    Args:
        before: success of each task at the start, shape (tasks,).
        changes: [i, j] is what a run on i from the start changed in j, shape (tasks, tasks).
    """
    later, none = changes.T.copy(), np.zeros_like(changes)
    np.fill_diagonal(later, 0.0)
    return Effects(before + changes.diagonal(), later, none, none)


def compared(effects: Effects, actual: Mapping[Order, float]) -> dict[str, float]:
    """Success of the order that is expected to be best, of its reverse, of all, of the best; rank correlation and rank."""
    orders = list(itertools.permutations(range(len(effects.own))))
    expected = [float(expected_success(effects, order).mean()) for order in orders]
    order, values = orders[int(np.argmax(expected))], [actual[order] for order in orders]
    return {
        "success": actual[order],
        "of the reverse": actual[order[::-1]],
        "mean of orders": float(np.mean(values)),
        "of the best": max(values),
        "Spearman": spearman(expected, values),
        "rank": 1.0 + sum(value > actual[order] for value in values),
    }
