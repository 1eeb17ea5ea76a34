"""Experiment behind the transfer probe: short runs on one task, on two in turn, and on all, from copies of a model."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from mixwright.extend import Losses, Measurement, estimate_crossed, train_on
from mixwright_extras.orders.effects import (
    GAIN_MEASUREMENT,
    MIN_CERTAINTY,
    MIN_GAIN_SHARE,
    PLACE_MEASUREMENT,
    choose_order,
    effects_of,
)

ReadModel = Callable[[nn.Module], Mapping[str, Mapping[str, NDArray[np.float64]]]]
"""(model) -> what is read (success, entropy) -> task -> value of each held-out item, shape (items,)."""
UNIT_BY_MEASUREMENT = {"success": "share", "entropy": "nats per token"}
START_LABEL = "start"
AFTER_LABEL = " after "
THEN_LABEL = ", then "
Draws = Mapping[str, Sequence[NDArray[np.int64]]]
"""Row numbers of each step, per task."""
BEST_ORDER_LABEL = "the best order"
TOGETHER_LABEL = "all tasks together"
"""Name of the run that has the rows of all single runs in one shuffled sequence, and their steps."""


@dataclass(frozen=True)
class RunSizes:
    """Sizes of the experiment."""

    steps: int
    """Steps of each run."""
    batch: int
    """Rows per step."""
    learning_rate: float
    """The run's own."""
    seeds: int
    """Runs of each kind, with rows drawn anew."""
    pairs: bool
    """Whether each run goes on with every other task."""
    confirm_steps_factor: int = 2
    """Times `steps` that each task of the best order gets where that is tried anew, where orders are shown to differ."""


def measure_transfer(
    model: nn.Module,
    losses: Losses,
    read: ReadModel,
    train: Mapping[str, NDArray[np.int64]],
    sizes: RunSizes,
    rng: np.random.Generator,
) -> list[Measurement]:
    """What every task's success and entropy are at the start, and after runs on each task, each pair in turn, and all tasks;
    and after the best order by these, where orders are shown to differ.

    Args:
        model: copied, never touched.
        losses: of numbered rows.
        read: held-out items of a model.
        train: row numbers per task; each task is trained on alone.
        sizes: of the experiment.
        rng: of the rows that are drawn.
    """
    start = read(model)
    readings_by_path: dict[tuple[str, ...], list[Mapping[str, Mapping[str, NDArray[np.float64]]]]] = {(): [start]}
    pairs = len(train) * (len(train) - 1) if sizes.pairs else 0
    runs = sizes.seeds * (2 * len(train) + pairs)
    for _ in range(sizes.seeds):
        draws = _draw_rows(train, sizes, rng)
        for path, branch in _branches(model, losses, draws, sizes):
            readings_by_path.setdefault(path, []).append(read(branch))
    rows = [
        _make_row(number_name, task, path, read_of)
        for path, read_of in readings_by_path.items()
        for number_name in start
        for task in start[number_name]
    ]
    rows += _changes(readings_by_path, list(train), pairs=sizes.pairs)
    choice = choose_order(effects_of(rows, list(train)))
    order = [list(train)[task_index] for task_index in choice.order]
    for number, task in enumerate(order, 1):
        rows.append(Measurement("transfer", task, PLACE_MEASUREMENT, number, number, number, 1, "place"))
    if choice.certainty >= MIN_CERTAINTY and choice.gain >= MIN_GAIN_SHARE:
        rows += _try_order(
            order, model, losses, read, train, replace(sizes, steps=sizes.confirm_steps_factor * sizes.steps), rng
        )
        runs += 2 * sizes.seeds * sizes.confirm_steps_factor * len(train)
    trained = float(sizes.batch * sizes.steps * runs)
    return [*rows, Measurement("transfer", "*", "rows_trained", trained, trained, trained, 1, "rows")]


def _branches(
    model: nn.Module, losses: Losses, draws: Draws, sizes: RunSizes
) -> Iterator[tuple[tuple[str, ...], nn.Module]]:
    """A copy after each task's run, one after each pair in turn, and one after all tasks together."""
    for first_task, batches in draws.items():
        branch = copy.deepcopy(model)
        train_on(branch, losses, batches, sizes.learning_rate)
        yield (first_task,), branch
        for second_task, later_batches in draws.items() if sizes.pairs else ():
            if second_task != first_task:
                later = copy.deepcopy(branch)
                train_on(later, losses, later_batches, sizes.learning_rate)
                yield (first_task, second_task), later
    yield (TOGETHER_LABEL,), _train_together(model, losses, draws, sizes)


