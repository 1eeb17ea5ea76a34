"""Made corpora of worked solutions and of talks with sums, in which wrong steps stand together in some rows, or do not.

Written before the check `error_clusters` had a threshold. Solutions and their texts are those of `trace_corpora.py`; here it
is decided which of their steps are wrong. A step that goes on from a wrong value and is worked out rightly is no wrong one.

Planted: `documents`, a share of the rows is careless in every step; `contagion`, a mistake makes the steps after it in the
same row likelier to be wrong; `talks`, a share of the talks is careless in every turn. Clean are steps without mistakes, and
mistakes that do not depend on those before them: at one rate, by operation, by place, or by the size of the numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mixwright_lab.studies.trace_corpora import (
    TASKS,
    Row,
    Step,
    drawn,
    new_rows,
    phrases,
    planned,
    prompted,
    slip,
    worked_out,
    written,
)

KINDS = ("documents", "contagion", "talks")
CLEAN = ("none", "even", "operations", "places", "sizes")
"""Ways in which the mistakes of clean corpora come."""
SIGNS = {"plus": "+", "minus": "-", "times": "*"}
ASKS = phrases("{e} = / What is {e}? / [Compute|Calculate|Work out] {e}. / {e} = ? / [And|Now|Next,] {e}?")
SAYS = phrases("{v} / {v}. / {e} = {v} / {e} = {v}. / It is {v}. / That makes {e} = {v}.")
Chance = Callable[["Place"], float]


@dataclass(frozen=True)
class MadeClusters:
    """A corpus, the task that clusters were planted in (empty if clean), and how its mistakes come."""

    rows: list[dict[str, Any]]
    task: str
    detail: str


@dataclass(frozen=True)
class Place:
    """What the chance of a mistake may depend on."""

    careless: bool
    """Of the row."""
    spoilt: bool
    """There is a mistake before it in the row."""
    operation: str
    number: int
    """Of the step in its row, from 0."""
    largest: Fraction
    """Of the numbers that it takes."""


def make_clusters(seed: int, kind: str | None, *, severe: bool) -> MadeClusters:
    """The corpus of a seed: two to four tasks, one of them planted, the others and all of a clean one without clusters."""
    rng = random.Random(f"clusters {seed} {kind} {severe}")
    names = rng.sample([*TASKS], rng.randint(2, 3))
    talks = kind == "talks" or rng.random() < 0.4
    target = "" if kind is None else "talks" if kind == "talks" else rng.choice(names)
    rows, details = [], []
    for name in [*names, *(["talks"] if talks else [])]:
        if name == target and kind is not None:
            share, chance, detail = planted_chance(rng, kind, severe=severe)
        else:
            way = CLEAN[seed % len(CLEAN)] if kind is None else rng.choice(CLEAN)
            share, (chance, detail) = rng.uniform(0.2, 0.6), clean_chance(rng, way)
        size = rng.randint(200, 450)
        made = make_talks(rng, size, share, chance) if name == "talks" else make_solutions(rng, name, size, share, chance)
        rows += [{"task": name, **row} for row in made]
        details.append(f"{name}: {detail}")
    return MadeClusters(rows, target, "; ".join(details))


def planted_chance(rng: random.Random, kind: str, *, severe: bool) -> tuple[float, Chance, str]:
    """Share of careless rows, chance of a mistake, and both in words."""
    base = rng.uniform(0, 0.008)
    if kind == "contagion":
        first, later = rng.uniform(0.03, 0.08), rng.uniform(0.5, 0.85) if severe else rng.uniform(0.3, 0.5)
        return 0.0, lambda place: later if place.spoilt else first, f"{first:.3f}, after a mistake {later:.2f}"
    share = rng.uniform(0.25, 0.6) if severe else rng.uniform(0.12, 0.25)
    rate = rng.uniform(0.5, 0.85) if severe else rng.uniform(0.3, 0.5)
    detail = f"{share:.2f} of the rows with {rate:.2f}, others with {base:.3f}"
    return share, lambda place: rate if place.careless else base, detail


def clean_chance(rng: random.Random, way: str) -> tuple[Chance, str]:
    """A chance that depends on no mistake before, in words."""
    rate = rng.uniform(0.02, 0.3)
    if way == "none":
        slips = rng.uniform(0, 0.008)
        return lambda place: slips, f"none but slips, {slips:.4f}"
    if way == "even":
        return lambda place: rate, f"all steps at {rate:.2f}"
    if way == "operations":
        hard = rng.choice(("times", "divide", "minus"))
        return lambda place: rate * 1.5 if place.operation == hard else rate / 5, f"{hard} at {rate * 1.5:.2f}"
    if way == "places":
        return lambda place: min(0.6, rate * (place.number + 1) / 2), f"rising from {rate / 2:.2f}"
    bound = rng.choice((10, 100))
    return lambda place: rate * 1.5 if place.largest >= bound else rate / 5, f"from {bound} on at {rate * 1.5:.2f}"


def make_solutions(rng: random.Random, name: str, size: int, share: float, chance: Chance) -> list[dict[str, Any]]:
    """Worked solutions of one task; later steps go on from what a wrong one states."""
    plan = planned(rng, name, modular=False, labelled=rng.random() < 0.35)
    plan.size, plan.facts, plan.slips = size, [], 0.0
    rows = new_rows(rng, plan, {})
    for row in rows:
        spoil(rng, row, rng.random() < share, chance)
        row.prompt = prompted(rng, row)
        row.completion = written(rng, row)
    return [{"prompt": row.prompt, "completion": row.completion} for row in rows]


def spoil(rng: random.Random, row: Row, careless: bool, chance: Chance) -> None:
    """Makes steps of a row wrong, each where its chance falls so and the row can still be worked out."""
    spoilt = False
    for number, step in enumerate(row.steps):
        operation = step.outer if step.op == "mixed" else step.op
        place = Place(careless, spoilt, operation, number, max(map(abs, step.seen)))
        if not step.counted or rng.random() >= chance(place):
            continue
        step.rule = slip
        if worked_out(row, {}):
            spoilt = True
        else:
            step.rule = None
            worked_out(row, {})


def make_talks(rng: random.Random, size: int, share: float, chance: Chance) -> list[dict[str, Any]]:
    """Talks of four to ten sums, each asked and answered in a turn; nothing is carried over."""
    talks = []
    for _ in range(size):
        careless, spoilt, turns = rng.random() < share, False, []
        for number in range(rng.randint(4, 10)):
            operation = rng.choice([*SIGNS])
            one, other = (rng.randint(2, rng.choice((9, 99))) for _ in range(2))
            right = {"plus": one + other, "minus": one - other, "times": one * other}[operation]
            place = Place(careless, spoilt, operation, number, Fraction(max(one, other)))
            is_wrong = rng.random() < chance(place)
            spoilt |= is_wrong
            value = _wrong(rng, right) if is_wrong else right
            turns += _turn(rng, f"{one} {SIGNS[operation]} {other}", value)
        talks.append({"messages": turns})
    return talks


def _wrong(rng: random.Random, right: int) -> int:
    made = slip(Step("plus", [], digits=0, salt=rng.randrange(10**9), right=Fraction(right)))
    value = int(made) if made is not None else right
    return value if value != right else right + rng.randint(1, 9)


def _turn(rng: random.Random, expression: str, value: int) -> Sequence[dict[str, str]]:
    asked, said = drawn(rng, ASKS), drawn(rng, SAYS)
    texts = (asked.replace("{e}", expression), said.replace("{e}", expression).replace("{v}", str(value)))
    return [{"role": role, "content": text} for role, text in zip(("user", "assistant"), texts, strict=True)]
