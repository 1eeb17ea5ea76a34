"""Chance level of each cell, the one that the whole page shows: on the held-out items that its claims rest on.

A corpus has others: that of training rows (what an audit warns of), and that of all items measured before. They differ by
chance, and by which rows they are of. What a claim is judged by is the level of its own items, so that one is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mixwright.estimates.intervals import wilson
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, Item, ItemScores, shared_items
from mixwright.records import Interval
from mixwright.runs import RunFolder, read_measurements
from mixwright.verdict.evidence import arm_branches, comparisons, headline_arm, scores

SAME_LEVEL_TOLERANCE = 1e-6
"""Levels that are this near are of the same items."""
Place = tuple[str, float | None, bool]
"""(task, level, whether the whole task of several levels is meant), as a claim has them."""


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
    rows = (
        [row for row in read_measurements(path) if row.name == CHANCE_MEASUREMENT and row.example is None]
        if path.is_file()
        else []
    )
    levelled = {row.task for row in rows if row.level is not None}
    places = [(row.task, row.level, row.level is None and row.task in levelled) for row in rows]
    return {place: Interval(row.value, row.low, row.high, row.n) for place, row in zip(places, rows, strict=True)}


def chance_levels(run: RunFolder) -> dict[Place, Interval]:
    """Of every cell and every task: on the leading arm's items, or those measured before training."""
    both = comparisons(run).get(headline_arm(run))
    path = run.measurements("before")
    if both is None:
        both = ([one := scores(path)], [one]) if path.is_file() else None
    if both is None:
        return {}
    groups: dict[Place, list[Item]] = {}
    for item in shared_items(*both):
        groups.setdefault((*item[:2], False), []).append(item)
        groups.setdefault((item[0], None, True), []).append(item)
    found = {place: chance_level(both[1], items) for place, items in groups.items()}
    known = _on_file(next((folder / "before.parquet" for _, folder in arm_branches(run).get(headline_arm(run), [])), path))
    return {
        place: measured if measured is not None and abs(measured.value - level.value) < SAME_LEVEL_TOLERANCE else level
        for place, level, measured in ((place, level, known.get(place)) for place, level in found.items())
        if level is not None
    }
