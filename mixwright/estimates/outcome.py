"""Primary outcome: success under the declared decoding over all held-out items, mean over tasks, with its parts.

Where nothing is graded it is the held-out loss or the preference accuracy (`readings`), which have no parts.

Read from the scores of single items, which hold everything: success, S (pseudo-values, see `dependence`) and what the chance
rule earns. Nothing is left out by the state of a cell, so that no lever can move what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import Z
from mixwright.estimates.possible import within_possible
from mixwright.estimates.readings import READINGS
from mixwright.estimates.readings import Decoding as Decoding
from mixwright.estimates.readings import Outcome as Outcome

MEASUREMENT_BY_DECODING: dict[str, str] = {"greedy": "greedy", "sampled": "pass@1"}
"""Decoding -> name of its measurement."""
SWAPPED_SUFFIX = ".swapped"
"""After the name of a measurement: S of the same completions."""
PART_PREFIX = "part "
"""Measurements of a part of the greedy answers, such as one field of JSON, begin with it."""
CHANCE_MEASUREMENT = "chance"
LOG_PROBE = "log"
"""Probe of rows that say how many answers an evaluation log has; S need not be known there."""
TaskLevel = tuple[str, float | None]
"""(task, level): which cell; `cell_key` makes a name of it."""
Item = tuple[str, float | None, str]
"""(task, level, example id)."""
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ItemScores:
    """One checkpoint, measured."""

    scores: dict[str, dict[Item, float]]
    """Name of a measurement (greedy, greedy.swapped, pass@1, pass@1.swapped, chance, loss ...) -> item -> value."""

    @property
    def items(self) -> list[Item]:
        """All items, sorted by task, level and id."""
        return sorted(self.unsorted_items, key=_item_order)

    @property
    def unsorted_items(self) -> Collection[Item]:
        """All items, in the order of the table."""
        names = ("pass@1", "greedy", "preference", "loss", "gold")
        return next((self.scores[name] for name in names if self.scores.get(name)), {})

    def by_task(self) -> dict[str, ItemScores]:
        """Task -> what was measured of its items, in the same order."""
        scores_by_task: dict[str, dict[str, dict[Item, float]]] = {}
        for name, value_by_item in self.scores.items():
            for item, value in value_by_item.items():
                scores_by_task.setdefault(item[0], {}).setdefault(name, {})[item] = value
        return {task: ItemScores(scores) for task, scores in scores_by_task.items()}

    def select(self, tasks: Collection[str]) -> ItemScores:
        """Return what was measured of these tasks."""
        names = self.scores.items()
        return ItemScores({name: {item: v for item, v in values.items() if item[0] in tasks} for name, values in names})

    def column(self, name: str, items: Sequence[Item]) -> Array:
        """Values of a measurement; NaN where there is none."""
        values = self.scores.get(name, {})
        return np.array([values.get(item, np.nan) for item in items])


Sides = tuple[Sequence[ItemScores], Sequence[ItemScores]]
"""Before and after, one each per seed, in the same order."""


def keep_probe_columns(scores: ItemScores, outcome: Outcome) -> ItemScores:
    """What one probe read, so that its own items are all items, whatever else was measured."""
    columns = {reading.column for reading in READINGS.values() if reading.probe == READINGS[outcome].probe}
    return ItemScores({name: values for name, values in scores.scores.items() if name in columns})


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the outcome and of its parts: estimate = swapped + dependence."""

    estimate: Estimate
    """Of the outcome, after minus before; above 0 is better. Of success under the declared decoding it is -1..1."""
    swapped: Estimate
    """Of S: success of the cell's own answers on other prompts."""
    dependence: Estimate
    """Of D = success - S."""
    sampled: Estimate | None
    """Of sampled success; None where that is the outcome itself, or nothing was sampled."""
    sampled_dependence: Estimate | None
    """Of D under sampling; None where `sampled` is."""
    items: tuple[Item, ...]
    """What it rests on."""
    outcome: Outcome = "greedy"
    """What it is a change of. Where nothing is graded there is no S, D or sampled success, and the parts are NaN or None."""


