"""Orders of tasks from what short runs did: expected success of an order, the best one, and whether order matters. Pure.

From runs on A, and on A and then B: own[j] is the success of j after its own run; later[i, j] is what a run on j changed in
the success of i, which was trained before it; earlier[i, j] is what a run on i, before, changed in the success of j. Success
of j at the end of an order is taken to be own[j], plus earlier[i, j] of all tasks before, plus later[j, k] of all after it:
effects add up, and do not depend on what came before (the source's assumptions). Which order is best is the linear ordering
problem of the advantages a[i, j] = later[i, j] + earlier[i, j] - later[j, i] - earlier[j, i].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import InputError, Measurement, Z

Array = NDArray[np.float64]
TRANSFER_PROBE = "transfer"
"""The probe that the effects are read from."""
PLACE_MEASUREMENT, GAIN_MEASUREMENT = "place in the best order", "the best order less all tasks together"
"""Its measurements of the best order: of each task; and, where that order was tried anew, over all."""
MAX_TASKS_EXHAUSTIVE = 8
"""Up to so many tasks every order is tried."""
DRAWN_MATRICES, DEFAULT_SEED = 400, 11
"""Matrices that are drawn for the test, and for resamples; where no other is given, their seed."""
MIN_CERTAINTY, MIN_GAIN_SHARE = 0.9, 0.02
"""Certainty that orders differ, and mean success over a random order, from which on an order is worth trying."""


@dataclass(frozen=True)
class Effects:
    """What short runs did, with standard errors; K tasks."""

    own_success: Array
    """Success of each task after its own run, shape (K,)."""
    later: Array
    """[i, j]: change of i, trained first, by a run on j, shape (K, K); the diagonal is 0."""
    earlier: Array
    """[i, j]: change of j's success after its own run by a run on i before it, shape (K, K); the diagonal is 0."""
    errors: Array
    """Standard error of later[i, j] + earlier[i, j], shape (K, K)."""

    def gains(self) -> Array:
        """[i, j]: what i before j changes in the sum of both successes, shape (K, K)."""
        return self.later + self.earlier


@dataclass(frozen=True)
class OrderChoice:
    """The best order by the effects, and whether it is more than noise."""

    order: tuple[int, ...]
    """Of tasks."""
    gain: float
    """Mean success by it, less that of a random order."""
    certainty: float
    """Share of matrices without any effect of order, with these errors, whose best order gains less."""
    resampled: float
    """Share of resampled matrices in which it is better than half of the orders."""


def expected_success(effects: Effects, order: Sequence[int]) -> Array:
    """Success of each task after the tasks of `order`, which may be the beginning of an order, shape (K,); NaN elsewhere.

    Values are clipped to 0..1 after all effects were added.
    """
    success = np.full(len(effects.own_success), np.nan)
    for position, task in enumerate(order):
        before, after = list(order[:position]), list(order[position + 1 :])
        success[task] = effects.own_success[task] + effects.earlier[before, task].sum() + effects.later[task, after].sum()
    return np.clip(success, 0.0, 1.0)


def choose_order(effects: Effects, rng: np.random.Generator | None = None) -> OrderChoice:
    """The best order, with a test against no effect of order: the best of many orders is also better by chance.

    Without `rng` the draws are always the same, so that the probe and the planner come to the same choice.
    """
    rng = np.random.default_rng(DEFAULT_SEED) if rng is None else rng
    count = len(effects.own_success)
    orders = _orders(count)
    advantages = effects.gains() - effects.gains().T
    order, best = _best(advantages, orders)
    errors = np.sqrt(effects.errors**2 + effects.errors.T**2)
    below = resampled = 0
    for _ in range(DRAWN_MATRICES):
        noise = np.triu(rng.normal(size=(count, count)) * errors, 1)
        noise -= noise.T
        below += _best(noise, orders)[1] < best
        resampled += _score(advantages + noise, np.array([order]))[0] > 0  # the mean, and the median, of all orders is 0
    return OrderChoice(order, best / count, below / DRAWN_MATRICES, resampled / DRAWN_MATRICES)


def effects_of(measured: Sequence[Measurement], tasks: Sequence[str]) -> Effects:
    """What short runs did to tasks of the data. Without pairs, `later` is what a run changed from the start.

    Raises:
        InputError: a task was not measured after every run.
    """
    rows = {(row.task, row.name): row for row in measured if row.probe == TRANSFER_PROBE}

    def read(task: str, name: str) -> Measurement:
        if (task, name) not in rows:
            remedy = "Name transfer in measure.probes, and measure again."
            raise InputError(f"the probe transfer for each of {', '.join(tasks)}", f"no {name} of {task}", remedy)
        return rows[task, name]

    count, pairs = len(tasks), any(name.startswith("change from ") for _, name in rows)
    own_success = np.array([read(task, f"success after {task}").value for task in tasks])
    later, earlier, errors = np.zeros((3, count, count))
    for i, first_task in enumerate(tasks):
        for j, second_task in enumerate(tasks):
            if i != j:
                used = [read(first_task, f"change by {second_task}" if pairs else f"change at the start by {second_task}")]
                used += [read(second_task, f"change from {first_task}")] if pairs else []
                later[i, j], earlier[i, j] = used[0].value, used[1].value if pairs else 0.0
                errors[i, j] = sum(((row.high - row.low) / (2 * Z)) ** 2 for row in used) ** 0.5
    return Effects(own_success, later, earlier, errors)


def _orders(count: int) -> NDArray[np.int64] | None:
    """Every order, shape (orders, K); None where they are too many."""
    return np.array(list(itertools.permutations(range(count)))) if count <= MAX_TASKS_EXHAUSTIVE else None


def _score(advantages: Array, orders: NDArray[np.int64]) -> Array:
    """Half of the sum of advantages of each task over those after it: sum of successes, less that of a random order."""
    count = orders.shape[1]
    total = np.zeros(len(orders))
    for first, second in itertools.combinations(range(count), 2):
        total += advantages[orders[:, first], orders[:, second]]
    return total / 2


def _best(advantages: Array, orders: NDArray[np.int64] | None) -> tuple[tuple[int, ...], float]:
    if orders is not None:
        scores = _score(advantages, orders)
        best_index = int(scores.argmax())
        return tuple(orders[best_index].tolist()), float(scores[best_index])
    order = np.argsort(-advantages.sum(1), kind="stable").tolist()
    improved = True
    while improved:
        improved = False
        for task in range(len(order)):
            others_in_order = [other_task for other_task in order if other_task != task]
            moved_orders = [
                (*others_in_order[:best_index], task, *others_in_order[best_index:]) for best_index in range(len(order))
            ]
            scores = _score(advantages, np.array(moved_orders))
            if scores.max() > _score(advantages, np.array([order]))[0] + 1e-12:
                order, improved = list(moved_orders[int(scores.argmax())]), True
    return tuple(order), float(_score(advantages, np.array([order]))[0])
