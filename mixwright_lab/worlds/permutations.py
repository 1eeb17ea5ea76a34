"""World of permutations: a start digit and letters that each permute the digits; the answer is the digit at the end.

The permutations of a seed are drawn at random and do not commute, so that a letter cannot be skipped or moved: the state
has to be carried from letter to letter, and a trace of the digits after each letter does so in the open. Traces can be made
wrong in their content (digits) or in their structure (order and presence of steps); the answer is left right.

Source: state tracking after the word problem of permutation groups; ways to spoil traces after Li et al., 2502.07374.
Unit: level = letters, 1 to 6.
Cost: about 40 us per example; traces are drawn as arrays.
Blind spot: one table look-up per step; a trace has no step that only plans, checks or goes back.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

DIGITS, LETTERS, LONGEST = 10, "abcdef", 6
HELD_OUT_REMAINDER = 7
"""A problem whose letters, as a number in base 6, leave the remainder of its start digit here is in the eval split."""
EMPTY = -1
"""In place of a step that a trace leaves out."""
SPOILINGS = ("clean", "uniform", "systematic", "shuffle", "delete", "insert")
"""Ways to spoil a trace: content (digits at random; one too high), structure (order; steps left out; foreign steps)."""


class Permutations(World):
    """Problems such as "4 a c b", whose trace is "a 7 c 0 b 2 # 2".

    Args:
        seed: of the permutations.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @cached_property
    def tables(self) -> np.ndarray:
        """Digit that each letter makes of each, int64 of shape (letters, DIGITS)."""
        rng = np.random.default_rng(self.seed)
        return np.stack([rng.permutation(DIGITS) for _ in LETTERS])

    def problems(self, count: int, length: int, split: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Start digits, shape (count,), and letters, shape (count, length), of one split."""
        place = len(LETTERS) ** np.arange(length)
        starts, letters = np.zeros(count, dtype=np.int64), np.zeros((count, length), dtype=np.int64)
        other = np.ones(count, dtype=bool)
        while other.any():
            starts[other] = rng.integers(DIGITS, size=int(other.sum()))
            letters[other] = rng.integers(len(LETTERS), size=(int(other.sum()), length))
            other = (letters @ place % HELD_OUT_REMAINDER == starts % HELD_OUT_REMAINDER) != (split == "eval")
        return starts, letters

    def states(self, starts: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """Digit after each letter, same shape as `letters`."""
        found, state = np.empty_like(letters), starts
        for step in range(letters.shape[1]):
            state = self.tables[letters[:, step], state]
            found[:, step] = state
        return found

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not 1 to 6."""
        length = int(level)
        if length != level or not 1 <= length <= LONGEST or split not in ("train", "eval"):
            raise InputError(f"1 to {LONGEST} letters of train or eval", f"{level} of {split!r}", "Correct it.")
        rng = np.random.default_rng((self.seed, index, length, split == "eval"))
        starts, letters = self.problems(1, length, split, rng)
        states = self.states(starts, letters)
        prompt = prompts(starts, letters)[0]
        trace = texts(letters, states, states[:, -1])[0]
        answer, made = str(states[0, -1]), f"{split}:{length}:{index}"
        return Example(made, "permutations", prompt, trace, answer, float(level), source="permutations", split=split)


def spoiled(
    letters: np.ndarray, states: np.ndarray, way: str, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Steps of traces in one of `SPOILINGS`: their letters and their digits, `EMPTY` where a step is left out.

    Args:
        letters: of right traces, shape (traces, steps).
        states: digit after each letter.
        way: of `SPOILINGS`.
        share: of the steps that it happens to, each by itself; of the steps that change places where they are shuffled.
        rng: says which.
    """
    letters, states = letters.copy(), states.copy()
    hit = rng.random(states.shape) < share
    if way == "uniform":
        states[hit] = rng.integers(DIGITS, size=int(hit.sum()))
    elif way == "systematic":
        states[hit] = (states[hit] + 1) % DIGITS
    elif way == "shuffle":
        moved = round(share * letters.shape[1])
        for row in range(len(letters)):
            places = rng.permutation(letters.shape[1])[:moved]
            to = rng.permutation(places)
            letters[row, to], states[row, to] = letters[row, places], states[row, places]
    elif way == "delete":
        letters[hit] = EMPTY
    elif way == "insert":
        foreign = rng.permutation(len(letters))
        letters[hit], states[hit] = letters[foreign][hit], states[foreign][hit]
    elif way != "clean":
        raise InputError(f"one of {', '.join(SPOILINGS)}", repr(way), "Correct the way.")
    return letters, states


def prompts(starts: np.ndarray, letters: np.ndarray) -> list[str]:
    """Problems as words: the start digit, then the letters."""
    return [" ".join((str(start), *(LETTERS[letter] for letter in row))) for start, row in zip(starts, letters, strict=True)]


def texts(letters: np.ndarray, states: np.ndarray, answers: np.ndarray) -> list[str]:
    """Traces as words: each step as letter and digit, then "#" and the answer."""
    made = []
    for row, answer in enumerate(answers):
        steps = [f"{LETTERS[a]} {b}" for a, b in zip(letters[row], states[row], strict=True) if a != EMPTY]
        made.append(" ".join((*steps, "#", str(answer))))
    return made


def language() -> Language:
    """What a model reads and writes here: letters and digits."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *LETTERS, *map(str, range(DIGITS))), LONGEST + 2, 2 * LONGEST + 3)
