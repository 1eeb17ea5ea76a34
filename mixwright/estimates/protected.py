"""Protected cells: tasks and levels that the model could answer before, and must not lose."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixwright.errors import unknown_name
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.outcome import Item, ItemScores, TaskLevel
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Decoding, Outcome
from mixwright.records import cell_key

READABLE_SHARE = 0.1
"""Success before from which a loss can be seen. Simulated: `mixwright_lab/log.md`, 28 November 2026."""
SideScores = Sequence[ItemScores]
"""What was measured of one side of a comparison: one per seed, or per starting model."""


def cell_order(cell: TaskLevel) -> tuple[str, float]:
    """Sorts cells by task and level, those without a level first."""
    return cell[0], -math.inf if cell[1] is None else cell[1]


def cells_with_right_answers(before: SideScores, decoding: Decoding) -> list[TaskLevel]:
    """Tasks and levels of enough items with a right answer before, under the declared decoding: what can be lost."""
    items = _group_items(before, decoding)
    return sorted((cell for cell, known in items.items() if any(known.values()) and len(known) >= MIN_ITEMS), key=cell_order)


def find_unreadable_cells(before: SideScores, decoding: Decoding) -> set[TaskLevel]:
    """Return the cells of which so few answers were right before that a loss could not be seen.

    Success of a cell near the floor can hardly fall, whatever became of the task. In a mean it would hide the losses of
    others.
    """
    groups = _group_items(before, decoding)
    return {cell for cell, items in groups.items() if sum(items.values()) < READABLE_SHARE * len(items)}


def find_readable_items(before: SideScores, decoding: Decoding) -> set[Item]:
    """Return the items whose cell is readable by its other items.

    A cell that is chosen by the very answers that are compared falls by the choice alone. So every item is in a mean because
    of what the other items of its cell showed.
    """
    found = set[Item]()
    for items in _group_items(before, decoding).values():
        right, least = sum(items.values()), READABLE_SHARE * (len(items) - 1)
        found.update(item for item, success in items.items() if right - success >= least)
    return found


def _group_items(before: SideScores, decoding: Decoding) -> dict[TaskLevel, dict[Item, float]]:
    """Cell -> its items -> mean success."""
    values: dict[TaskLevel, dict[Item, list[float]]] = {}
    for scores in before:
        for item, value in scores.scores.get(READINGS[decoding].column, {}).items():
            values.setdefault(item[:2], {}).setdefault(item, []).append(value)
    return {cell: {item: sum(seeds) / len(seeds) for item, seeds in items.items()} for cell, items in values.items()}


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
                raise unknown_name("task or TASK@LEVEL that was measured before (trial.protect)", name, known_names)
        return frozenset(item for item in items if item[0] in names or cell_key(*item[:2]) in names)
    if outcome not in GRADED_OUTCOMES:
        return frozenset()
    cells = set(cells_with_right_answers(before, outcome))
    return frozenset(item for item in items if item[:2] in cells)