def _item_order(item: Item) -> tuple[str, float, str]:
    return item[0], -np.inf if item[1] is None else item[1], item[2]


def shared_items(*sides: Sequence[ItemScores], included: Callable[[Item], bool] | None = None) -> list[Item]:
    """The items that every checkpoint of every side has and that are included, sorted."""
    every = [scores for side in sides for scores in side]
    if not every:
        return []
    common = set(every[0].unsorted_items).intersection(*(scores.unsorted_items for scores in every[1:]))
    return sorted(common if included is None else filter(included, common), key=_item_order)


def estimate_change(
    before: Sequence[ItemScores],
    after: Sequence[ItemScores],
    *,
    outcome: Outcome = "greedy",
    weigh: Literal["tasks", "items", "cells"] = "tasks",
    included: Callable[[Item], bool] | Collection[Item] | None = None,
    pseudo_quantile: float = Z,
) -> Change | None:
    """`after` minus `before`, paired by seed (the place in both) and item; None when they share no item.

    Args:
        before: one per seed.
        after: one per seed, in the same order.
        outcome: what success, or another outcome, is read from.
        weigh: what counts the same: tasks, items, or cells (task and level).
        included: the items that are meant; None takes all.
        pseudo_quantile: as for `estimate_crossed`.
    """
    chosen = included if included is None or callable(included) else set(included).__contains__
    items = shared_items(before, after, included=chosen)
    if not items:
        return None
    name, sign = READINGS[outcome].column, READINGS[outcome].sign
    strata, weights = _numbers([item[:2] for item in items]), _weights(items, weigh)
    counted = READINGS[outcome].unit == "share"

    def values(column: str) -> tuple[Array, Array]:
        old, new = (np.array([scores.column(column, items) for scores in side]) for side in (before, after))
        return old, new

    def estimate_parts(column: str) -> tuple[Estimate, Estimate, Estimate]:
        (old, new), (old_swapped, new_swapped) = values(column), values(column + SWAPPED_SUFFIX)
        change, swapped = sign * (new - old), new_swapped - old_swapped
        kinds = (change, swapped, change - swapped)  # an item that moves moves the pseudo-values of its whole cell
        success_estimate, swapped_estimate, dependence_estimate = (
            estimate_crossed(kind, strata, weights, counted=counted, moves=change, pseudo_quantile=pseudo_quantile)
            for kind in kinds
        )
        return (
            (within_possible(success_estimate, old, new, strata, weights) if counted else success_estimate),
            swapped_estimate,
            dependence_estimate,
        )

    measured, swapped, depends = estimate_parts(name)
    sampled_column = MEASUREMENT_BY_DECODING["sampled"]
    if outcome != "greedy" or not all(scores.scores.get(sampled_column) for scores in (*before, *after)):
        return Change(measured, swapped, depends, None, None, tuple(items), outcome)
    sampled, _, sampled_depends = estimate_parts(sampled_column)
    return Change(measured, swapped, depends, sampled, sampled_depends, tuple(items))


def _weights(items: Sequence[Item], weigh: Literal["tasks", "items", "cells"]) -> Array:
    """Weight of each item, summing to 1, where each task, item or cell counts the same."""
    names = {"tasks": [item[0] for item in items], "cells": [item[:2] for item in items], "items": [0] * len(items)}
    kinds = _numbers(names[weigh])
    counts = np.bincount(kinds)
    return 1 / counts[kinds] / len(counts)


def mean_score(
    scores: ItemScores, name: str, items: Sequence[Item], *, by: Literal["tasks", "items", "cells"] = "tasks"
) -> float:
    """Mean of a measurement over items, each task counted once, or each cell, or each item."""
    values = scores.column(name, items)
    if by == "items":
        return float(values.mean())
    kinds = _numbers([item[0] if by == "tasks" else item[:2] for item in items])
    return float((np.bincount(kinds, values) / np.bincount(kinds)).mean())


def _numbers(names: Sequence[object]) -> NDArray[np.int64]:
    """The same names as numbers from 0."""
    number_by_name: dict[object, int] = {}
    return np.array([number_by_name.setdefault(name, len(number_by_name)) for name in names], dtype=np.int64)
