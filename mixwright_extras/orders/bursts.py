"""Experiment behind the retention probe: a burst on one task, then other tasks only, read against a run without it.

Works on any torch module through a function that gives the loss of numbered rows, so that other loops can use it too.
Every branch starts from a copy of the model with a fresh optimiser: the state of a run's own optimiser makes short bursts
gain next to nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from mixwright.extend import Interval, Losses, Measurement, jackknife, rate, train_on
from mixwright_extras.mining.trainings import read_losses

MAX_TIMES_WATCHED = 10.0
"""A half-life longer than this many times the steps watched is reported as that."""


@dataclass(frozen=True)
class Burst:
    """Sizes of the experiment."""

    steps: int
    """Steps on the task alone, at half the learning rate; under 15 gain too little to see what is kept of it."""
    after: int
    """Steps on the other tasks that follow."""
    batch: int
    """Rows per step."""
    learning_rate: float
    """The run's own."""
    reads: int = 5
    """Readings on the way, evenly spaced over the root of the steps, besides the one right after the burst."""

    @property
    def times(self) -> list[int]:
        """Steps after the burst at which the held-out loss is read; the first is 0."""
        return sorted({round(self.after * (read_index / self.reads) ** 2) for read_index in range(self.reads + 1)})


def watch_bursts(
    model: nn.Module,
    losses: Losses,
    train: Mapping[str, np.ndarray],
    held_out: Mapping[str, np.ndarray],
    rare: Sequence[str],
    sizes: Burst,
    rng: np.random.Generator,
) -> list[Measurement]:
    """One branch per task of `rare` and one without a burst; what each gained and kept.

    Args:
        model: copied, never touched.
        losses: of numbered rows.
        train: row numbers per task.
        held_out: row numbers per task; at least two where a task is to have numbers.
        rare: tasks to burst on; all others are common, and drawn as often as they have rows.
        sizes: of the experiment.
        rng: of the draws.
    """
    common_rows = np.concatenate([rows for task, rows in train.items() if task not in rare])
    watched_rows = np.concatenate([rows for task, rows in held_out.items() if task not in rare])
    watched_rows = rng.choice(watched_rows, min(len(watched_rows), 4 * sizes.batch), replace=False)
    later_batches = [rng.choice(common_rows, sizes.batch) for _ in range(sizes.after)]
    bursts = {}
    for task in rare:  # no row twice in a step, where there are as many
        has_few_rows = len(train[task]) < sizes.batch
        bursts[task] = [rng.choice(train[task], sizes.batch, replace=has_few_rows) for _ in range(sizes.steps)]
    losses_at_start = {task: read_losses(model, losses, rows, sizes.batch) for task, rows in held_out.items()}
    measurements = [
        _as_measurement(task, "loss", rate(values, np.ones(len(values)))) for task, values in losses_at_start.items()
    ]

    control_model = copy.deepcopy(model)
    control_losses = _train_and_read(control_model, losses, later_batches, {task: held_out[task] for task in rare}, sizes)
    watched_losses_at_start = read_losses(model, losses, watched_rows, sizes.batch)
    for task in rare:
        branch = copy.deepcopy(model)
        train_on(branch, losses, bursts[task], sizes.learning_rate / 2)
        rise = read_losses(branch, losses, watched_rows, sizes.batch) - watched_losses_at_start
        measurements.append(_as_measurement(task, "common_rise", rate(rise, np.ones(len(rise))), null=0.0))
        branch_losses = _train_and_read(branch, losses, later_batches, {task: held_out[task]}, sizes)
        measurements += _estimate_burst(task, control_losses[task] - branch_losses[task], losses_at_start[task], sizes)
        del branch
    trained = sizes.batch * (len(rare) * (sizes.steps + sizes.after) + sizes.after)
    rare_rows = sum(len(held_out[task]) for task in rare)
    only_read = sum(map(len, held_out.values())) + 2 * len(sizes.times) * rare_rows + (len(rare) + 1) * len(watched_rows)
    for name, count in (("rows_trained", trained), ("rows_read", only_read)):
        measurements.append(Measurement("retention", "*", name, count, count, count, 1, "rows"))
    return [row for row in measurements if row is not None]


def half_life(curve: np.ndarray, times: Sequence[int]) -> float:
    """Steps in which half of a gain is lost: least squares of curve[0] 2 ** -(t / h).

    h lies between 0.5 and `MAX_TIMES_WATCHED` times the last of `times`.
    """
    candidates = np.geomspace(0.5, MAX_TIMES_WATCHED * times[-1], 1000)
    expected = curve[0] * 2.0 ** -(np.asarray(times) / candidates[:, None])
    return float(candidates[((expected - curve) ** 2).sum(1).argmin()])


def _estimate_burst(task: str, gains: np.ndarray, start: np.ndarray, sizes: Burst) -> list[Measurement | None]:
    """What the burst gained, and, where it gained anything, what was kept. `gains`: nats, shape (held-out rows, times)."""
    times, gain = sizes.times, rate(gains[:, 0], np.ones(len(gains)))
    rows = float(sizes.steps * sizes.batch)
    measurements = [_as_measurement(task, "burst_gain", gain, null=0.0)]
    measurements.append(Measurement("retention", task, "burst_rows", rows, rows, rows, 1, "rows"))
    if gain is None or gain.low <= 0:
        return measurements
    for time_index, time in enumerate(times[1:], start=1):
        retained = jackknife(gains, lambda total, time_index=time_index: total[time_index] / total[0])
        measurements.append(
            _as_measurement(task, f"retained@{time}", retained, "share of the gain", 1.0, "nothing forgotten")
        )
    most_steps = MAX_TIMES_WATCHED * times[-1]
    half_life_steps = jackknife(gains, lambda total: half_life(total, times))
    if half_life_steps is not None:
        half_life_steps = Interval(
            half_life_steps.value,
            min(max(half_life_steps.low, 0.5), half_life_steps.value),
            max(min(half_life_steps.high, most_steps), half_life_steps.value),
            half_life_steps.n,
        )
    null_of = "the longest that this probe can show: nothing was forgotten"
    return [*measurements, _as_measurement(task, "half_life", half_life_steps, "steps", most_steps, null_of)]


def _as_measurement(
    task: str,
    name: str,
    estimate: Interval | None,
    unit: str = "nats per token",
    null: float | None = None,
    null_of: str = "the same steps without the burst",
) -> Measurement | None:
    if estimate is None:
        return None
    numbers = (estimate.value, estimate.low, estimate.high, estimate.n)
    return Measurement("retention", task, name, *numbers, unit, null=null, null_of=null_of if null is not None else "")


def _train_and_read(
    model: nn.Module, losses: Losses, batches: Sequence[np.ndarray], held_out: Mapping[str, np.ndarray], sizes: Burst
) -> dict[str, np.ndarray]:
    """Train on `batches` with a fresh optimiser; held-out losses per task, shape (rows, times)."""
    losses_by_task: dict[str, list[np.ndarray]] = {task: [] for task in held_out}

    def read_now() -> None:
        for task, rows in held_out.items():
            losses_by_task[task].append(read_losses(model, losses, rows, sizes.batch))

    read_now()
    train_on(model, losses, batches, sizes.learning_rate, dict.fromkeys(sizes.times[1:], read_now))
    return {task: np.stack(readings, 1) for task, readings in losses_by_task.items()}
