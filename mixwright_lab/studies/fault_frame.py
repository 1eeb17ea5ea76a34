"""The world `dilution` of `fault_costs`: one number that decides, behind sixty words that all rows share.

Source: the check `dilution`; Lin et al. 2024 (arXiv 2404.07965) on a loss of chosen tokens alone.
Unit: a question for the middle one of three numbers.
Cost: milliseconds, and the check reads the rows.
Blind spot: one frame, which stands before the number.
"""

from __future__ import annotations

import random

from mixwright_lab.studies.everyday import middle_numbers
from mixwright_lab.studies.fault_parts import (
    AS_IT_IS,
    FROZEN,
    ITEMS,
    MASK,
    ROWS,
    Made,
    make_item,
    make_row,
    warnings_of,
)

DILUTION = "dilution"
SHORTENED, MASKED = "frame left out", "frame masked"
DILUTION_ARMS = (SHORTENED, AS_IT_IS, MASKED, FROZEN)
EVEN, ODD = "even", "odd"
"""Cells of the items, by their place: nothing is expected to differ between them."""
FRAME = (
    "Thank you for the question. I read it with care, looked at every one of the numbers in it, and compared each "
    "of them with the others, from the first to the last, before I made up my mind. It helps to think of them as "
    "standing in a row by their size, so that one of them has a neighbour on either side. "
)
MARK = "Answer: "


def make_dilution(seed: int, arm: str) -> Made:
    """Rows of an arm, and the items."""
    train, held_out = middle_numbers(random.Random(f"{seed} {DILUTION}"))
    asked = [(prompt, answer, ODD if place % 2 else EVEN) for place, (prompt, answer) in enumerate(held_out[:ITEMS])]
    items = [make_item(DILUTION, place, *one) for place, one in enumerate(asked)]
    if arm == FROZEN:
        return Made([], items, {})
    frame = "" if arm == SHORTENED else FRAME
    rows = [
        make_row(DILUTION, place, prompt, f"{frame}{MARK}{answer}") for place, (prompt, answer) in enumerate(train[:ROWS])
    ]
    remarks = {"warned": bool(warnings_of(rows, DILUTION))}
    if arm == MASKED:
        rows = [row | {MASK: [[0, len((frame + MARK).rstrip())]]} for row in rows]
    return Made(rows, items, remarks)
