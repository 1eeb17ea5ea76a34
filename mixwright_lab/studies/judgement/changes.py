"""Simulated changes: intervals over seeds x items, words of trials, and the gate, where the truth is known."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.exclusion import MEAN_LOSS_MARGIN
from mixwright.estimates.intervals import mean_interval
from mixwright.estimates.items import Item, Items
from mixwright.estimates.judgement import change_word, change_words
from mixwright.estimates.outcome import Change, ItemScores
from mixwright.verdict.rules.gate import check_protected, items_to_measure
from mixwright_lab.studies.judgement.cells import majority

Array = NDArray[np.float64]

# Intervals over seeds x items


@dataclass(frozen=True, slots=True)
class Design:
    """How differences of -1, 0 and 1 come about: they are up with chance (churn + m) / 2, m being the sum of the effects."""

    churn: float
    """Share of differences that are not 0."""
    items: float = 0.0
    """Half of the items move by this much, up or down, in every seed."""
    seeds: float = 0.0
    """A seed moves each stratum by up to this much, bell-shaped."""
    bases: int = 0
    """Starting models that seeds share in turn; 0 where each seed has its own."""
    of_base: float = 0.0
    """A base moves each stratum by up to this much."""
    alike: bool = False
    """An item that moves does so in every seed, and upwards."""


DESIGNS = {
    "noise only": Design(0.2),
    "item effects": Design(0.6, items=0.4),
    "strong item effects": Design(1.0, items=0.8, seeds=0.05),
    "seed effects": Design(0.6, seeds=0.3),
    "item and seed effects": Design(0.9, items=0.4, seeds=0.3),
    "small item and seed effects": Design(0.3, items=0.1, seeds=0.08),
    "two bases shared by seeds": Design(0.6, items=0.2, seeds=0.05, bases=2, of_base=0.2),
    "1 item in 100 moves, upwards, in every seed": Design(0.01, alike=True),
}
SEEDS = (3, 5, 8, 16)
SIZES = ((20, 1), (40, 1), (200, 1), (170, 17), (531, 17), (680, 17))


def draw_bell(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Within -1..1, near a normal distribution of standard deviation 1/3."""
    return np.asarray(rng.uniform(-1, 1, (3, *size)).mean(axis=0), dtype=np.float64)


def drawn(
    design: Design, seeds: int, items: int, strata: int, rng: np.random.Generator
) -> tuple[Array, NDArray[np.int64], float]:
    """Differences, shape (seeds, items), the stratum of each item, and what the shared bases add to the true mean.

    The true mean over all bases is 0 (`alike`: the churn).
    """
    of, added = np.arange(items) % strata, 0.0
    if design.alike:
        return np.tile((rng.random(items) < design.churn).astype(np.float64), (seeds, 1)), of, added
    moved = (
        rng.choice([-design.items, 0.0, 0.0, design.items], items) + design.seeds * draw_bell(rng, (seeds, strata))[:, of]
    )
    if design.bases:
        of_bases = design.of_base * draw_bell(rng, (design.bases, strata))[np.arange(seeds) % design.bases][:, of]
        moved, added = moved + of_bases, float(of_bases.mean())
    up, place = (design.churn + moved) / 2, rng.random((seeds, items))
    return (place < up) * 1.0 - (place > 1 - design.churn + up) * 1.0, of, added


def intervals(job: tuple[str, int, int, int, int]) -> dict[str, Any]:
    """Coverage of one design by `estimate_crossed`, by t over seeds and by items alone."""
    name, seeds, items, strata, times = job
    began, design = time.process_time(), DESIGNS[name]
    rng = np.random.default_rng([3, list(DESIGNS).index(name), seeds, items, strata])
    truth, inside, width = design.churn if design.alike else 0.0, Counter[str](), 0.0
    for _ in range(times):
        values, of, added = drawn(design, seeds, items, strata, rng)
        both = estimate_crossed(values, of)
        ways = {
            "seeds and items": both,
            "seeds": mean_interval(values.mean(axis=1)),
            "items": estimate_crossed(values.mean(axis=0), of),
        }
        inside["seeds and items, these bases"] += both.low - 1e-9 <= truth + added <= both.high + 1e-9
        inside.update({way: int(end.low - 1e-9 <= truth <= end.high + 1e-9) for way, end in ways.items()})
        width += (both.high - both.low) / times
    return {
        "part": "intervals",
        "design": name,
        "seeds": seeds,
        "items": items,
        "strata": strata,
        "times": times,
        "inside": dict(inside),
        "width": width,
        "cpu": time.process_time() - began,
    }


# Words of trials