def _draw_rows(train: Mapping[str, NDArray[np.int64]], sizes: RunSizes, rng: np.random.Generator) -> Draws:
    return {task: [rng.choice(rows, sizes.batch) for _ in range(sizes.steps)] for task, rows in train.items()}


def _train_together(model: nn.Module, losses: Losses, draws: Draws, sizes: RunSizes) -> nn.Module:
    """A copy after the rows of all tasks in one shuffled sequence."""
    rows = np.concatenate([rows for batches in draws.values() for rows in batches])
    branch = copy.deepcopy(model)
    mixed = np.random.default_rng(rows).permutation(rows)
    train_on(branch, losses, list(mixed.reshape(-1, sizes.batch)), sizes.learning_rate)
    return branch


def _try_order(
    order: Sequence[str],
    model: nn.Module,
    losses: Losses,
    read: ReadModel,
    train: Mapping[str, NDArray[np.int64]],
    sizes: RunSizes,
    rng: np.random.Generator,
) -> list[Measurement]:
    """Success after that order, with rows drawn anew, beside all tasks together, in runs of `sizes.steps` per task.

    The best of many orders by noisy effects is overrated, and effects do not just add up: what it was chosen by does not
    tell whether it is better than all tasks together.
    """
    order_readings, joint_readings = [], []
    for _ in range(sizes.seeds):
        draws, branch = _draw_rows(train, sizes, rng), copy.deepcopy(model)
        for task in order:
            train_on(branch, losses, draws[task], sizes.learning_rate)
        order_readings.append(read(branch))
        joint_readings.append(read(_train_together(model, losses, draws, sizes)))
    tasks = list(train)
    order_success, joint_success = (
        np.stack([np.concatenate([run["success"][task] for task in tasks]) for run in runs])
        for runs in (order_readings, joint_readings)
    )
    items = np.array([len(order_readings[0]["success"][task]) for task in tasks])
    strata, weights = np.repeat(np.arange(len(tasks)), items), np.repeat(1 / items / len(tasks), items)
    estimate = estimate_crossed(order_success - joint_success, strata, weights)
    fields = (estimate.value, estimate.low, estimate.high, order_success.size, UNIT_BY_MEASUREMENT["success"])
    return [
        *(_make_row("success", task, (BEST_ORDER_LABEL,), order_readings) for task in tasks),
        Measurement("transfer", "*", GAIN_MEASUREMENT, *fields, null=0.0, null_of=TOGETHER_LABEL),
    ]


def _make_row(number_name: str, task: str, path: tuple[str, ...], runs: Sequence[Any]) -> Measurement:
    """The mean over runs and items, with an interval over both."""
    values = np.stack([run[number_name][task] for run in runs])
    estimate = estimate_crossed(values, np.zeros(values.shape[1], dtype=np.int64))
    low, high = max(estimate.low, 0.0), estimate.high if number_name != "success" else min(estimate.high, 1.0)
    name = number_name + (AFTER_LABEL + THEN_LABEL.join(path) if path else f" at the {START_LABEL}")
    interval_ends = min(low, estimate.value), max(high, estimate.value)
    return Measurement("transfer", task, name, estimate.value, *interval_ends, values.size, UNIT_BY_MEASUREMENT[number_name])


def _changes(
    readings_by_path: Mapping[tuple[str, ...], Sequence[Any]], tasks: Sequence[str], *, pairs: bool
) -> list[Measurement]:
    """Changes of success, paired by item and by run: by a run from the start, by a later and an earlier run."""
    rows = []
    for task, trained_task in itertools.product(tasks, (*tasks, TOGETHER_LABEL)):
        rows.append(
            _change(f"change at the start by {trained_task}", task, readings_by_path[trained_task,], readings_by_path[()])
        )
        if pairs and trained_task not in (task, TOGETHER_LABEL):
            rows.append(
                _change(f"change by {trained_task}", task, readings_by_path[task, trained_task], readings_by_path[task,])
            )
            rows.append(
                _change(f"change from {trained_task}", task, readings_by_path[trained_task, task], readings_by_path[task,])
            )
    return rows


def _change(name: str, task: str, after: Sequence[Any], before: Sequence[Any]) -> Measurement:
    success = [np.stack([run["success"][task] for run in runs]) for runs in (after, before)]
    estimate = estimate_crossed(success[0] - success[1], np.zeros(success[0].shape[1], dtype=np.int64))
    ends, null = (estimate.value, estimate.low, estimate.high), "the same without that run"
    return Measurement(
        "transfer", task, name, *ends, success[0].size, UNIT_BY_MEASUREMENT["success"], null=0.0, null_of=null
    )
