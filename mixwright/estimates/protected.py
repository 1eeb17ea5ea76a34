"""Protected cells: what was mastered before and must not be lost, decided on other items than those that are compared."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence

import numpy as np

from mixwright.errors import unknown_name
from mixwright.estimates.cell_states import BAND, MIN_ITEMS
from mixwright.estimates.outcome import Item, ItemScores, TaskLevel
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Decoding, Outcome
from mixwright.records import cell_key

ONE_IN_DECIDES = 5
"""One of so many items decides what is protected; the others are compared."""
SideScores = Sequence[ItemScores]
"""What was measured of one side of a comparison: one per seed, or per starting model."""


def cell_order(cell: TaskLevel) -> tuple[str, float]:
    """Sorts cells by task and level, those without a level first."""
    return cell[0], -math.inf if cell[1] is None else cell[1]


def decides_protection(item: Item) -> bool:
    """Whether this item decides what is protected: one of `ONE_IN_DECIDES`, by a hash of its id that nothing else uses."""
    return _decides(item[2])


@functools.lru_cache(maxsize=2**17)  # a page asks for each item a dozen times
def _decides(item_id: str) -> bool:
    return hashlib.sha256(f"protect {item_id}".encode("utf-8", "replace")).digest()[0] % ONE_IN_DECIDES == 0


def mastered_cells(before: SideScores, decoding: Decoding) -> list[TaskLevel]:
    """Cells over the band on the deciding items, under the declared decoding alone: the one that a loss is judged by.

    The estimate decides, not its interval: the items that are compared are others, so nothing falls back to its mean, and an
    interval would leave most cells of 95 % unprotected where few items decide.
    """
    values: dict[TaskLevel, dict[Item, list[float]]] = {}
    for scores in before:
        for item, value in scores.scores.get(READINGS[decoding].column, {}).items():
            if decides_protection(item):
                values.setdefault(item[:2], {}).setdefault(item, []).append(value)
    mastered = []
    for cell, items in values.items():
        wins = sum(float(np.mean(item_values)) for item_values in items.values())
        if len(items) >= MIN_ITEMS and wins >= BAND[1] * len(items):
            mastered.append(cell)
    return sorted(mastered, key=cell_order)


def protected_items(before: SideScores, outcome: Outcome, names: Sequence[str] = ()) -> frozenset[Item]:
    """The items that retention is read from; none where nothing was mastered, or nothing is graded and nothing was named.

    Args:
        before: measurements of the starting models.
        outcome: what the primary outcome is read from.
        names: tasks and cells to protect, on all of their items; empty protects what was mastered before.

    Raises:
        InputError: a name that was not measured before.
    """
    items = {item for scores in before for item in scores.items}
    if names:
        known_names = {name for item in items for name in (item[0], cell_key(*item[:2]))}
        for name in names:
            if name not in known_names:
                raise unknown_name("task or cell that was measured before (trial.protect)", name, known_names)
        return frozenset(item for item in items if item[0] in names or cell_key(*item[:2]) in names)
    if outcome not in GRADED_OUTCOMES:
        return frozenset()
    cells = set(mastered_cells(before, outcome))
    return frozenset(item for item in items if item[:2] in cells and not decides_protection(item))
