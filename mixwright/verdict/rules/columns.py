"""Change of success by other columns of the test items, such as their source: whose items changed unlike the others.

A value is compared with the other items of the same tasks, so that a column that only names the task says nothing.

Source: own; the contrast within tasks of `estimates/crossed.py`, Holm's correction over all values of all columns.
Unit: change of success, 0..1, of the items of a value minus that of the others.
Cost: linear in the items, times the columns.
Blind spot: two columns that go together; values of fewer than `MIN_ITEMS` items.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from mixwright.answers.score import scores_of_items
from mixwright.answers.table import Answers
from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import holm
from mixwright.estimates.outcome import MEASUREMENT_BY_DECODING, shared_items
from mixwright.records import ColumnChange

MIN_ITEMS, MAX_VALUES = 10, 12
"""Items of a value from which on it is compared, and values of a column up to which it is one that groups items."""
ALPHA, LEAST_GAP = 0.01, 0.1
"""Adjusted p value below which a difference is shown, and its least size."""


def compare_columns(before: Answers, after: Answers, decoding: str) -> list[ColumnChange]:
    """Return the values whose items changed unlike the others of their tasks, the worst first."""
    sides, name = [scores_of_items(side) for side in (before, after)], MEASUREMENT_BY_DECODING[decoding]
    items = shared_items([side.among(side.having(name)) for side in sides])
    change, tasks = sides[1].column(name, items) - sides[0].column(name, items), items.task
    shared = np.full(before.item_count, -1)
    shared[before.places[before.items.places_of(items)]] = np.arange(len(items))
    holders = {key: own for key, found in before.holders.items() if len(own := shared[found][shared[found] >= 0])}
    values = Counter(column for column, _ in holders)
    found: list[tuple[tuple[str, str], Estimate, int]] = []
    for key, places in sorted(holders.items()):
        if len(places) >= MIN_ITEMS and 1 < values[key[0]] <= MAX_VALUES:
            is_own = np.isin(np.arange(len(items)), places)
            weights = _contrast(is_own, tasks)
            if weights.any():
                found.append((key, estimate_crossed(change[None], 2 * tasks + is_own, weights), len(places)))
    shown = [
        ColumnChange(*key, gap.interval, float(change[holders[key]].mean()), count, p)
        for (key, gap, count), p in zip(found, holm([gap.p for _, gap, _ in found]), strict=True)
        if p < ALPHA and abs(gap.value) >= LEAST_GAP
    ]
    return sorted(shown, key=lambda one: one.gap.value)


def _contrast(is_own: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """Shape (items,): weights of own items minus others of the same task; tasks count by their own items."""
    weights, total = np.zeros(len(tasks)), 0
    for task in np.unique(tasks[is_own]):
        own, other = (np.flatnonzero((tasks == task) & side) for side in (is_own, ~is_own))
        if len(other) >= MIN_ITEMS:
            weights[own], weights[other], total = 1.0, -len(own) / len(other), total + len(own)
    return weights / max(total, 1)
