"""Chance level of each cell, the one that the whole page shows: on the held-out items that its claims rest on.

A corpus has others: that of training rows (what an audit warns of), and that of all items measured before. They differ by
chance, and by which rows they are of. What a claim is judged by is the level of its own items, so that one is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mixwright.estimates.intervals import wilson
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, Item, ItemScores, shared_items
from mixwright.records import Interval
from mixwright.runs import RunFolder, read_measurements
from mixwright.verdict.evidence import Sides, leading_folders, leading_sides, scores
from mixwright.verdict.spared import Place

SAME_LEVEL_TOLERANCE = 1e-6
"""Levels that are this near are of the same items."""


def items_by_place(sides: Sides) -> dict[Place, list[Item]]:
    """The items that both sides have, of each cell and of each whole task."""
    groups: dict[Place, list[Item]] = defaultdict(list)
    for item in shared_items(*sides):
        groups[*item[:2], False].append(item)
        groups[item[0], None, True].append(item)
    return groups


def chance_level(side: Sequence[ItemScores], items: Sequence[Item]) -> Interval | None:
    """What the chance rule earns on these items, mean over checkpoints; None where it was not measured on all of them.

    The interval takes two items for one independent one, as where the items choose the rule for each other: scores of items
    do not say whether they did.
    """
    if not items or not side:
        return None
    hits = np.mean([one.column(CHANCE_MEASUREMENT, items) for one in side], axis=0)
    value, worth = float(hits.mean()), len(items) / 2
    if not np.isfinite(value):
        return None
    low, high = wilson(value * worth, worth)
    return Interval(value, float(low), float(high), len(items))


def _on_file(path: Path) -> dict[Place, Interval]:
    """Intervals as they were measured, which know whether other rows chose the rule; none without a table."""
    measured = read_measurements(path) if path.is_file() else []
    rows = [row for row in measured if row.name == CHANCE_MEASUREMENT and row.example is None]
    levelled = {row.task for row in rows if row.level is not None}
    return {
        (row.task, row.level, row.level is None and row.task in levelled): Interval(row.value, row.low, row.high, row.n)
        for row in rows
    }


def chance_levels(run: RunFolder) -> dict[Place, Interval]:
    """Of every cell and every task: on the leading arm's items, or those measured before training."""
    path, sides = run.measurements("before"), leading_sides(run)
    if sides is None:
        sides = ([one := scores(path)], [one]) if path.is_file() else ([], [])
    known = _on_file(next((folder / "before.parquet" for folder in leading_folders(run)), path))
    found: dict[Place, Interval] = {}
    for place, items in items_by_place(sides).items():
        level, measured = chance_level(sides[1], items), known.get(place)
        if level is not None:
            same = measured is not None and abs(measured.value - level.value) < SAME_LEVEL_TOLERANCE
            found[place] = measured if measured is not None and same else level
    return found
