"""World of comparisons: which of two numbers is larger, digit by digit; the level is the place that decides it.

Where two numbers are drawn at random the first digit decides nearly always, and a later one is needed the more rarely the
later it stands: most examples say the same again, a few lie at the boundary. So the level is what a metric of difficulty
should find, and how often each level comes is known.

Source: our own; a language's version of examples near a boundary, 2206.14486; comparisons as a task also in 2605.29548.
Unit: level = place of the first digit in which the numbers differ, 1 to `DIGITS`.
Cost: about 20 us per example.
Blind spot: two answers, so luck is one half; no example is ambiguous unless its label is made wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World
from mixwright_lab.worlds.chain import in_eval

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

BASE, DIGITS = 4, 4
"""Digits 0 to 3, four of them; 65,280 pairs of different numbers."""
ANSWERS = ("<", ">")


class Comparison(World):
    """Prompts such as "3 0 2 1 3 1 2 1", level 2, whose answer is "<"."""

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not a place of a digit."""
        place = int(level)
        if place != level or not 1 <= place <= DIGITS:
            raise InputError(f"a level of 1 to {DIGITS}", str(level), "Choose one of them.")
        rng = np.random.default_rng((index, place, split == "eval", BASE))
        while True:
            one, other = rng.integers(BASE, size=(2, DIGITS))
            other[: place - 1] = one[: place - 1]
            prompt = " ".join(map(str, (*one, *other)))
            if one[place - 1] != other[place - 1] and in_eval(prompt) == (split == "eval"):
                answer = ANSWERS[int(one[place - 1] > other[place - 1])]
                return Example(
                    f"{split}:{prompt}",
                    "comparison",
                    prompt,
                    answer=answer,
                    level=float(place),
                    source="comparison",
                    split=split,
                )


def shares() -> np.ndarray:
    """Share of each level among pairs of different numbers, shape (DIGITS,)."""
    parts = float(BASE) ** -np.arange(DIGITS)
    return parts / parts.sum()


def language() -> Language:
    """What a model reads and writes here: digits, and `#` before the answer."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *map(str, range(BASE)), *ANSWERS), 2 * DIGITS + 1, 3)
