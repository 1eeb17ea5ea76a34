"""World of new operations where some rows help under other words, and some say wrong things in the target's own words.

The target is to work out chains of three operations `^1` to `^3`, whose meanings (permutations of the values) are random.
Helpers use the same operations among known ones, so that they share fewer words with the target; look-alikes are written as
the target is and use other permutations; all else is arithmetic that is known already.

Source: our own, for gradient similarity against look-alikes, 2402.04333, whose pools are instructions.
Unit: level 1 = known operations, 2 = target, 3 = helper, 4 = look-alike; three operations each.
Cost: about 30 us per example.
Blind spot: a look-alike is wrong in every step, and what helps is the same fact in another place.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World
from mixwright_lab.worlds.chain import MODULUS, in_eval, running_values

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

KNOWN = ("+1", "+2", "+3", "+5", "*3", "*5")
NEW = ("^1", "^2", "^3")
KINDS = {1.0: "known", 2.0: "target", 3.0: "helper", 4.0: "look-alike"}
LENGTH = 3
"""Operations of a problem."""


class Lookalikes(World):
    """Prompts such as "7 ^1 ^3 ^2", or "7 ^1 +3 ^2" of a helper, with every running value as target.

    Args:
        seed: of the permutations.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @cached_property
    def meanings(self) -> np.ndarray:
        """Value after each new operation, shape (2, operations, values): the true meanings, and the look-alikes'."""
        rng = np.random.default_rng((self.seed, 22))
        return np.array([[rng.permutation(MODULUS) for _ in NEW] for _ in range(2)])

    def make(self, index: int, level: float, split: str) -> Example:
        """The example at that index. Raises InputError for a level that is not 1 to 4."""
        if level not in KINDS:
            raise InputError(
                "level 1 (known), 2 (target), 3 (helper) or 4 (look-alike)", f"{level:g}", "Choose one of them."
            )
        kind = KINDS[level]
        rng = np.random.default_rng((self.seed, index, int(level), split == "eval"))
        while True:
            start, chosen = int(rng.integers(MODULUS)), _operations(kind, rng)
            prompt = " ".join((str(start), *chosen))
            if in_eval(prompt) == (split == "eval"):
                break
        values = self.values(start, chosen, wrong=kind == "look-alike")
        target = " ".join((*map(str, values), "#", str(values[-1])))
        name = f"{split}:{index}:{prompt}"
        return Example(name, kind, prompt, target, str(values[-1]), level, source="lookalikes", split=split)

    def values(self, start: int, operations: tuple[str, ...], *, wrong: bool = False) -> list[int]:
        """Every running value; `wrong` works new operations out as look-alikes do."""
        value, found = start, []
        for operation in operations:
            if operation in NEW:
                value = int(self.meanings[int(wrong), NEW.index(operation), value])
            else:
                value = running_values(f"{value} {operation}")[0]
            found.append(value)
        return found


def _operations(kind: str, rng: np.random.Generator) -> tuple[str, ...]:
    if kind == "known":
        return tuple(rng.choice(KNOWN, LENGTH).tolist())
    if kind == "helper":  # one known among the new
        return tuple(rng.permutation([*rng.choice(NEW, LENGTH - 1), rng.choice(KNOWN)]).tolist())
    return tuple(rng.choice(NEW, LENGTH).tolist())


def language() -> Language:
    """What a model reads and writes here."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *KNOWN, *NEW, *map(str, range(MODULUS))), LENGTH + 2, LENGTH + 3)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """The target of a row as it stands."""
    return str(example.target)
