"""Cells of the page: what each was like before and after, greedy and sampled, beside its claim and its chance level.

The chance level of a cell is the one that the whole page shows: on the held-out items that its claims rest on. A corpus has
others: that of training rows (what an audit warns of), and that of all items measured before. They differ by chance, and by
which rows they are of. What a claim is judged by is the level of its own items, so that one is shown.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixwright.estimates.outcome import CHANCE_MEASUREMENT, Item, shared_items
from mixwright.estimates.readings import READINGS, Decoding
from mixwright.records import Claim, Interval
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.verdict.rules.claims import chance_level, leading_claims
from mixwright.verdict.rules.evidence import Sides, file_version, keep_recent, leading_folders, leading_sides, scores
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


@keep_recent
def group_items(sides: Sides) -> dict[ClaimKey, list[Item]]:
    """The items that both sides have, of each cell and of each whole task."""
    groups: dict[ClaimKey, list[Item]] = defaultdict(list)
    for item in shared_items(*sides):
        groups[*item[:2], False].append(item)
        groups[item[0], None, True].append(item)
    return groups


@keep_recent
def _find_chances(sides: Sides) -> dict[ClaimKey, Interval | None]:
    """What the chance rule earns after, on the items of each cell and of each whole task."""
    return {key: chance_level(sides[1], items) for key, items in group_items(sides).items()}


@functools.lru_cache(maxsize=8)
def _read_measured_chances(path: Path, version: tuple[int, int] | None) -> dict[ClaimKey, Interval]:
    """Intervals as they were measured, which know whether other rows chose the rule; none without a table."""
    measured = read_measurements(path) if version else []
    rows = [row for row in measured if row.name == CHANCE_MEASUREMENT]
    levelled = {row.task for row in rows if row.level is not None}
    return {
        (row.task, row.level, row.level is None and row.task in levelled): Interval(row.value, row.low, row.high, row.n)
        for row in rows
    }


def chance_levels(run: RunFolder) -> dict[ClaimKey, Interval]:
    """Of every cell and every task: on the leading arm's items, or those measured before training."""
    path, sides = run.measurements("before"), leading_sides(run)
    if sides is None:
        sides = ([start_scores := scores(path)], [start_scores]) if path.is_file() else ([], [])
    measured_path = next((folder / "before.parquet" for folder in leading_folders(run)), path)
    measured_chances = _read_measured_chances(measured_path, file_version(measured_path))
    chance_by_claim: dict[ClaimKey, Interval] = {}
    for key, chance in _find_chances(sides).items():
        measured = measured_chances.get(key)
        if chance is not None:
            is_same_chance = measured is not None and abs(measured.value - chance.value) < SAME_CHANCE_TOLERANCE
            chance_by_claim[key] = measured if measured is not None and is_same_chance else chance
    return chance_by_claim


def cells_of(run: RunFolder) -> list[PageCell]:
    """One per claim of the leading arm. Raises InputError for broken tables."""
    chance_by_claim, sides = chance_levels(run), leading_sides(run) or ((), ())
    groups = group_items(sides)

    def success(claim: Claim, decoding: Decoding) -> BeforeAfter | None:
        items = groups.get(claim_key(claim))
        if not items:
            return None
        columns = ([seed_scores.column(READINGS[decoding].column, items) for seed_scores in side] for side in sides)
        before, after = (float(np.mean(column)) for column in columns)
        return (before, after) if np.isfinite([before, after]).all() else None

    return [
        PageCell(claim, success(claim, "greedy"), success(claim, "sampled"), chance_by_claim.get(claim_key(claim)))
        for claim in leading_claims(run)
    ]
