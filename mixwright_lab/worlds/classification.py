"""World of classification tasks: two labels for a string of letters, by a rule that the task's name alone does not tell.

One letter of the first three decides, and each task has its own place and its own set of letters that are labelled alike, so
that without labelled examples nobody can be right more often than the commonest label. The long form is the benchmark's, the
short forms are other text of the same skill: who has learnt it there can answer the benchmark, of which no row was seen.

Source: our own, for the detectors of task contamination in 2312.16337; its tasks are labelled data sets of language.
Unit: level 1 = short forms of 3 to 5 letters, 2 = long form of 6; the commonest label is right in 62.5 % of all rows.
Cost: about 20 us per example.
Blind spot: rules of one letter, which a few labelled rows teach; nothing here can be solved by knowledge of the world.
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

LETTERS = tuple("abcdefghijklmnop")
LETTERS_OF_COMMON_LABEL = 10
"""Letters with the commonest label, of 16."""
CANDIDATE_PLACES = 3
"""First letters, one of which decides."""
LENGTHS = {1.0: (3, 4, 5), 2.0: (6,)}
"""Numbers of letters at each level."""
LABELS = ("no", "yes")
MOST_TASKS = 64
"""Tasks that have a name."""


class Classification(World):
    """Prompts such as "t05 a k d f e b", level 2, whose answer is "yes".

    Args:
        tasks: number of tasks, 1 to `MOST_TASKS`.
        seed: of the rules.
    """

    def __init__(self, *, tasks: int = 24, seed: int = 0) -> None:
        if not 1 <= tasks <= MOST_TASKS:
            raise InputError(f"1 to {MOST_TASKS} tasks", str(tasks), "Choose as many.")
        self.tasks, self.seed = tasks, seed

    @cached_property
    def rules(self) -> tuple[np.ndarray, np.ndarray]:
        """Place that decides, shape (tasks,), and label (0 or 1) of each letter there, shape (tasks, letters)."""
        rng = np.random.default_rng((self.seed, 26))
        commonest = rng.integers(2, size=(self.tasks, 1))
        rare = rng.permuted(np.tile(np.arange(len(LETTERS)) >= LETTERS_OF_COMMON_LABEL, (self.tasks, 1)), axis=1)
        return rng.integers(CANDIDATE_PLACES, size=self.tasks), np.where(rare, 1 - commonest, commonest)

    def row(self, task: int, index: int, split: str, level: float = 2.0) -> Example:
        """Row `index` of one task, 0 is the first."""
        name, rng = name_of(task), np.random.default_rng((self.seed, task, index, int(level), split == "eval"))
        while True:
            letters = rng.integers(len(LETTERS), size=rng.choice(LENGTHS[level]))
            prompt = " ".join((name, *(LETTERS[letter] for letter in letters)))
            if in_eval(prompt) == (split == "eval"):
                break
        places, labels = self.rules
        answer = LABELS[labels[task, letters[places[task]]]]
        return Example(f"{split}:{prompt}:{index}", name, prompt, answer=answer, level=level, source="world", split=split)

    def make(self, index: int, level: float, split: str) -> Example:
        """The example at that index, tasks in turn. Raises InputError for another level than 1 or 2."""
        if level not in LENGTHS:
            raise InputError("level 1 (3 to 5 letters) or 2 (6 letters)", f"{level:g}", "Choose one of them.")
        return self.row(index % self.tasks, index // self.tasks, split, level)


def name_of(task: int) -> str:
    """Name of a task, its first word."""
    return f"t{task + 1:02d}"


def language() -> Language:
    """What a model reads and writes: whole documents, behind an empty prompt."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *map(name_of, range(MOST_TASKS)), *LETTERS, *LABELS), 1, max(LENGTHS[2.0]) + 4)
