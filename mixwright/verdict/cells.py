"""Cells of the page: what each was like before and after, greedy and sampled, beside its claim and its chance level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixwright.estimates.readings import READINGS, Decoding
from mixwright.records import Claim, Interval
from mixwright.runs import RunFolder
from mixwright.verdict.chance_levels import chance_levels, items_by_place
from mixwright.verdict.claims import claims_of
from mixwright.verdict.evidence import leading_sides
from mixwright.verdict.spared import place_of

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
    levels, sides = chance_levels(run), leading_sides(run) or ((), ())
    groups = items_by_place(sides)

    def success(claim: Claim, decoding: Decoding) -> Pair | None:
        items = groups.get(place_of(claim))
        if not items:
            return None
        columns = ([one.column(READINGS[decoding].column, items) for one in side] for side in sides)
        before, after = (float(np.mean(column)) for column in columns)
        return (before, after) if np.isfinite([before, after]).all() else None

    return [
        CellSeen(claim, success(claim, "greedy"), success(claim, "sampled"), levels.get(place_of(claim)))
        for claim in claims_of(run)
    ]