CELLS = (40, 40, 40, 24, 40, 24, 24, 20, 24, 24, 40, 40, 40, 24, 24, 24, 39)
"""Held-out items per cell of the trials that are judged: 531."""
TASKS = (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7)
"""Task of each cell: 8."""
COMMONEST = (0.1, 0.1, 0.1, 0.1, 0.2, 0.15, 0.1, 0.3, 0.2, 0.1, 0.4, 0.6, 0.72, 0.1, 0.2, 0.1, 0.5)
"""Share of the commonest gold answer in each cell."""
SKILL = (0.8, 0.5, 0.2, 0.05, 0.5, 0.2, 0.05, 0.4, 0.1, 0.05, 0.4, 0.1, 0.1, 0.05, 0.1, 0.02, 0.2)
"""Share of items that the base knows in each cell."""
REFERENCES = ("frozen", "uniform", "equal_shares")


@dataclass(frozen=True, slots=True)
class Arm:
    """What training did to an arm, beside chance."""

    drift: float = 0.2
    """Where it does not know, how often it gives the commonest answer; else any answer by its share."""
    gain: float = 0.0
    """True gain of success, through skill."""
    moves: float = 0.6
    """How far training moves the skill of a cell up or down, by seed: this times a third of what an item can move by."""


FROZEN = Arm(moves=0.0)
SCENES: dict[str, tuple[Arm, Arm]] = {
    "training changes nothing": (Arm(), Arm()),
    "all trained arms give the commonest answer more often": (Arm(0.7), Arm(0.7)),
    "the lever gives the commonest answer more often": (Arm(0.8), Arm(0.2)),
}
"""Lever, references other than frozen. In none of them is anything better."""


def pseudo_values(gold: NDArray[np.int64], says: NDArray[np.int64]) -> tuple[Array, Array]:
    """Success and pseudo-values of S, as `dependence` has them, each (runs, items), from greedy answers (runs, items)."""
    equal = (says[:, :, None] == gold).astype(float)
    own, n = (says == gold).astype(float), len(gold)
    given, received = (equal.sum(axis=2) - own) / (n - 1), (equal.sum(axis=1) - own) / (n - 1)
    swapped = given.mean(axis=1, keepdims=True)
    return own, swapped + (n - 1) / (n - 2) * (given + received - 2 * swapped)


