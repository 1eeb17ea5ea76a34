"""World of chain arithmetic: a start number, 1 to 8 operations, all modulo 16; the level is the number of operations.

The answer can be worked out in the open (every running value, or every one after a mark) or given at once, so that the same
problem has several answer formats of different difficulty. Every step is one table look-up: a small model learns a length by
doing the steps, and cannot memorise it beyond two operations.

Source: our own; the length of a chain as dial of difficulty follows GSM-Infinite 2502.05252 and our first runs.
Unit: level = operations, 1 to 8.
Cost: about 20 us per example.
Blind spot: one skill, repeated; nothing in it needs language or planning. Level 1 has 192 prompts in all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

MODULUS = 16
MOST_OPERATIONS = 8
OPERATIONS = (*(f"+{number}" for number in range(1, 9)), "*3", "*5", "*7", "*11")
STYLES = ("full", "verbose", "direct")
EVAL_SHARE = 0.125
"""Share of all prompts that belong to the eval split."""


class Chain(World):
    """Problems such as "7 +3 *5", whose answer is "2".

    Args:
        bias: share of problems whose answer is 0: a shortcut that can be guessed, 0..1.
    """

    def __init__(self, *, bias: float = 0.0) -> None:
        self.bias = bias

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not 1 to 8."""
        length = int(level)
        if length != level or not 1 <= length <= MOST_OPERATIONS:
            raise InputError(f"a level of 1 to {MOST_OPERATIONS} operations", str(level), "Choose one of them.")
        rng = np.random.default_rng((index, length, split == "eval", round(self.bias * 1e6)))
        zero = rng.random() < self.bias
        while True:
            start, chosen = int(rng.integers(MODULUS)), rng.integers(len(OPERATIONS), size=length)
            prompt = " ".join((str(start), *(OPERATIONS[place] for place in chosen)))
            value = running_values(prompt)[-1]
            if in_eval(prompt) == (split == "eval") and (value == 0 or not zero):
                return Example(
                    f"{split}:{prompt}", "chain", prompt, answer=str(value), level=float(level), source="chain", split=split
                )


def running_values(prompt: str) -> list[int]:
    """The value after each operation."""
    start, *operations = prompt.split()
    value, values = int(start), []
    for operation in operations:
        number = int(operation[1:])
        value = (value + number if operation[0] == "+" else value * number) % MODULUS
        values.append(value)
    return values


def respond(prompt: str, style: str, values: Sequence[int] | None = None) -> str:
    """A response in one of `STYLES`: "10 2 # 2", ": 10 : 2 # 2" or "# 2".

    Args:
        prompt: the problem.
        style: full (every running value), verbose (each after a mark) or direct (the answer alone).
        values: running values to write, where they are not the true ones; the last is the answer.
    """
    values = running_values(prompt) if values is None else values
    steps = {"full": [str(v) for v in values], "verbose": [f": {v}" for v in values], "direct": []}[style]
    return " ".join((*steps, "#", str(values[-1])))


def language() -> Language:
    """What a model reads and writes here: operations and numbers."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *OPERATIONS, *map(str, range(MODULUS))), MOST_OPERATIONS + 2, 2 * MOST_OPERATIONS + 3)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """A response to learn from, this share of its running values wrong; what follows is calculated from what was written."""
    prompt = str(example.prompt)
    if not noise:
        return respond(prompt, style)
    start, *operations = prompt.split()
    values, value = [], int(start)
    for operation in operations:
        value = running_values(f"{value} {operation}")[0]
        if rng.random() < noise:
            value = int(rng.integers(MODULUS))
        values.append(value)
    return respond(prompt, style, values)


def in_eval(prompt: str) -> bool:
    """Whether a prompt belongs to the eval split; by its content, so that no prompt is in both."""
    return hashlib.blake2b(prompt.encode(), digest_size=4).digest()[0] < EVAL_SHARE * 256
