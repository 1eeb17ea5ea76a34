"""Cells of the page: what each was like before and after, greedy and sampled, beside its claim and its chance level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.estimates.outcome import Item, ItemScores, shared_items
from mixwright.estimates.readings import READINGS
from mixwright.records import Claim, Interval
from mixwright.runs import RunFolder
from mixwright.verdict.chance_levels import Place, chance_levels
from mixwright.verdict.claims import claims_of
from mixwright.verdict.evidence import Sides, comparisons, headline_arm

Pair = tuple[float, float]
"""Success before and after."""


@dataclass(frozen=True, slots=True)
class CellSeen:
    """One cell or whole task of the leading arm."""

    claim: Claim
    """Under the declared decoding."""
    greedy: Pair | None
    """Mean over items and seeds; None where it was not measured."""
    sampled: Pair | None
    """The same of sampled answers."""
    chance: Interval | None
    """Chance level of its items; None where it was not measured."""


def cells_of(run: RunFolder) -> list[CellSeen]:
    """One per claim of the leading arm. Raises InputError for broken tables."""
    claims, levels = claims_of(run), chance_levels(run)
    both = comparisons(run).get(headline_arm(run))
    groups: dict[Place, list[Item]] = {}
    for item in shared_items(*both) if both else ():
        groups.setdefault((*item[:2], False), []).append(item)
        groups.setdefault((item[0], None, True), []).append(item)
    found = []
    for claim in claims:
        place = (claim.task, claim.level, claim.whole)
        items = groups.get(place, [])
        columns = (READINGS["greedy"].column, READINGS["sampled"].column)
        pairs = [_pair(both, name, items) if both else None for name in columns]
        found.append(CellSeen(claim, pairs[0], pairs[1], levels.get(place)))
    return found


def _pair(sides: Sides, name: str, items: list[Item]) -> Pair | None:
    if not items:
        return None
    before, after = (_mean(side, name, items) for side in sides)
    return (before, after) if np.isfinite([before, after]).all() else None


def _mean(side: Sequence[ItemScores], name: str, items: list[Item]) -> float:
    return float(np.mean([scores.column(name, items) for scores in side]))