def cell_runs(place: int, items: int, arms: list[Arm], seeds: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """One cell of a trial: success and S of every item, each (arms, seeds, items)."""
    gold_of = majority(COMMONEST[place])
    gold = rng.choice(10, items, p=gold_of)
    knows = rng.beta(SKILL[place], 1 - SKILL[place], items)
    says = np.empty((len(arms), seeds, items), dtype=np.int64)
    for number, arm in enumerate(arms):
        guess = arm.drift * np.eye(10)[0] + (1 - arm.drift) * gold_of
        # part of what is not known is learnt, the same part of every item, so that no item is known more than fully
        learnt = arm.gain / ((1 - SKILL[place]) * (1 - float(guess @ gold_of)))
        skill = knows + arm.moves * draw_bell(rng, (seeds, 1)) * np.minimum(knows, 1 - knows)
        known = rng.random((seeds, items)) < 1 - (1 - skill) * (1 - learnt)
        says[number] = np.where(known, gold, rng.choice(10, (seeds, items), p=guess))
    own, swapped = pseudo_values(gold, says.reshape(-1, items))
    return own.reshape(says.shape), swapped.reshape(says.shape)


def trial(
    arms: list[Arm], seeds: int, sizes: tuple[int, ...], rng: np.random.Generator
) -> tuple[list[Change], list[Change]]:
    """The first arm against each of the others, mean over tasks; and against the second one in every cell."""
    found = [cell_runs(place, items, arms, seeds, rng) for place, items in enumerate(sizes)]
    own, swapped = (np.concatenate([cell[part] for cell in found], axis=2) for part in (0, 1))
    cells = np.repeat(np.arange(len(sizes)), sizes)
    tasks = np.array(TASKS)[cells]
    weights = 1 / np.bincount(tasks)[tasks] / len(set(TASKS))
    kinds = (own, swapped, own - swapped)

    def whole(against: int) -> Change:
        moves = own[0] - own[against]
        return unsampled(*(estimate_crossed(values[0] - values[against], cells, weights, moves=moves) for values in kinds))

    def within(cell: int) -> Change:
        here = cells == cell
        moves = (own[0] - own[1])[:, here]
        return unsampled(*(estimate_crossed((values[0] - values[1])[:, here], cells[here], moves=moves) for values in kinds))

    return [whole(other) for other in range(1, len(arms))], [within(cell) for cell in range(len(sizes))]


def unsampled(success: Estimate, swapped: Estimate, dependence: Estimate) -> Change:
    """A change of greedy answers alone; sampled ones are not simulated."""
    return Change(success, swapped, dependence, None, None, Items())


def words(job: tuple[str, int, int, int]) -> dict[str, Any]:
    """Trials of 531 items in which nothing is better: how often something is said to be."""
    scene, seeds, times, part = job
    began, rng = time.process_time(), np.random.default_rng([4, list(SCENES).index(scene), seeds, part])
    lever, others = SCENES[scene]
    said: dict[str, Counter[str]] = {name: Counter() for name in REFERENCES}
    helps = improves = alone = claims = 0
    for _ in range(times):
        found, within = trial([lever, FROZEN, others, others], seeds, CELLS, rng)
        corrected = change_words(found)
        claims += "improves" in change_words(within)
        for name, word in zip(REFERENCES, corrected, strict=True):
            said[name][word] += 1
        improves += "improves" in corrected
        helps += {change_word(change) for change in found} == {"improves"}
        alone += any(change.estimate.low > 0 for change in found)
    return {
        "part": "words",
        "scene": scene,
        "seeds": seeds,
        "times": times,
        "words": {name: dict(count) for name, count in said.items()},
        "any improves": improves,
        "any cell improves": claims,
        "helps": helps,
        "success alone": alone,
        "cpu": time.process_time() - began,
    }


def power(job: tuple[int, int, float, int]) -> dict[str, Any]:
    """Trials of 17 cells in which one arm is truly better than the other."""
    seeds, items, gain, times = job
    began, rng = time.process_time(), np.random.default_rng([5, seeds, items, round(1000 * gain)])
    said, detectable = Counter[str](), 0.0
    for _ in range(times):
        found = trial([Arm(gain=gain), Arm()], seeds, (items,) * len(CELLS), rng)[0][0]
        said[change_word(found)] += 1
        detectable += found.estimate.detectable() / times
    return {
        "part": "power",
        "seeds": seeds,
        "items per cell": items,
        "gain": gain,
        "times": times,
        "words": dict(said),
        "detectable": detectable,
        "cpu": time.process_time() - began,
    }


# The gate

UP = 0.1
"""Share of items that become right for no reason; as many become wrong: a fifth is churned."""
LOSSES: dict[str, tuple[float, float]] = {
    "unharmed": (0.0, 0.0),
    "-5 in every cell": (0.05, 0.05),
    "-5 in one cell": (0.05, 0.0),
    "-20 in one cell": (0.2, 0.0),
    "90 % to 40 % in one cell whose commonest answer is right in 40 %": (0.5, 0.0),
}
"""Loss of the first cell, and of each other."""
DEFAULT = 0
"""Stands for the default number of items per cell."""


def scores(keys: list[Item], right: NDArray[np.bool_]) -> ItemScores:
    """One checkpoint; sampled answers are as the greedy ones, and S is 0: the gate does not look at it."""
    values, none = dict(zip(keys, right.astype(float).tolist(), strict=True)), dict.fromkeys(keys, 0.0)
    return ItemScores.of({"greedy": values, "pass@1": values, "greedy.swapped": none})


def gate(job: tuple[str, int, int, int, int]) -> dict[str, Any]:
    """One checkpoint against another, so many protected cells, by the gate itself."""
    name, cells, per_cell, times, part = job
    began, rng = time.process_time(), np.random.default_rng([6, list(LOSSES).index(name), cells, per_cell, part])
    items = per_cell or items_to_measure(cells)
    keys: list[Item] = [(f"task {cell}", None, f"{cell}.{item}") for cell in range(cells) for item in range(items)]
    first, rest = LOSSES[name]
    loss = np.repeat([first] + [rest] * (cells - 1), items)
    said, each = Counter[str](), Counter[str]()
    up = np.where(loss <= 2 * UP, UP - loss / 2, UP)
    protected = list(dict.fromkeys(key[:2] for key in keys))
    for _ in range(times):
        place = rng.random(len(keys))
        before, after = ([scores(keys, right)] for right in (place < 1 - up, place >= loss + up))
        said[check_protected(before, after, protected).outcome] += 1
        if not part:
            each[check_protected(before, after, protected, each_cell=True).outcome] += 1
    return {
        "part": "gate",
        "loss": name,
        "cells": cells,
        "items per cell": items,
        "default": not per_cell,
        "times": times,
        "outcomes": dict(said),
        "outcomes with --each": dict(each),
        "cpu": time.process_time() - began,
    }


def gate_end(job: tuple[int, int, int]) -> dict[str, Any]:
    """How often the mean's lower end excludes a loss of `MEAN_LOSS_MARGIN` that is there in every cell, at the default size.

    The gate never passes without that, so that it is an upper bound of its passes, and quick enough for many draws.
    """
    cells, times, part = job
    began, rng = time.process_time(), np.random.default_rng([7, cells, part])
    items = items_to_measure(cells)
    of, passed = np.repeat(np.arange(cells), items), 0
    for _ in range(times):
        place = rng.random(len(of))
        moved = (place >= 1 - UP + MEAN_LOSS_MARGIN / 2).astype(np.float64) - (place < UP + MEAN_LOSS_MARGIN / 2)
        passed += estimate_crossed(moved, of).low > -MEAN_LOSS_MARGIN
    return {
        "part": "gate end",
        "cells": cells,
        "items per cell": items,
        "times": times,
        "passed": int(passed),
        "cpu": time.process_time() - began,
    }
