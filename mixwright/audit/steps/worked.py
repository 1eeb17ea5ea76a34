"""Steps of worked solutions of any kind, and the rules by which a wrong value may have come about.

An equation, a value that is stated for code, or a number of a tool's result in an answer: each is a `Step`, and wrong ones
are looked at in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from mixwright.audit.steps.equations import MIXED, Equation
from mixwright.corpus.masks import MASK_COLUMN

LARGEST = 1e30
"""Bound of stated numbers."""


class Step(NamedTuple):
    """One stated value of a solution."""

    operation: str
    """What gives the value, in words."""
    fact: Hashable
    """Operation and operands: two steps with the same fact should state the same value."""
    stated: Hashable
    """The value that the text states."""
    is_right: bool
    text: str
    """As it stands there."""
    span: tuple[int, int] | None
    """Characters of the completion from its begin to its end; None where it stands in the prompt."""
    right_value: str
    """In words."""
    rules: tuple[str, ...]
    """Rules that give the wrong value; none of a right one."""


def step_of(one: Equation) -> Step:
    """An equation as a step."""
    rules = () if one.is_right else tuple(dict.fromkeys(rules_of(one)))
    return Step(one.operation, _fact(one), one.stated, one.is_right, one.text, one.span, shown_number(one.true), rules)


def _fact(one: Equation) -> tuple[str, tuple[Fraction, ...]]:
    ordered = one.operands if one.operation in ("minus", "divide", MIXED) else tuple(sorted(one.operands))
    return (one.operation if one.operation != MIXED else one.text.partition("=")[0], ordered)


def rules_of(one: Equation) -> Iterator[str]:
    """Rules that give the wrong value of an equation, in words.

    Examples:
        >>> from mixwright.audit.steps.equations import read_equations
        >>> sorted(rules_of(read_equations("27 + 15 = 43")[0]))
        ['off by +1']
    """
    yield from number_rules(one.true, one.stated)
    if len(one.operands) == 2:
        yield from _rules_of_two(one, *one.operands)
    yield from digit_rules(one.true, one.stated)


def number_rules(true: Fraction, stated: Fraction) -> Iterator[str]:
    """Offset, factor and sign between the right number and the stated one."""
    offset = stated - true
    yield f"off by {'+' if offset > 0 else ''}{shown_number(offset)}"
    if true and stated:
        for factor in (10, 100, 2):
            if stated == true * factor:
                yield f"{factor} times too large"
            if stated * factor == true:
                yield f"{factor} times too small"
        if stated == -true:
            yield "the other sign"


def digit_rules(true: Fraction, stated: Fraction) -> Iterator[str]:
    """What the digits of two whole numbers have to do with each other."""
    right, wrong = (str(abs(value.numerator)) if value.denominator == 1 else "" for value in (true, stated))
    if right and wrong and len(right) > 1:
        if wrong == right[::-1].lstrip("0"):
            yield "digits reversed"
        if wrong.zfill(len(right)) == right[:-2] + right[-1] + right[-2]:
            yield "the last two digits exchanged"
        if wrong == right[:-1]:
            yield "the last digit dropped"


def _rules_of_two(one: Equation, first: Fraction, second: Fraction) -> Iterator[str]:
    others = {"plus": first + second, "minus": first - second, "times": first * second}
    others |= {"divide": first / second} if second else {}
    for name, value in others.items():
        if name != one.operation and one.stated == value:
            yield f"{name} in its place"
    if one.operation == "minus" and one.stated == second - first:
        yield "the other way round"
    for name, value in (("first", first), ("second", second)):
        if one.stated == value:
            yield f"the {name} number copied"
    whole = first.denominator == second.denominator == 1 and one.operation in ("plus", "minus")
    if whole and one.stated == _without_carry(int(first), int(second), one.operation):
        yield "carries forgotten"


def _without_carry(first: int, second: int, operation: str) -> int:
    """Digit by digit: the last digit of each sum, or the difference of each pair."""
    digits = zip(str(abs(first)).zfill(20), str(abs(second)).zfill(20), strict=False)
    made = ((int(a) + int(b)) % 10 if operation == "plus" else abs(int(a) - int(b)) for a, b in digits)
    return int("".join(map(str, made)))


def shown_number(value: Fraction) -> str:
    """As a whole number, or with up to six digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"


def read_mask(extra: str) -> list[list[int]]:
    """Return the spans of the completion outside the loss, from the further columns of a row as JSON."""
    return json.loads(extra).get(MASK_COLUMN) or [] if f'"{MASK_COLUMN}"' in extra else []


def is_masked(span: tuple[int, int] | None, mask: Sequence[Sequence[int]]) -> bool:
    """Return whether a part of a completion overlaps one that is outside the loss."""
    return span is not None and any(start < span[1] and span[0] < end for start, end in mask)
