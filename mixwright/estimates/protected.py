"""Protected cells: tasks and levels that the model could answer before, and must not lose."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixwright.errors import unknown_name
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.outcome import Item, ItemScores, TaskLevel
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Decoding, Outcome
from mixwright.records import cell_key

SideScores = Sequence[ItemScores]
"""What was measured of one side of a comparison: one per seed, or per starting model."""


def cell_order(cell: TaskLevel) -> tuple[str, float]:
    """Sorts cells by task and level, those without a level first."""
    return cell[0], -math.inf if cell[1] is None else cell[1]


def cells_with_right_answers(before: SideScores, decoding: Decoding) -> list[TaskLevel]:
    """Tasks and levels of enough items with a right answer before, under the declared decoding: what can be lost."""
    items = _group_items(before, decoding)
    return sorted((cell for cell, (known, right) in items.items() if right and len(known) >= MIN_ITEMS), key=cell_order)


def find_only_right_items(before: SideScores, decoding: Decoding) -> set[Item]:
    """Items that alone were right in their task and level.

    They are why it is protected, so they can only fall. Without them every item is in a mean because of what other items of
    its cell showed, and nothing falls by the choice alone.
    """
    return {item for _, right in _group_items(before, decoding).values() if len(right) == 1 for item in right}


def _group_items(before: SideScores, decoding: Decoding) -> dict[TaskLevel, tuple[set[Item], set[Item]]]:
    """Task and level -> its items, and those of them with a right answer."""
    groups: dict[TaskLevel, tuple[set[Item], set[Item]]] = {}
    for scores in before:
        for item, value in scores.scores.get(READINGS[decoding].column, {}).items():
            known, right = groups.setdefault(item[:2], (set(), set()))
            known.add(item)
            if value > 0:
                right.add(item)
    return groups


def protected_items(before: SideScores, outcome: Outcome, names: Sequence[str] = ()) -> frozenset[Item]:
    """Return the items that retention is read from; none where no answer was right, or nothing is graded or named.

    Args:
        before: measurements of the starting models.
        outcome: what the primary outcome is read from.
        names: tasks and cells to protect, on all of their items; empty protects every cell with a right answer before.

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
    cells = set(cells_with_right_answers(before, outcome))
    return frozenset(item for item in items if item[:2] in cells)
