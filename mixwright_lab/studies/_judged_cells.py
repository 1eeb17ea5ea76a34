"""Simulated cells: S, D, kappa and states against the truth of fake learners; the chance level against its rule's own."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixwright.estimates.cell_states import LUCKY_KAPPA, classify
from mixwright.estimates.chance import Rules, chance_level
from mixwright.estimates.dependence import dependence, permutation_p
from mixwright.estimates.intervals import Z, clustered_share
from mixwright.records import Example, Interval
from mixwright_lab.studies._fake_learners import Fake, all_fakes, grades

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
