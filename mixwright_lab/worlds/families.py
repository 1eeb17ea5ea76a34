"""World of chains of four operations, modulo 16: three families that share no operation, and a task that mixes them.

A student of one family gets better at its operations alone; whoever is to solve the mixed task needs those of all three. So
students can be mixed on a task that none of them was trained on, and each can be asked what the others know.

Source: our own; a variant of `chain` for experts and mixtures of them, as in Sun et al., Transformer-squared, 2501.06252.
Unit: level = number of the family, 1 to 3; 4 = every family at least once.
Cost: about 30 us per example.
Blind spot: operations of different families still share how they are read and written; one length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World
from mixwright_lab.worlds import chain
from mixwright_lab.worlds.chain import MODULUS, in_eval, running_values

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

LENGTH = 4
FAMILIES = (("+1", "+3", "+5", "+7"), ("+2", "+4", "+6", "+8"), ("*3", "*5", "*7", "*11"))
MIXED = 4


class Families(World):
    """Problems such as "7 +1 +3 +3 +5", of family 1, whose answer is "3"."""

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not 1, 2, 3 or 4."""
        if level not in range(1, MIXED + 1):
            raise InputError("a level of 1 to 4", str(level), "Choose one of them.")
        number = int(level)
        rng = np.random.default_rng((index, number, split == "eval", LENGTH))
        while True:
            families = rng.permutation((0, 1, 2, int(rng.integers(3)))) if number == MIXED else np.full(LENGTH, number - 1)
            chosen = [str(rng.choice(FAMILIES[family])) for family in families]
            prompt = " ".join((str(rng.integers(MODULUS)), *chosen))
            if in_eval(prompt) == (split == "eval"):
                answer = str(running_values(prompt)[-1])
                made = f"{split}:{prompt}"
                return Example(made, "chain", prompt, answer=answer, level=float(level), source="families", split=split)


def language() -> Language:
    """The language of `chain`."""
    return chain.language()


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """A response to learn from, as in `chain`."""
    return chain.write_solution(example, style, noise, rng)
