"""World of chains of one length whose difficulty is in the operations: four operations modulo 16, of three classes.

Each class holds additions of small and of large numbers and a multiplication, so that neither the length of a prompt, nor
the size of its numbers, nor the sign of an operation gives the level away; which operations stand there does. How hard a
class is for a student follows from what it was taught: one that never saw the operations of class 3 can only guess.

Source: our own; an ablation of `chain`, where the length of a prompt gives its level away.
Unit: level = the highest class among the operations, 1 to 3; two to four of the four are of that class, the rest lower.
Cost: about 30 us per example.
Blind spot: three levels and eleven operations; a rule that counts words can tell the levels apart.
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
CLASSES = (("+1", "+4", "+7", "*3"), ("+2", "+5", "+8", "*5"), ("+3", "+6", "*7"))
"""Operations of class 1, 2 and 3; each is written in two characters."""
LEVELS = (1, 2, 3)
FEWEST = 2
"""Operations of the level's own class, at least."""


class Operators(World):
    """Problems such as "7 +2 +4 *5 +1", of level 2, whose answer is "2"."""

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not 1, 2 or 3."""
        if level not in LEVELS:
            raise InputError("a level of 1, 2 or 3", str(level), "Choose one of them.")
        number = int(level)
        rng = np.random.default_rng((index, number, split == "eval", LENGTH))
        own, lower = CLASSES[number - 1], [operation for part in CLASSES[: number - 1] for operation in part]
        while True:
            count = int(rng.integers(FEWEST, LENGTH + 1)) if lower else LENGTH
            chosen = [*rng.choice(own, count), *(rng.choice(lower, LENGTH - count) if lower else ())]
            prompt = " ".join((str(rng.integers(MODULUS)), *rng.permutation(chosen).tolist()))
            if in_eval(prompt) == (split == "eval"):
                answer = str(running_values(prompt)[-1])
                return Example(
                    f"{split}:{prompt}", "chain", prompt, answer=answer, level=float(level), source="operators", split=split
                )


def class_of(prompt: str) -> int:
    """The level of a problem: the highest class among its operations."""
    return max(number for number, part in enumerate(CLASSES, 1) for word in prompt.split()[1:] if word in part)


def language() -> Language:
    """The language of `chain`."""
    return chain.language()


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """A response to learn from, as in `chain`."""
    return chain.write_solution(example, style, noise, rng)
