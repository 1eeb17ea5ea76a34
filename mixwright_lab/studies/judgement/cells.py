"""Simulated cells: S, D, kappa and states against the truth of fake learners; the chance level against its rule's own.

The learners are known altogether: gold answers of a cell are drawn from a known distribution, an answer is a whole number,
and each prompt is answered `SAMPLES` times. True success, S and kappa follow from a learner's numbers, so that bias and
coverage can be counted.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.cell_states import LUCKY_KAPPA, classify
from mixwright.estimates.chance import Rules, chance_level
from mixwright.estimates.dependence import dependence, permutation_p
from mixwright.estimates.intervals import Z, clustered_share
from mixwright.records import Example, Interval

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


PROMPTS = (10, 30, 40, 100, 200, 400)
TINY = (3, 6)
"""Prompts of cells that float levels leave."""
PERMUTATION_ROUNDS = 199
"""Permutations per test: as exact as more of them, and ten times faster."""
PARTS = ("swapped", "dependence", "kappa")


def holds(interval: Interval, truth: float) -> bool:
    """Whether the truth lies inside."""
    return interval.low - 1e-9 <= truth <= interval.high + 1e-9


def cell(job: tuple[int, int, int]) -> dict[str, Any]:
    """One learner (its place in the cast) at one number of prompts, so many times."""
    place, prompts, times = job
    began, fake, rng = time.process_time(), all_fakes()[place], np.random.default_rng([1, place, prompts])
    truth = dict(zip(PARTS, (fake.swapped, fake.success - fake.swapped, fake.kappa), strict=True))
    errors: dict[str, list[float]] = {part: [] for part in PARTS}
    inside, states = Counter[str](), Counter[str]()
    for _ in range(times):
        table = grades(*fake.answers(prompts, rng))
        found, plain = dependence(table), clustered_share(np.diagonal(table), 8)
        for part in PARTS:
            interval: Interval = getattr(found, part)
            errors[part].append(interval.value - truth[part])
            inside[part] += holds(interval, truth[part])
        evidence = (plain.value, plain.low, plain.high, plain.n)
        state = classify(*evidence, kappa_high=found.kappa.high)
        if state == "unknown":  # only here the test decides
            state = classify(*evidence, kappa_high=found.kappa.high, p=permutation_p(table, rng, PERMUTATION_ROUNDS))
        states[state] += 1
    return {
        "part": "cells",
        "learner": fake.name,
        "kind": fake.kind,
        "prompts": prompts,
        "times": times,
        "truth": {"success": fake.success} | truth,
        "bias": {part: float(np.mean(errors[part])) for part in PARTS},
        "bias error": {part: float(np.std(errors[part]) / math.sqrt(times)) for part in PARTS},
        "inside": dict(inside),
        "states": dict(states),
        "best power": best_power(fake, prompts) if fake.kind == "informationless" else None,
        "cpu": time.process_time() - began,
    }


def best_power(fake: Fake, prompts: int) -> float:
    """Rough chance that any test at 2.5 % could tell this learner (kappa 0) from one of kappa `LUCKY`, by the variance of D.

    Of answers that do not depend on prompts, D of one prompt has the variance of a product of two centred indicators, summed
    over answers; the mean of eight samples has an eighth of it.
    """
    right, said = (np.diag(part) - np.outer(part, part) for part in (fake.gold, fake.guess))
    variance = float((right * said).sum()) / (1 if fake.fixed else 8)
    error = math.sqrt(variance / prompts) / (1 - fake.swapped)
    return 1.0 if error < 1e-9 else 0.5 * math.erfc((Z - LUCKY_KAPPA / error) / math.sqrt(2))


class Told(Rules):
    """Rules that note which of them scored how many rows."""

    choosing = False

    def choose(self, rows: Sequence[Example]) -> str:
        """As in `Rules`."""
        self.choosing = True
        rule = super().choose(rows)
        self.choosing = False
        return rule

    def hits(self, rule: str, rows: Sequence[Example]) -> np.ndarray:
        """As in `Rules`; those that score are noted."""
        if not self.choosing:
            self.used.append((rule, len(rows)))
        return super().hits(rule, rows)

    @property
    def used(self) -> list[tuple[str, int]]:
        """Rule and rows, in the order of scoring."""
        return self.__dict__.setdefault("used", [])


CHANCES: dict[str, tuple[float, int]] = {
    "ten answers": (0.1, 9),
    "majority 40 %": (0.4, 9),
    "majority 72 %": (0.72, 9),
    "yes/no": (0.5, 1),
    "yes/no, its form in the prompt": (0.5, 1),
    "majority 40 % where chosen, 10 % where scored": (0.4, 9),
}
ROWS = (1, 5, 10, 30, 100)


def rows_of(kind: str, count: int, rng: np.random.Generator, first: int = 0, share: float | None = None) -> list[Example]:
    """Rows whose gold answers are drawn; with a form, the prompt holds a number that is the answer in 70 of 100 rows."""
    common, others = CHANCES[kind]
    common = common if share is None else share
    gold = rng.choice(others + 1, count, p=[common] + [(1 - common) / others] * others)
    forms = np.where(rng.random(count) < 0.7, gold, 1 - gold)
    texts = [f"form {form}" if "form" in kind else "a prompt" for form in forms]
    return [
        Example(f"{first + i}", "t", text, answer=str(own)) for i, (text, own) in enumerate(zip(texts, gold, strict=True))
    ]


def true_success(kind: str, rule: str, share: float) -> float:
    """What a rule earns on more rows of the same kind."""
    word, _, rest = rule.partition(" ")
    if word == "constant":
        return share if rest == "0" else (1 - share) / CHANCES[kind][1]
    return 0.7 if "form" in kind and rest == "number" else 0.0


def chance(job: tuple[str, int, bool, int]) -> dict[str, Any]:
    """One kind of cell at one number of rows, with as many other rows or with folds."""
    kind, count, others, times = job
    began, rng = time.process_time(), np.random.default_rng([2, list(CHANCES).index(kind), count, others])
    errors, naive, inside = [], [], 0
    share = 0.1 if "where scored" in kind else CHANCES[kind][0]
    for _ in range(times):
        scored = rows_of(kind, count, rng, share=share)
        other = rows_of(kind, count, rng, count) if others else []
        rules = Told(lambda row, answer: float(row.answer == answer))
        found = chance_level(rules, scored, other)
        truth = sum(true_success(kind, rule, share) * n for rule, n in rules.used) / count
        errors.append(found.value - truth)
        inside += holds(found.interval, truth)
        naive.append(max(Counter(row.answer for row in scored).values()) / count - share)
    return {
        "part": "chance",
        "kind": kind,
        "rows": count,
        "other rows": others,
        "times": times,
        "bias": float(np.mean(errors)),
        "bias error": float(np.std(errors) / math.sqrt(times)),
        "inside": inside,
        "commonest answer on its own rows, bias": float(np.mean(naive)),
        "cpu": time.process_time() - began,
    }
