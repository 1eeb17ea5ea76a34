"""Order of worked solutions: values that only a later step makes.

Left out on purpose: whether a step follows from the ones before; values written as words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from mixwright.audit.steps.equations import Equation

CONSTANTS = frozenset(map(Fraction, (*range(13), 15, 20, 24, 25, 30, 48, 50, 52, 60, 90, 100, 180, 360, 365, 1000)))
"""Values that a step may use from nowhere; chance makes them again later, too."""
_NUMBERS = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w])\d*\.?\d+")


class Early(NamedTuple):
    """Numbers of a solution that stand before the step that makes them."""

    pairs: list[tuple[int, int]]
    """(step, later step) by index: the first uses a number that nothing before it holds and that the later one makes."""
    unknown: set[Fraction]
    """Operands of all steps but the last that nothing before their step gives."""


def values_used_too_early(prompt: str, completion: str, equations: Sequence[Equation]) -> Early:
    """Compare the operands that nothing before their step gives with the values that equations state.

    Small numbers (`CONSTANTS`) may come from anywhere.
    """
    made_by = {equation.stated: index for index, equation in enumerate(equations)}
    known, at = read_numbers(prompt), 0
    pairs, unknown = list[tuple[int, int]](), set[Fraction]()
    for index, equation in enumerate(equations):
        known |= read_numbers(completion[at : equation.span[0]])
        at = equation.span[0]
        for value in equation.operands:
            if value in CONSTANTS or value in known or -value in known:
                continue
            if made_by.get(value, -1) > index:
                pairs.append((index, made_by[value]))
            if index < len(equations) - 1:
                unknown.add(value)
        known |= {equation.stated, *equation.operands}
    return Early(pairs, unknown)


def read_numbers(text: str) -> set[Fraction]:
    """All numbers of a text; a percentage as its share, too."""
    found = set[Fraction]()
    for match in _NUMBERS.finditer(text):
        value = Fraction(match[0].replace(",", "") if match[0][0] != "." else f"0{match[0]}")
        found.add(value)
        if text[match.end() : match.end() + 2].lstrip().startswith("%"):
            found.add(value / 100)
    return found
