"""Grader for numbers: a right completion is a number equal to the answer.

Source: https://arxiv.org/abs/2110.14168 (final-answer accuracy).
Unit: 1.0 within the tolerance, 0.0 otherwise.
Cost: one bounded regular expression and an exact decimal comparison.
Blind spot: fractions, units, and numbers in words; a number inside a sentence earns nothing.
"""

from __future__ import annotations

import decimal
import re

from mixwright.errors import InputError
from mixwright.graders._grader import Grader
from mixwright.records import Example

MAX_CHARACTERS = 100
NUMBER_PATTERN = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
EXACT_CONTEXT = decimal.Context(prec=2500, traps=[])


class Numeric(Grader):
    """ASCII digits, an optional sign, point, exponent of up to three digits and commas between thousands; nothing else.

    White space around the number is dropped. An answer that is not a number is compared as text.

    Args:
        tolerance: largest absolute difference that is right.
    """

    def __init__(self, *, tolerance: float = 0.0) -> None:
        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < float("inf"):
            raise InputError("tolerance as a number of at least 0", repr(tolerance), "Correct the grader's option.")
        self.tolerance = decimal.Decimal(str(tolerance))

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the completion is a number within the tolerance of the answer's, else 0.0."""
        text, answer = completion.strip(), (example.answer or "").strip()
        if not answer:
            return 0.0
        if text == answer:
            return 1.0
        number, gold = _number(text), _number(answer)
        if number is None or gold is None:
            return 0.0
        return float(EXACT_CONTEXT.abs(EXACT_CONTEXT.subtract(number, gold)) <= self.tolerance)


def _number(text: str) -> decimal.Decimal | None:
    is_number = len(text) <= MAX_CHARACTERS and NUMBER_PATTERN.fullmatch(text) and re.search(r"[0-9]", text.split("e")[0])
    try:
        return decimal.Decimal(text.replace(",", "")) if is_number else None
    except decimal.InvalidOperation:
        return None
