"""Measured checkpoints made by hand: one list of values per cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixwright.estimates.outcome import ItemScores

Values = Sequence[float]


def scores(
    greedy: Mapping[tuple[str, float | None], Values],
    *,
    sampled: Mapping[tuple[str, float | None], Values] | None = None,
    swapped: Mapping[tuple[str, float | None], Values] | float = 0.0,
    chance: Mapping[tuple[str, float | None], Values] | float = 0.0,
) -> ItemScores:
    """One checkpoint; sampled success is the greedy one unless told otherwise, S and chance 0."""
    found: dict[str, dict[tuple[str, float | None, str], float]] = {}
    for cell, values in greedy.items():
        columns = {"greedy": values, "pass@1": (sampled or greedy)[cell]}
        for name, part in (("greedy.swapped", swapped), ("pass@1.swapped", swapped), ("chance", chance)):
            columns[name] = [part] * len(values) if isinstance(part, float) else part[cell]
        for name, column in columns.items():
            rows = found.setdefault(name, {})
            rows |= {(*cell, f"{cell[0]}-{place}"): float(value) for place, value in enumerate(column)}
    return ItemScores.of(found)


def without(known: ItemScores, name: str) -> ItemScores:
    """One checkpoint, one measurement of it left out."""
    return ItemScores(known.every, {other: column for other, column in known.columns.items() if other != name})
