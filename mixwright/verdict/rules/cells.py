"""Cells of the page: what each was like before and after, greedy and sampled, beside its claim and its chance level.

The chance level of a cell is the one that the whole page shows: on the held-out items that its claims rest on. A corpus has
others: that of training rows (what an audit warns of), and that of all items measured before. They differ by chance, and by
which rows they are of. What a claim is judged by is the level of its own items, so that one is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.estimates.items import Items
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, Sides, shared_items
from mixwright.estimates.readings import READINGS, Decoding
from mixwright.records import Claim, Interval
from mixwright.run.folder import read_measurements
from mixwright.verdict.rules.claims import chance_level
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.spared import ClaimKey, claim_key

SAME_CHANCE_TOLERANCE = 1e-6
"""Levels that are this near are of the same items."""
BeforeAfter = tuple[float, float]
"""Success before and after."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """One cell or whole task of the leading arm."""

    claim: Claim
    """Under the declared decoding."""
    greedy: BeforeAfter | None
    """Mean over items and seeds; None where it was not measured."""
    sampled: BeforeAfter | None
    """The same of sampled answers."""
    chance: Interval | None
    """Chance level of its items; None where it was not measured."""


def group_items(sides: Sides) -> dict[ClaimKey, Items]:
    """The items that both sides have, of each cell and of each whole task."""
    shared = shared_items(*sides)
    groups: dict[ClaimKey, Items] = {(*items.cells[0], False): items for items in shared.split()}
    return groups | {(task, None, True): items for task, items in shared.by_task().items()}


def chance_levels(evidence: Evidence) -> dict[ClaimKey, Interval]:
    """Of every cell and every task: on the leading arm's items, or those measured before training.

    Intervals are those that were measured, which know whether other rows chose the rule, if they are of the same items.
    """
    path, sides = evidence.run.measurements("before"), evidence.sides
    if sides is None:
        sides = ([start_scores := evidence.read_scores(path)], [start_scores]) if path.is_file() else ([], [])
    measured_path = next((folder / "before.parquet" for folder in evidence.leading_folders), path)
    measured = read_measurements(measured_path) if measured_path.is_file() else []
    rows = [row for row in measured if row.name == CHANCE_MEASUREMENT]
    levelled = {row.task for row in rows if row.level is not None}
    measured_chances = {
        (row.task, row.level, row.level is None and row.task in levelled): Interval(row.value, row.low, row.high, row.n)
        for row in rows
    }
    chance_by_claim: dict[ClaimKey, Interval] = {}
    for key, items in group_items(sides).items():
        if (chance := chance_level(sides[1], items)) is not None:
            known = measured_chances.get(key)
            is_same = known is not None and abs(known.value - chance.value) < SAME_CHANCE_TOLERANCE
            chance_by_claim[key] = known if known is not None and is_same else chance
    return chance_by_claim


def cells_of(evidence: Evidence, claims: Sequence[Claim]) -> list[PageCell]:
    """One per claim of the leading arm, among `claims`. Raises InputError for broken tables."""
    chance_by_claim, sides = chance_levels(evidence), evidence.sides or ((), ())
    groups = group_items(sides)

    def success(claim: Claim, decoding: Decoding) -> BeforeAfter | None:
        items = groups.get(claim_key(claim))
        if items is None:
            return None
        columns = ([seed_scores.column(READINGS[decoding].column, items) for seed_scores in side] for side in sides)
        before, after = (float(np.mean(column)) for column in columns)
        return (before, after) if np.isfinite([before, after]).all() else None

    return [
        PageCell(claim, success(claim, "greedy"), success(claim, "sampled"), chance_by_claim.get(claim_key(claim)))
        for claim in claims
        if claim.arm == evidence.arm
    ]
