"""World of four tasks in one vocabulary: adding, sorting, choosing any larger digit, and recalling a digit of a pair.

The first word of a prompt names the task, four digits follow. Adding and sorting have one right answer, which is worked out;
choosing accepts every digit of the prompt that is larger than the first one; recalling is a table from the first two digits
to a digit, and can only be known. All tasks read and write the same digits, so that learning one moves what others use.

Source: our own, after the kinds of task in Li et al., Omni-Thinker, 2507.14783: structured, open, and question answering.
Unit: level = number of the task, 1 to 4.
Cost: about 40 us per example.
Blind spot: every response is a few digits; an open task without a judge.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World
from mixwright_lab.worlds.chain import in_eval

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

TASKS = ("add", "sort", "larger", "recall")
DIGITS, LENGTH = 10, 4


class FourTasks(World):
    """Problems such as "sort 5 2 9 2", whose answer is "2 2 5 9".

    Args:
        seed: of the table that is recalled.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @cached_property
    def table(self) -> np.ndarray:
        """Digit that two digits stand for, int64 of shape (DIGITS, DIGITS)."""
        return np.random.default_rng(self.seed).integers(DIGITS, size=(DIGITS, DIGITS))

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index. Raises InputError for a level that is not 1, 2, 3 or 4."""
        if level not in range(1, len(TASKS) + 1):
            raise InputError("a level of 1 to 4", str(level), "Choose one of them.")
        task = TASKS[int(level) - 1]
        rng = np.random.default_rng((self.seed, index, int(level), split == "eval"))
        while True:
            digits = rng.integers(DIGITS, size=LENGTH).tolist()
            prompt, answers = " ".join((task, *map(str, digits))), self.answers(task, digits)
            if answers and in_eval(prompt) == (split == "eval"):
                return Example(
                    f"{split}:{prompt}",
                    task,
                    prompt,
                    answer=answers[0],
                    level=level,
                    source="four_tasks",
                    split=split,
                    extra={"accepted": answers},
                )

    def answers(self, task: str, digits: list[int]) -> tuple[str, ...]:
        """All right answers; none where no digit is larger than the first."""
        if task == "add":
            return (str((digits[0] + digits[1]) % DIGITS),)
        if task == "sort":
            return (" ".join(map(str, sorted(digits))),)
        if task == "larger":
            return tuple(sorted({str(digit) for digit in digits[1:] if digit > digits[0]}))
        return (str(self.table[digits[0], digits[1]]),)


def language() -> Language:
    """Names of tasks and digits."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *TASKS, *map(str, range(DIGITS))), LENGTH + 2, LENGTH + 2)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """A right answer, drawn where there are several; styles and noise do not apply."""
    return f"# {rng.choice(example.extra['accepted'])}"
