"""World of facts that are known by heart and of skills, whose answers are written in a long or in a short form.

A fact gives two digits for two letters; in the train split facts are drawn by their rank, so that a small model knows the
frequent ones only; those of the eval split are never taught, and can only be guessed. Skills rearrange three digits and have
held-out problems. The long form "well it is 4 7" is what a base is taught, mostly, the short form "# 4 7" is what
tuning changes it to.

Source: setting after Liu et al., Tuning Language Models by Proxy, 2401.08565; own world.
Unit: level 1 = fact, 2 = sorting, 3 = writing backward, 4 = the first digit goes to the end (no base is taught it).
Cost: about 30 us per example.
Blind spot: skills of three digits, and facts without structure; a form is a few words.
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

TASKS = ("fact", "sort", "backward", "rotate")
SKILLS = (2.0, 3.0, 4.0)
LONG, SHORT = ("well", "it", "is"), ("#",)
"""What comes before an answer in either form."""
LETTERS, DIGITS, FACTS, LENGTH, POWER = 20, 10, 300, 3, 0.8
"""Letters, digits, facts, digits of a skill, and the power of the rank by which a fact's frequency falls."""


class FactsAndSkills(World):
    """Rows such as "fact k3 k11", whose answer is "4 7", and "sort 5 2 9", whose answer is "2 5 9".

    Args:
        seed: of the facts.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @cached_property
    def facts(self) -> np.ndarray:
        """First letter, second letter and the two digits of each fact, int64 of shape (FACTS, 4), frequent ones first."""
        rng = np.random.default_rng((self.seed, 12))
        keys = rng.choice(LETTERS**2, FACTS, replace=False)
        return np.stack((keys // LETTERS, keys % LETTERS, *rng.integers(DIGITS, size=(2, FACTS))), axis=1)

    @cached_property
    def unknown(self) -> np.ndarray:
        """The same of all other pairs of letters, int64 of shape (LETTERS ** 2 - FACTS, 4)."""
        keys = np.setdiff1d(np.arange(LETTERS**2), self.facts[:, 0] * LETTERS + self.facts[:, 1])
        values = np.random.default_rng((self.seed, 13)).integers(DIGITS, size=(2, len(keys)))
        return np.stack((keys // LETTERS, keys % LETTERS, *values), axis=1)

    @cached_property
    def shares(self) -> np.ndarray:
        """How often each fact is drawn in the train split, shape (FACTS,), sums to 1."""
        parts = np.arange(1, FACTS + 1) ** -POWER
        return parts / parts.sum()

    def make(self, index: int, level: float, split: str) -> Example:
        """The row at that index. Raises InputError for a level that is not 1, 2, 3 or 4."""
        if level not in range(1, len(TASKS) + 1):
            raise InputError("a level of 1 to 4", str(level), "Choose one of them.")
        task, rng = TASKS[int(level) - 1], np.random.default_rng((self.seed, index, int(level), split == "eval"))
        if task == "fact":
            table, chances = (self.unknown, None) if split == "eval" else (self.facts, self.shares)
            prompt, answer = question_of(table[int(rng.choice(len(table), p=chances))])
        else:
            while True:
                digits = rng.integers(DIGITS, size=LENGTH).tolist()
                prompt = " ".join((task, *map(str, digits)))
                if in_eval(prompt) == (split == "eval"):
                    break
            answer = " ".join(map(str, rearranged(task, digits)))
        name = f"{split}:{index}:{prompt}"
        return Example(name, task, prompt, answer=answer, level=level, source="facts_and_skills", split=split)


def question_of(fact: np.ndarray) -> tuple[str, str]:
    """Prompt and answer of a row of the facts."""
    first, second, *value = fact.tolist()
    return f"fact k{first} k{second}", " ".join(map(str, value))


def rearranged(task: str, digits: list[int]) -> list[int]:
    """What a skill makes of digits."""
    return {"sort": sorted(digits), "backward": digits[::-1], "rotate": [*digits[1:], digits[0]]}[task]


def format_answer(answer: str, form: tuple[str, ...]) -> str:
    """A response in one of the forms."""
    return " ".join((*form, answer))


def language() -> Language:
    """Names of tasks, letters, digits and the words of the forms."""
    from mixwright_lab.training.language import SIGNS, Language

    letters, digits = (f"k{place}" for place in range(LETTERS)), map(str, range(DIGITS))
    return Language((*SIGNS, *TASKS, *LONG, *letters, *digits), LENGTH + 2, len(LONG) + LENGTH + 1)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """The answer in the form that `style` names, `long` or `short`; there is no noise."""
    return format_answer(str(example.answer), LONG if style == "long" else SHORT)
