"""Sizes of a run that fit into a time: adapter, steps, seeds, items and samples, and the change that they will see.

Steps come first, because a trial of a training that is too short says nothing of a longer one; then seeds and items, by the
difference that they can see; samples last.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.power import PRIOR_NOISE, TYPICAL_ITEM_SPREAD, PowerCell, expected_null_change
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.measure.fitting import count_items, least_items, most_items_within
from mixwright.trial.costs import stage_seconds

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.trial.dry_run import Timing

Timings = Mapping[str | None, tuple["RunConfig", "Timing"]]
"""Adapter (None: all weights) -> the settings that train it, and what was timed of them."""
USED_SHARE = 0.92
"""Share of a budget that is planned; the rest is for audit, plan and page, and for what was timed too short."""
TRAINING_SHARE = 0.6
"""Share of it up to which steps are raised on the fewest seeds and items; the rest is left for more of those."""
MAX_SEEDS = 20
MIN_ITEMS_IN_ALL = 40
"""Held-out items over all cells, where there are so many, with fewer of which nothing would be seen."""
MIN_SAMPLES = {"grpo": 4}
"""Samples per item that the plan of an objective reads; others need none."""


@dataclass(frozen=True, slots=True)
class FittedRun:
    """Settings that fit."""

    config: RunConfig
    """With sizes for the budget."""
    seconds: float
    """That the run will take."""
    items: int
    """Held-out items that are measured."""
    detectable: float | None
    """Difference from another trained arm that will be seen in 80 of 100 such trials, a share; None where nothing is
    graded."""


@dataclass(frozen=True, slots=True)
class HeldOutCounts:
    """What has to be known of the rows."""

    cells: Sequence[tuple[str, int]]
    """Task and held-out items of each cell."""
    arms: int
    """Arms that are trained."""
    references: int = 3
    """Of them and the untrained one, those that a lever is compared with."""
    bases: int = 1
    """Starting models."""
    rehearsed: int = 0
    """Prompts that the model answers itself."""

    @property
    def counts(self) -> list[int]:
        """Held-out items of each cell."""
        return [count for _, count in self.cells]


def fit_run(timings: Timings, data: HeldOutCounts, seconds: float) -> FittedRun | None:
    """The settings that a time allows, or None where it is too short for the fewest seeds, items and steps.

    Args:
        timings: settings without a limit of time, and what was timed of them.
        data: the rows.
        seconds: for the whole run.
    """
    limit_seconds, best_fit = USED_SHARE * seconds, None
    for config, timing in timings.values():
        fitted = _fit_adapter(config, timing, data, limit_seconds)
        if fitted is not None and (best_fit is None or _rank(fitted) > _rank(best_fit)):
            best_fit = fitted
    return best_fit


def shortest_budget_seconds(timings: Timings, data: HeldOutCounts) -> float:
    """The shortest budget that `fit_run` finds settings for."""
    return (
        min(_run_seconds(_with_smallest_sizes(config, data), timing, data) for config, timing in timings.values())
        / USED_SHARE
    )


def _rank(fitted: FittedRun) -> tuple[float, ...]:
    """More steps, then a smaller difference, then less time."""
    return fitted.config.train.steps, -(fitted.detectable or 1.0), -fitted.seconds


def _fit_adapter(config: RunConfig, timing: Timing, data: HeldOutCounts, limit_seconds: float) -> FittedRun | None:
    smallest_config = _with_smallest_sizes(config, data)
    if _run_seconds(smallest_config, timing, data) > limit_seconds:
        return None
    steps = max(
        steps
        for steps in _steps_to_try(config.train.steps)
        if steps == smallest_config.train.steps
        or _run_seconds(with_sizes(smallest_config, steps=steps), timing, data) <= TRAINING_SHARE * limit_seconds
    )
    fewest_samples = smallest_config.measure.samples
    possible_configs = [
        config_with_sizes
        for seeds, items in itertools.product(
            range(MIN_SEEDS, MAX_SEEDS + 1), _items_to_try(data.counts, smallest_config.measure.items)
        )
        if _run_seconds(
            config_with_sizes := with_sizes(smallest_config, steps=steps, seeds=seeds, items=items), timing, data
        )
        <= limit_seconds
    ]
    chosen_config = min(
        possible_configs,
        key=lambda candidate: _detectable_difference(candidate, data) or -count_items(data.counts, candidate.measure.items),
    )
    for samples in range(config.measure.samples, fewest_samples, -1):
        with_samples = replace(chosen_config, measure=replace(chosen_config.measure, samples=samples))
        if _run_seconds(with_samples, timing, data) <= limit_seconds:
            chosen_config = with_samples
            break
    items = count_items(data.counts, chosen_config.measure.items)
    return FittedRun(
        chosen_config, _run_seconds(chosen_config, timing, data), items, _detectable_difference(chosen_config, data)
    )


def with_sizes(
    config: RunConfig, *, steps: int | None = None, seeds: int | None = None, items: int | None = None
) -> RunConfig:
    """The settings with these sizes; those that are not named stay."""
    train = config.train if steps is None else replace(config.train, steps=steps)
    trial = config.trial if seeds is None else replace(config.trial, seeds=seeds)
    measure = config.measure if items is None else replace(config.measure, items=items)
    return replace(config, train=train, trial=trial, measure=measure)


def _with_smallest_sizes(config: RunConfig, data: HeldOutCounts) -> RunConfig:
    """The settings with the fewest steps, seeds, items and samples that are of use."""
    counts = data.counts
    items_per_cell = max(least_items(counts), 1)
    while count_items(counts, items_per_cell) < min(MIN_ITEMS_IN_ALL, sum(counts)):
        items_per_cell += 1
    samples = min(config.measure.samples, MIN_SAMPLES.get(config.train.objective, 0))
    if config.measure.decoding == "sampled":
        samples = max(samples, 1)
    small = with_sizes(config, steps=min(_steps_to_try(config.train.steps)), seeds=MIN_SEEDS, items=items_per_cell)
    return replace(small, measure=replace(small.measure, samples=samples))


def _steps_to_try(most_steps: int) -> list[int]:
    """Numbers of steps that are considered: those of the settings, and down to ten, each about a quarter fewer."""
    steps = [most_steps]
    while steps[-1] > 10:
        steps.append(max(10, round(steps[-1] * 0.77)))
    return steps


def _items_to_try(counts: Sequence[int], fewest: int) -> Iterator[int]:
    """Items per cell that are considered, from the least up to all, each about a fifth more."""
    items, largest_cell = fewest, max(counts)
    while items < largest_cell:
        yield items
        items = max(items + 1, most_items_within(counts, 1.2 * count_items(counts, items)))
    yield max(largest_cell, fewest)


def _run_seconds(config: RunConfig, timing: Timing, data: HeldOutCounts) -> float:
    items = count_items(data.counts, config.measure.items)
    stage_costs = stage_seconds(config, timing, items=items, arms=data.arms, bases=data.bases, rehearsed=data.rehearsed)
    return sum(seconds for _, seconds in stage_costs)


def _detectable_difference(config: RunConfig, data: HeldOutCounts) -> float | None:
    if outcome_of(config.measure.probes, config.measure.decoding) not in GRADED_OUTCOMES:
        return None
    cells = [PowerCell(task, min(count, config.measure.items), TYPICAL_ITEM_SPREAD) for task, count in data.cells if count]
    noise = PRIOR_NOISE[config.measure.decoding, "trained"]
    return expected_null_change(cells, config.trial.seeds, noise).detectable(max(data.references, 1))
