"""Learners of which everything is known, on cells whose gold answers are drawn from a known distribution.

An answer is a whole number. A learner answers each prompt `SAMPLES` times. Its true success, S and kappa follow from its
numbers, so that bias and coverage can be counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

SAMPLES = 8
Kind = Literal["skilled", "informationless", "blind spot"]
Answers = NDArray[np.int64]
Shares = NDArray[np.float64]


def majority(share: float, others: int = 9) -> Shares:
    """Answer 0 with this share, the others equally."""
    return np.array([share] + [(1 - share) / others] * others)


def constant_shares(answers: int) -> Shares:
    """Answer 0, of so many."""
    return np.eye(answers)[0]


@dataclass(frozen=True, slots=True)
class Fake:
    """A learner that knows some prompts and guesses the others."""

    name: str
    """For tables."""
    kind: Kind
    """skilled, informationless, or what D cannot see."""
    gold: Shares = field(repr=False)
    """Distribution of gold answers."""
    guess: Shares = field(repr=False)
    """Distribution of its answers where it guesses."""
    knows: float = 0.0
    """Share of prompts that it knows."""
    fixed: bool = False
    """A guess is made once per prompt, not once per sample."""
    even: float = 0.0
    """0: a prompt is known or not; else known with a chance of its own, Beta(even knows, even (1 - knows))."""
    texts: bool = False
    """Answers are compared as the texts of a row's own options, that no other row has, not as positions."""

    @property
    def success(self) -> float:
        """True success."""
        return self.knows + (1 - self.knows) * float(self.guess @ self.gold)

    @property
    def swapped(self) -> float:
        """True S."""
        if self.texts:
            return 0.0
        return self.knows * float(self.gold @ self.gold) + (1 - self.knows) * float(self.guess @ self.gold)

    @property
    def kappa(self) -> float:
        """True kappa."""
        return (self.success - self.swapped) / (1 - self.swapped)

    def answers(self, prompts: int, rng: np.random.Generator) -> tuple[Answers, Answers]:
        """Gold answers, shape (prompts,), and given ones, shape (prompts, SAMPLES)."""
        gold = rng.choice(len(self.gold), prompts, p=self.gold)
        known = (rng.random((prompts, 1)) < self.knows) * 1.0
        if self.even:
            known = rng.beta(self.even * self.knows, self.even * (1 - self.knows), (prompts, 1))
        guesses = rng.choice(len(self.guess), (prompts, 1 if self.fixed else SAMPLES), p=self.guess)
        says = np.where(rng.random((prompts, SAMPLES)) < known, gold[:, None], guesses)
        if self.texts:
            rows = len(self.gold) * np.arange(prompts)
            gold, says = gold + rows, says + rows[:, None]
        return gold, says


def grades(gold: Answers, says: Answers) -> NDArray[np.float64]:
    """Shape (prompts, prompts): mean grade of the answers to prompt i on prompt j."""
    return (says[:, :, None] == gold).mean(axis=1)


def at_kappa(kappa: float, gold: Shares, guess: Shares) -> float:
    """The share of prompts to know that gives this kappa."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if Fake("", "skilled", gold, guess, middle).kappa < kappa else (low, middle)
    return high


def all_fakes() -> list[Fake]:
    """All of them. `kappa .10` are the hardest that must not be called lucky."""
    ten, forty, most, two, four = (np.full(10, 0.1), majority(0.4), majority(0.72), np.full(2, 0.5), np.full(4, 0.25))
    places = np.array([0.7, 0.1, 0.1, 0.1])
    named = {"ten answers": ten, "majority 40 %": forty, "majority 72 %": most, "yes/no": two}
    found = [Fake(f"oracle, {name}", "skilled", gold, constant_shares(len(gold)), 1.0) for name, gold in named.items()]
    for name, gold in named.items():
        constant = constant_shares(len(gold))
        found += [
            Fake(f"constant, {name}", "informationless", gold, constant),
            Fake(f"coin per sample, {name}", "informationless", gold, gold),
            Fake(f"coin per prompt, {name}", "informationless", gold, gold, fixed=True),
            Fake(f"kappa .10, else constant, {name}", "skilled", gold, constant, at_kappa(0.1, gold, constant)),
            Fake(f"kappa .10, else coin, {name}", "skilled", gold, gold, at_kappa(0.1, gold, gold)),
        ]
    return [
        *found,
        Fake("45 % skill, else constant, majority 40 %", "skilled", forty, constant_shares(10), 0.45),
        Fake("45 % skill, else coin, majority 40 %", "skilled", forty, forty, 0.45),
        Fake("45 % skill, uneven, majority 40 %", "skilled", forty, constant_shares(10), 0.45, even=1.0),
        Fake("20 % skill, else constant, majority 40 %", "skilled", forty, constant_shares(10), 0.2),
        Fake("30 % skill, else constant, majority 72 %", "skilled", most, constant_shares(10), 0.3),
        Fake("first of four options, as positions", "informationless", four, constant_shares(4)),
        Fake("prefers the first of four options, as positions", "informationless", four, places),
        # the same learners where options were not mapped to positions: every row has texts of its own
        Fake("first of four options, as texts", "blind spot", four, constant_shares(4), texts=True),
        Fake("prefers the first of four options, as texts", "blind spot", four, places, texts=True),
        # what it reads off the form of the prompt is right in 70 of 100 cases: to D the same as knowing 40 % of yes/no
        Fake("sub-template, yes/no", "blind spot", two, two, 0.4, fixed=True),
        # float levels that were joined to their task: one answer per level, right on half of the rows of ten levels
        Fake("a constant per level, joined levels", "blind spot", ten, ten, 4 / 9, fixed=True),
    ]
