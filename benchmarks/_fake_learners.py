"""Learners of which everything is known, on cells whose gold answers are drawn from a known distribution.

An answer is a whole number. A learner answers each prompt once greedily and `SAMPLES` times at random. Its true success, S
and kappa follow from its numbers, so that bias and coverage can be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

SAMPLES = 8
Kind = Literal["skilled", "informationless", "blind spot"]
Answers = NDArray[np.int64]


def majority(share: float, others: int = 9) -> NDArray[np.float64]:
    """Answer 0 with this share, the others equally."""
    return np.array([share] + [(1 - share) / others] * others)


@dataclass(frozen=True, slots=True)
class Fake:
    """A learner that knows some prompts and guesses the others.

    Attributes:
        name: for tables.
        kind: skilled, informationless, or what D cannot see.
        gold: distribution of gold answers.
        guess: distribution of its answers where it guesses.
        knows: share of prompts that it knows.
        sure: chance that an answer to a known prompt is right; else it guesses there, too.
        fixed: a guess is made once per prompt, not once per sample.
        beta: how even the known prompts are: 0 has each known or not; else the chance of knowing is drawn anew per prompt,
            Beta(beta knows, beta (1 - knows)).
    """

    name: str
    kind: Kind
    gold: NDArray[np.float64]
    guess: NDArray[np.float64]
    knows: float = 0.0
    sure: float = 1.0
    fixed: bool = False
    beta: float = 0.0

    @property
    def success(self) -> float:
        """True success."""
        skill = self.knows * self.sure
        return skill + (1 - skill) * float(self.guess @ self.gold)

    @property
    def swapped(self) -> float:
        """True S."""
        skill = self.knows * self.sure
        return skill * float(self.gold @ self.gold) + (1 - skill) * float(self.guess @ self.gold)

    @property
    def kappa(self) -> float:
        """True kappa."""
        return (self.success - self.swapped) / (1 - self.swapped)

    def answers(self, prompts: int, rng: np.random.Generator) -> tuple[Answers, Answers]:
        """Gold answers, shape (prompts,), and sampled ones, shape (prompts, SAMPLES)."""
        gold = rng.choice(len(self.gold), prompts, p=self.gold)
        if self.beta:
            known = rng.beta(self.beta * self.knows, self.beta * (1 - self.knows), (prompts, 1)) * self.sure
        else:
            known = (rng.random((prompts, 1)) < self.knows) * self.sure
        guesses = rng.choice(len(self.guess), (prompts, 1 if self.fixed else SAMPLES), p=self.guess)
        says = np.where(rng.random((prompts, SAMPLES)) < known, gold[:, None], guesses)
        return gold, says


def grades(gold: Answers, says: Answers) -> NDArray[np.float64]:
    """Shape (prompts, prompts): mean grade of the answers to prompt i on prompt j."""
    return (says[:, :, None] == gold).mean(axis=1)
