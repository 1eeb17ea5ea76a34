"""Counts of the answer formats in use, read from outcomes, for planning and for watching a run."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import stdev

from mixwright.plan.format_forecast import IN_USE_SHARE
from mixwright.records import GroupOutcome

Row = list[list[float]]
"""One group: (completions, summed rewards) of each watched format, last of all others. JSON-ready."""


def formats_in_use(groups: Iterable[GroupOutcome], least: float = IN_USE_SHARE) -> dict[str, dict[str, float]]:
    """Task -> format -> share of its completions, commonest first; formats rarer than `least` are left out. Pure.

    Tasks are sorted; groups without formats (a trainer that does not tell them) say nothing.

    Args:
        groups: of the first batch, or of several.
        least: share from which a format counts, 0..1.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for group in groups:
        counts[group.task].update(group.formats)
    found: dict[str, dict[str, float]] = {}
    for task, own in sorted(counts.items()):
        total = own.total()
        ranked = sorted(own, key=lambda name: (-own[name], name))
        if shares := {name: own[name] / total for name in ranked if own[name] >= least * total}:
            found[task] = shares
    return found


def count_group(group: GroupOutcome, watched: Sequence[str]) -> Row:
    """Counts and rewards of one group."""
    places = {name: place for place, name in enumerate(watched)}
    row: Row = [[0, 0.0] for _ in range(len(watched) + 1)]
    for name, reward in zip(group.formats, group.rewards, strict=True):
        cell = row[places.get(name, len(watched))]
        cell[0] += 1
        cell[1] += reward
    return row


def shares_of(rows: Sequence[Row]) -> list[list[float]]:
    """Per format its share of each group."""
    totals = [sum(cell[0] for cell in row) for row in rows]
    return [[cell[0] / total for cell, total in zip(column, totals, strict=True)] for column in zip(*rows, strict=True)]


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean."""
    return stdev(values) / math.sqrt(len(values))


def format_advantage(rows: Sequence[Row], place: int, leader: int) -> float | None:
    """Mean reward of one format above another's within groups that hold both; None where there are none.

    Each group weighs n x m / (n + m): the least variance (Mantel and Haenszel 1959).
    """
    total = weights = 0.0
    for row in rows:
        (n, reward), (m, other) = row[place], row[leader]
        if n and m:
            weight = n * m / (n + m)
            total, weights = total + weight * (reward / n - other / m), weights + weight
    return total / weights if weights else None


def earned_above_least(rows: Sequence[Row], place: int) -> bool:
    """Whether completions of one format earned more than the least that any format earned on the mean in a group."""
    means = [[reward / count for count, reward in column if count] for column in zip(*rows, strict=True)]
    least = min(mean for column in means for mean in column)
    return any(mean > least + 1e-9 for mean in means[place])
