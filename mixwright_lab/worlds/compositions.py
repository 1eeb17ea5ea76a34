"""World of compositions: short strings of letters under two of three operations, the string after the first in the open.

`F1` moves each letter on in the alphabet, `F2` moves the string round by one place, `F3` turns it about. F1 commutes with
the others, F2 and F3 do not commute. A problem "c a f b F1 F2" is answered "h f k g # f k g h": the trace, then the answer.
Which pairs of operations are trained on, how long strings are, and how a prompt is written can be left out one by one.

Source: DataAlchemy of Zhao et al., 2508.01191, with a third operation and held-out strings; our own alphabet and words.
Unit: level = letters of the string less one, 1 to 5.
Cost: about 20 us per example.
Blind spot: every step is a rule without exception; strings are short, and nothing in them means anything.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

LETTERS = "abcdefghijkl"
SHIFT_PLACES = 5
"""Places in the alphabet that F1 moves a letter on by."""
OPERATIONS = ("F1", "F2", "F3")
PAIRS = tuple((first, second) for first in OPERATIONS for second in OPERATIONS)
MIN_LETTERS, MOST_LETTERS = 2, 6
FILLER = "~"
"""A word that says nothing, for prompts that are written otherwise."""
MOST_PROMPT_WORDS = MOST_LETTERS + 2 + MOST_LETTERS
"""Words of the longest prompt: a string with a filler after each letter, and two operations."""


class Compositions(World):
    """Problems over pairs of operations.

    Args:
        pairs: that problems are made of, each as two of `OPERATIONS`; all nine by default.
    """

    def __init__(self, *, pairs: tuple[tuple[str, str], ...] = PAIRS) -> None:
        if wrong := [pair for pair in pairs if tuple(pair) not in PAIRS]:
            raise InputError(f"pairs of {', '.join(OPERATIONS)}", str(wrong[0]), "Correct the pairs.")
        self.pairs = pairs

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not 1 to 5."""
        length = int(level) + 1
        if length - 1 != level or not MIN_LETTERS <= length <= MOST_LETTERS:
            raise InputError(
                f"a level of {MIN_LETTERS - 1} to {MOST_LETTERS - 1}, letters less one", str(level), "Choose one of them."
            )
        rng = np.random.default_rng((index, length, split == "eval"))
        pair = self.pairs[int(rng.integers(len(self.pairs)))]
        string = ""
        while not string or in_eval(string) != (split == "eval"):
            string = "".join(LETTERS[place] for place in rng.integers(len(LETTERS), size=length))
        return problem(string, pair, split)


def problem(string: str, pair: tuple[str, str], split: str = "train") -> Example:
    """The problem of a string and a pair of operations, with its trace."""
    after = apply(string, pair[0])
    answer = " ".join(apply(after, pair[1]))
    prompt = " ".join((*string, *pair))
    target = f"{' '.join(after)} # {answer}"
    return Example(
        f"{split}:{prompt}", "compositions", prompt, target, answer=answer, level=float(len(string) - 1),
        skills=("".join(pair),), source="compositions", split=split,
    )  # fmt: skip


def apply(string: str, operation: str) -> str:
    """The string after one operation."""
    if operation == "F1":
        return "".join(LETTERS[(LETTERS.index(letter) + SHIFT_PLACES) % len(LETTERS)] for letter in string)
    return string[1:] + string[0] if operation == "F2" else string[::-1]


def spoilt(prompt: str, share: float, rng: np.random.Generator) -> str:
    """The prompt with a filler after this share of its letters; it asks for the same."""
    words = [(word, word not in OPERATIONS and rng.random() < share) for word in prompt.split()]
    return " ".join(part for word, filled in words for part in ((word, FILLER) if filled else (word,)))


def in_eval(string: str) -> bool:
    """Whether a string belongs to the eval split, with every pair of operations: an eighth of all."""
    return hashlib.blake2b(string.encode(), digest_size=4).digest()[0] < 32


def language() -> Language:
    """What a model reads and writes here."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *LETTERS, *OPERATIONS, FILLER), MOST_PROMPT_WORDS + 1, 2 * MOST_LETTERS + 2)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """Trace and answer; there is one style and no noise."""
    return str(example.target)
