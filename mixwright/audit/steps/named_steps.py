"""Steps that a user's function reads from a completion: what it does, what is stated, and what is right."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

from mixwright.audit.steps.worked import LARGEST, Step, changed_rules, digit_rules, number_rules
from mixwright.audit.user_functions import Function, WrongResultError, call_function

MAX_STEPS, MAX_SHOWN = 1_000, 200
"""Of one completion; and characters of a value that are kept."""
_OPTION = ("--steps", "steps, each (operation, stated value, right value, start, end)")


def read_named_steps(function: Function, row: dict[str, Any], row_source: str) -> list[Step]:
    """The steps that a user's function reads in a row; `row_source` is the row's file and line, for a refusal.

    A step is right where both values are equal. Start and end are places in the completion.

    Raises:
        InputError: it raises, or gives something else than steps.

    Examples:
        >>> def weekdays(row):
        ...     yield "day after", "Sunday", "Tuesday", 0, 6
        >>> read_named_steps(weekdays, {"completion": "Sunday"}, "train.jsonl:1")[0].right_value
        'Tuesday'
    """
    return call_function(function, row, lambda steps: _read_steps(steps, row["completion"]), _OPTION, row_source)


def _read_steps(steps: Any, completion: str) -> list[Step]:
    return [_step(one, completion) for one in islice(steps or (), MAX_STEPS)]


def _step(one: Any, completion: str) -> Step:
    if not isinstance(one, tuple | list) or len(one) != 5:
        raise WrongResultError(f"{type(one).__name__} {str(one)[:60]}")
    operation, stated, right, start, end = one
    if not isinstance(operation, str) or not operation:
        raise WrongResultError(f"an operation {operation!r}"[:60])
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(completion):
        raise WrongResultError(f"places {start!r} and {end!r} in {len(completion)} characters"[:80])
    is_right = bool(stated == right)
    rules = () if is_right else tuple(dict.fromkeys(_rules(right, stated)))
    fact = (operation, repr(right)[:MAX_SHOWN])
    shown = completion[start:end][:MAX_SHOWN]
    return Step(operation, fact, repr(stated)[:MAX_SHOWN], is_right, shown, (start, end), str(right)[:MAX_SHOWN], rules)


def _rules(right: Any, stated: Any) -> Iterator[str]:
    if isinstance(right, bool) or isinstance(stated, bool):
        return
    numbers = (int, float, Fraction)
    if isinstance(right, numbers) and isinstance(stated, numbers):
        if not (abs(right) < LARGEST and abs(stated) < LARGEST):
            return
        exact = [one if isinstance(one, Fraction) else Fraction(str(one)) for one in (right, stated)]
        yield from number_rules(*exact)
        yield from digit_rules(*exact)
    else:
        yield from changed_rules(right, stated)
