"""Primary outcome: success under the declared decoding over all held-out items, mean over tasks, with its parts.

Where nothing is graded it is the held-out loss or the preference accuracy (`readings`), which have no parts.

Read from the scores of single items, which hold everything: success, S (pseudo-values, see `dependence`) and what the chance
rule earns. Nothing is left out by the state of a cell, so that no lever can move what is counted. Scores are arrays over
`Items`: a million items make no Python object each.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import Z
from mixwright.estimates.items import Item, Items
from mixwright.estimates.labelled import estimate_labelled
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
LABEL_MEASUREMENT = "label"
"""What is true of an item where a judge that errs graded others: its label; of tasks without a judge, success itself."""
LOG_PROBE = "log"
"""Probe of rows that say how many answers an evaluation log has; S need not be known there."""
Weighing = Literal["tasks", "items", "cells"]
"""What counts the same in a mean."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ItemScores:
    """One checkpoint, measured: an array per measurement."""

    every: Items = field(default_factory=Items)
    """All items that something is known of."""
    columns: Mapping[str, Array] = field(default_factory=dict)
    """Name of a measurement (greedy, greedy.swapped, pass@1, pass@1.swapped, chance, loss ...) -> its value of every item,
    NaN where there is none."""

    @classmethod
    def of(cls, scores: Mapping[str, Mapping[Item, float]]) -> ItemScores:
        """Make it of values by name and item."""
        every = Items.of(itertools.chain(*scores.values()))
        rows = list(every)
        return cls(every, {name: np.array([own.get(row, np.nan) for row in rows]) for name, own in scores.items() if own})

    def true_column(self, name: str) -> str:
        """Return the measurement that says what is true of a success: labels, where a judge that errs gave it."""
        return LABEL_MEASUREMENT if LABEL_MEASUREMENT in self.columns else name

    def by_item(self, name: str) -> dict[Item, float]:
        """Item -> value of a measurement, where there is one."""
        own = self.having(name)
        return dict(zip(own, self.column(name, own).tolist(), strict=True))

    def having(self, name: str) -> Items:
        """Items of which a measurement is known."""
        return self.every.take(~np.isnan(self.columns[name])) if name in self.columns else Items()

    @cached_property
    def items(self) -> Items:
        """All items of what was measured first: success, else a reading that needs no grader."""
        names = ("pass@1", "greedy", "preference", "loss")
        return next((self.having(name) for name in names if name in self.columns), Items())

    def by_task(self) -> dict[str, ItemScores]:
        """Task -> what was measured of its items."""
        return {task: self.among(items) for task, items in self.every.by_task().items()}

    def select(self, tasks: Collection[str]) -> ItemScores:
        """Return what was measured of these tasks."""
        return self.among(self.every.of_tasks(tasks))

    def among(self, items: Items) -> ItemScores:
        """Return what was measured of some of the items."""
        columns = {name: self.column(name, items) for name in self.columns}
        return ItemScores(items, {name: column for name, column in columns.items() if not np.isnan(column).all()})

    def column(self, name: str, items: Items) -> Array:
        """Values of a measurement; NaN where there is none."""
        column = self.columns.get(name)
        if column is None or items is self.every:
            return np.full(len(items), np.nan) if column is None else column
        places = self.every.places_of(items)
        return np.where(places < 0, np.nan, column[places]) if len(column) else np.full(len(items), np.nan)


Sides = tuple[Sequence[ItemScores], Sequence[ItemScores]]
"""Before and after, one each per seed, in the same order."""


def keep_probe_columns(scores: ItemScores, outcome: Outcome) -> ItemScores:
    """What one probe read, so that its own items are all items, whatever else was measured."""
    columns = {reading.column for reading in READINGS.values() if reading.probe == READINGS[outcome].probe}
    return ItemScores(scores.every, {name: values for name, values in scores.columns.items() if name in columns})


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
    items: Items
    """What it rests on."""
    outcome: Outcome = "greedy"
    """What it is a change of. Where nothing is graded there is no S, D or sampled success, and the parts are NaN or None."""


Included = Callable[[Items], Items] | Items
"""Items that are meant, or a choice among those that both sides have."""


def shared_items(*sides: Sequence[ItemScores], included: Included | None = None) -> Items:
    """The items that every checkpoint of every side has and that are included."""
    every = [scores.items for side in sides for scores in side]
    common = functools.reduce(Items.common, every) if every else Items()
    if included is None or not len(common):
        return common
    return common.common(included) if isinstance(included, Items) else included(common)


def estimate_change(
    before: Sequence[ItemScores],
    after: Sequence[ItemScores],
    *,
    outcome: Outcome = "greedy",
    weigh: Weighing = "tasks",
    included: Included | None = None,
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
    items = shared_items(before, after, included=included)
    if not len(items):
        return None
    name, sign = READINGS[outcome].column, READINGS[outcome].sign
    strata, weights = items.cell, weigh_items(items, weigh)
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
        if any(LABEL_MEASUREMENT in scores.columns for scores in (*before, *after)):
            (old_label,), (new_label,) = values(LABEL_MEASUREMENT)  # of logs, which are of one seed
            labelled = new_label - old_label
            success_estimate = estimate_labelled(change[0], labelled, strata, weights, pseudo_quantile)
        elif counted:
            success_estimate = within_possible(success_estimate, old, new, strata, weights)
        return success_estimate, swapped_estimate, dependence_estimate

    measured, swapped, depends = estimate_parts(name)
    sampled_column = MEASUREMENT_BY_DECODING["sampled"]
    if outcome != "greedy" or not all(sampled_column in scores.columns for scores in (*before, *after)):
        return Change(measured, swapped, depends, None, None, items, outcome)
    sampled, _, sampled_depends = estimate_parts(sampled_column)
    return Change(measured, swapped, depends, sampled, sampled_depends, items)


def _kinds(items: Items, by: Weighing) -> NDArray[np.int64]:
    """Number of what each item counts with, from 0."""
    return items.task if by == "tasks" else items.cell if by == "cells" else np.zeros(len(items), np.int64)


def weigh_items(items: Items, weigh: Weighing = "tasks") -> Array:
    """Weight of each item, summing to 1, where each task, item or cell counts the same."""
    kinds = _kinds(items, weigh)
    counts = np.bincount(kinds)
    return 1 / counts[kinds] / len(counts)


def mean_score(scores: ItemScores, name: str, items: Items, *, by: Weighing = "tasks") -> float:
    """Mean of a measurement over items, each task counted once, or each cell, or each item."""
    values = scores.column(name, items)
    if by == "items":
        return float(values.mean())
    kinds = _kinds(items, by)
    return float((np.bincount(kinds, values) / np.bincount(kinds)).mean())
