"""Protected cells: tasks and levels that the model could answer before, and must not lose."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixwright.errors import unknown_name
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.intervals import Z, wilson
from mixwright.estimates.items import Items, TaskLevel
from mixwright.estimates.outcome import ItemScores
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Decoding, Outcome
from mixwright.records import cell_key

READABLE_SHARE = 0.1
"""Success before from which a loss can be seen. Simulated: `mixwright_lab/log.md`, 28 November 2026."""
SideScores = Sequence[ItemScores]
"""What was measured of one side of a comparison: one per seed, or per starting model."""


def cells_with_right_answers(before: SideScores, decoding: Decoding) -> list[TaskLevel]:
    """Tasks and levels of enough items with a right answer before, under the declared decoding: what can be lost."""
    items, success = _mean_success(before, decoding)
    any_right = np.bincount(items.cell, success > 0, len(items.cells)) > 0
    return [items.cells[number] for number in np.flatnonzero(any_right & (items.counts >= MIN_ITEMS)).tolist()]


def find_unreadable_cells(before: SideScores, decoding: Decoding) -> set[TaskLevel]:
    """Return the cells of which so few answers were right before that a loss could not be seen.

    Success of a cell near the floor can hardly fall, whatever became of the task. In a mean it would hide the losses of
    others.
    """
    items, success = _mean_success(before, decoding, of_labels=True)
    is_unreadable = np.bincount(items.cell, success, len(items.cells)) < READABLE_SHARE * items.counts
    return {items.cells[number] for number in np.flatnonzero(is_unreadable).tolist()}


def find_cells_shown_unreadable(before: SideScores, decoding: Decoding) -> set[TaskLevel]:
    """Return the cells whose 95 % interval of success lies below `READABLE_SHARE`; of a few items, a low share is chance."""
    items, success = _mean_success(before, decoding)
    counts = items.counts.astype(float)
    wins = np.bincount(items.cell, success, len(items.cells)).astype(float)
    high = wilson(wins, counts, Z)[1]
    return {items.cells[number] for number in np.flatnonzero(high < READABLE_SHARE).tolist()}


def find_readable_items(before: SideScores, decoding: Decoding) -> Items:
    """Return the items whose cell is readable by its other items.

    A cell that is chosen by the very answers that are compared falls by the choice alone. So every item is in a mean because
    of what the other items of its cell showed.
    """
    items, success = _mean_success(before, decoding)
    right = np.bincount(items.cell, success, len(items.cells))
    return items.take(right[items.cell] - success >= READABLE_SHARE * (items.counts[items.cell] - 1))


def _mean_success(before: SideScores, decoding: Decoding, *, of_labels: bool = False) -> tuple[Items, NDArray[np.float64]]:
    """Items that were answered, and the mean success of each over the checkpoints that answered it.

    With `of_labels`, where a judge that errs graded others, those that are labelled and their labels.
    """
    column = READINGS[decoding].column
    column = before[0].true_column(column) if before and of_labels else column
    items = functools.reduce(Items.joined, (scores.having(column) for scores in before), Items())
    values = [scores.column(column, items) for scores in before]
    known = np.sum([~np.isnan(own) for own in values], axis=0)
    return items, np.nansum(values, axis=0) / known if values else np.zeros(0)


def named_cells(cells: Sequence[TaskLevel], names: Sequence[str], known: str = "measured (--protect)") -> list[TaskLevel]:
    """The cells of the tasks and cells that a user wants protected.

    Raises:
        InputError: one is not among them: a slip of the pen must not open the gate.
    """
    known_names = {name for cell in cells for name in (cell[0], cell_key(*cell))}
    for name in names:
        if name not in known_names:
            raise unknown_name(f"task or TASK@LEVEL that was {known}", name, known_names)
    return [cell for cell in cells if cell[0] in names or cell_key(*cell) in names]


def protected_items(before: SideScores, outcome: Outcome, names: Sequence[str] = ()) -> Items:
    """Return the items that retention is read from; none where no answer was right, or nothing is graded or named.

    Args:
        before: measurements of the starting models.
        outcome: what the primary outcome is read from.
        names: tasks and cells to protect, on all of their items; empty protects every cell with a right answer before.

    Raises:
        InputError: a name that was not measured before.
    """
    items = functools.reduce(Items.joined, (scores.items for scores in before), Items())
    if names:
        return items.of_cells({*named_cells(items.cells, names, "measured before (trial.protect)")})
    if outcome not in GRADED_OUTCOMES:
        return Items()
    return items.of_cells(set(cells_with_right_answers(before, outcome)))
