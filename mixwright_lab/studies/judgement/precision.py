"""Width of intervals, against an earlier formula, and what that does to coverage: a part of `judgement`.

Simulated cells whose items are known to some degree, answered once (greedy) or eight times, and judged as two checkpoints or
as six seeds: success and D, in worlds where nothing is better and in those where 1 item in 100 turns in every seed. And
committed trials through TRL (`leave_one_out.json`), thinned to 480 and 240 items, where the widths are those of real
changes. The earlier formula adds a fixed number of whole squares (`earlier`).
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates import crossed as estimates
from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import Z, share_interval
from mixwright.records import Interval
from mixwright_lab.studies.judgement.cells import majority
from mixwright_lab.studies.report import RESULTS, Goal

Array = NDArray[np.float64]
Row = Mapping[str, Any]
SAMPLES = 8
SIZES = ((1, 1000), (8, 50), (40, 25))
"""Cells, and items of each."""
SEEDS = (1, 6)
GOLD = majority(0.3)
GUESS = 0.2 * np.eye(10)[0] + 0.8 * GOLD
"""What is said where an item is not known."""
ITEMS = (480, 240)
OUTCOMES = ("greedy", "sampled", "D of greedy", "D of sampled")


@dataclass(frozen=True, slots=True)
class World:
    """What differs between two checkpoints."""

    alike: bool = False
    """All samples of an item are the same, as those of a very sure model."""
    relearnt: float = 0.0
    """Share of items whose knowledge is drawn anew, for each checkpoint: nothing is better."""
    risen: float = 0.0
    """Share of items that were not known and are known afterwards, in every seed."""


WORLDS = {
    "nothing but chance": World(),
    "a fifth relearnt": World(relearnt=0.2),
    "samples all alike, a twentieth relearnt": World(alike=True, relearnt=0.05),
    "1 item in 100 learnt, in every seed": World(risen=0.01),
    "1 item in 100 learnt, in every seed, samples all alike": World(alike=True, risen=0.01),
}


def earlier(values: Array, strata: NDArray[np.int64], weights: Array | None = None) -> Estimate:
    """As it was: `Z` squared whole squares with one seed, one with several, whatever the outcome."""
    kept = estimates.pseudo_squares
    estimates.pseudo_squares = lambda *_: Z * Z if len(values) < 2 else 1.0
    try:
        return estimate_crossed(values, strata, weights)
    finally:
        estimates.pseudo_squares = kept


def scored(said: NDArray[np.int64], gold: NDArray[np.int64]) -> tuple[Array, Array]:
    """Success and pseudo-values of S of each item of one cell, from its answers, shape (items, samples); as `dependence`."""
    n = len(gold)
    own = (said == gold[:, None]).mean(axis=1)
    given = (np.bincount(gold, minlength=10)[said].mean(axis=1) - own) / (n - 1)
    received = (np.bincount(said.ravel(), minlength=10)[gold] / said.shape[1] - own) / (n - 1)
    swapped = float(given.mean())
    return own, swapped + (n - 1) / (n - 2) * (given + received - 2 * swapped)


def cell(world: World, items: int, seeds: int, samples: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """After minus before of success and S, each (seeds, items)."""
    gold, known = rng.choice(10, items, p=GOLD), rng.beta(0.4, 0.6, items)
    if world.alike:
        known = (rng.random(items) < known).astype(float)
    fixed, risen = rng.choice(10, items, p=GUESS), rng.random(items) < world.risen
    sides: list[list[tuple[Array, Array]]] = []
    for after in (False, True):
        found = []
        for _ in range(seeds):
            own = np.where(rng.random(items) < world.relearnt, rng.beta(0.4, 0.6, items), known)
            own = np.where(risen, float(after), own)
            shape = (items, 1 if world.alike else samples)
            guess = fixed[:, None] if world.alike else rng.choice(10, shape, p=GUESS)
            found.append(scored(np.where(rng.random(shape) < own[:, None], gold[:, None], guess), gold))
        sides.append(found)
    both = [np.array([[part[kind] for part in side] for side in sides]) for kind in (0, 1)]
    return both[0][1] - both[0][0], both[1][1] - both[1][0]


def truth(world: World, dependence: bool) -> float:
    """True change of success, or of D, of which S is what the answer to one prompt earns on another."""
    return world.risen * (1 - float(GOLD @ GOLD if dependence else GUESS @ GOLD))


def simulated(name: str, size: tuple[int, int], seeds: int, samples: int, times: int) -> list[dict[str, Any]]:
    """One world at one size: coverage, how often "no change" is rejected, and half-widths, of success and of D."""
    world, (cells, items) = WORLDS[name], size
    began, rng = time.process_time(), np.random.default_rng([8, list(WORLDS).index(name), cells, seeds, samples])
    of = np.repeat(np.arange(cells), items)
    found = {part: {way: Counter[str]() for way in ("now", "earlier")} for part in (False, True)}
    for _ in range(times):
        drawn = [cell(world, items, seeds, samples, rng) for _ in range(cells)]
        own, swapped = (np.concatenate([part[kind] for part in drawn], axis=1) for kind in (0, 1))
        for part, count in found.items():
            values, true = own - swapped if part else own, truth(world, part)
            for way, one in (("now", estimate_crossed(values, of, moves=own)), ("earlier", earlier(values, of))):
                count[way]["inside"] += one.low - 1e-9 <= true <= one.high + 1e-9
                count[way]["rejected"] += one.p < 0.05
                count[way]["half"] += (one.high - one.low) / 2 / times  # type: ignore[assignment]
    seconds = (time.process_time() - began) / 2
    decoding = "greedy" if samples == 1 else "sampled"
    return [
        {
            "part": "precision",
            "outcome": f"D of {decoding}" if part else decoding,
            "world": name,
            "null": not world.risen,
            "size": f"{cells} x {items}",
            "seeds": seeds,
            "times": times,
            "cpu": seconds,
        }
        | {f"{kind}, {way}": value for way, kinds in count.items() for kind, value in kinds.items()}
        for part, count in found.items()
    ]


def committed(times: int) -> list[dict[str, Any]]:
    """Committed trials: each arm against the untrained model and against uniform draws, one seed, 480 of its items.

    Items are drawn with replacement within their cells, so that the mean over the whole trial is the truth of each draw.
    """
    rows = json.loads((RESULTS / "leave_one_out.json").read_text(encoding="utf-8"))["rows"]
    rng, made = np.random.default_rng(9), []
    for case in ("refusing", "eight"):
        own = [row for row in rows if row["case"] == case]
        items = next(row["items"] for row in own if "items" in row)
        items = json.loads(items) if isinstance(items, str) else items
        known = {(row["arm"], int(row["seed"])): row for row in own if "arm" in row}
        for outcome, column in (("greedy", "greedy"), ("sampled", "pass@1")):
            table = {key: np.array(json.loads(row[column])) for key, row in known.items()}
            for (arm, seed), against, count in itertools.product(known, ("frozen", "uniform"), ITEMS):
                if arm not in ("frozen", against) and (against, seed) in known:
                    found = _thinned(table[arm, seed] - table[against, seed], items, count, times, rng)
                    made.append(found | {"outcome": outcome, "against": against, "case": case})
    return made


def _thinned(
    moved: Array, items: Sequence[Sequence[Any]], size: int, times: int, rng: np.random.Generator
) -> dict[str, Any]:
    cells = np.unique([str(item[:2]) for item in items], return_inverse=True)[1]
    tasks = np.unique([str(item[0]) for item in items], return_inverse=True)[1]
    rows = [np.flatnonzero(cells == number) for number in range(cells.max() + 1)]
    sizes = [max(2, round(size * len(row) / len(items))) for row in rows]
    count = Counter[str]()
    for _ in range(times):
        pick = np.concatenate([rng.choice(row, own) for row, own in zip(rows, sizes, strict=True)])
        weights = 1 / np.bincount(tasks[pick])[tasks[pick]] / len(np.unique(tasks))
        share = np.bincount(cells[pick], weights)  # the truth of the draw counts each cell as the draw does
        true = float(sum(part * moved[row].mean() for part, row in zip(share, rows, strict=True)))
        values, of = moved[None, pick], cells[pick]
        for way, one in (("now", estimate_crossed(values, of, weights)), ("earlier", earlier(values, of, weights))):
            count[f"inside, {way}"] += one.low - 1e-9 <= true <= one.high + 1e-9
            count[f"half, {way}"] += (one.high - one.low) / 2 / times  # type: ignore[assignment]
    return {"part": "committed", "items": size, "times": times} | dict(count)


def jobs(quick: bool) -> list[tuple[str, tuple[Any, ...]]]:
    """All simulations and the committed trials: names of functions here, and their arguments; each returns rows."""
    shapes = itertools.product(WORLDS, SIZES, SEEDS, (1, SAMPLES))
    found: list[tuple[str, tuple[Any, ...]]] = [("simulated", (*shape, 10 if quick else 400)) for shape in shapes]
    found += [("committed", (1 if quick else 10,))]
    return found


MAKERS = {
    "simulated": simulated,
    "committed": committed,
}
"""Function of a job, by name."""


def rows_of(job: tuple[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The rows of one job."""
    name, given = job
    return MAKERS[name](*given)


def share(rows: Sequence[Row], name: str) -> Interval:
    """Share of these rows' draws in which something was so."""
    return share_interval(sum(row[name] for row in rows), sum(row["times"] for row in rows))


def ratio(rows: Sequence[Row]) -> Interval:
    """Half-width now over half-width before, of means over these rows, with a jackknife interval over rows."""
    now, old = (np.array([row[f"half, {way}"] for row in rows]) for way in ("now", "earlier"))
    found = now.sum() / old.sum()
    without = (now.sum() - now) / (old.sum() - old)
    error = 2 * float(np.sqrt((len(rows) - 1) * without.var()))
    return Interval(float(found), float(found) - error, float(found) + error, len(rows))


def goals_of(rows: Sequence[Row]) -> list[Goal]:
    """Widths on committed trials; coverage and wrong rejections of every outcome, at the worst size and number of seeds."""
    real = [row for row in rows if row["part"] == "committed"]
    made = [row for row in rows if row["part"] == "precision"]
    sampled = [row for row in real if (row["outcome"], row["items"]) == ("sampled", 480)]
    narrow, kept = ratio(sampled), share(sampled, "inside, now")
    found = [
        Goal.at_most("half-width of sampled success at 480 items of committed trials, over the earlier one", narrow, 0.75),
        Goal.at_least("coverage of it", kept, 0.93),
    ]  # fmt: skip
    for outcome in OUTCOMES:
        own = [row for row in made if row["outcome"] == outcome]
        places = {(row["size"], row["seeds"]) for row in own}
        groups = [[row for row in own if (row["size"], row["seeds"]) == place] for place in sorted(places)]
        least = min((share(group, "inside, now") for group in groups), key=lambda one: one.value)
        most = max((share([r for r in group if r["null"]], "rejected, now") for group in groups), key=lambda one: one.value)
        found += [
            Goal.at_least(f"coverage of {outcome}, worst size and seeds", least, 0.93),
            Goal.at_most(f"no change of {outcome} rejected, worst size and seeds", most, 0.05),
        ]
    return found


def figures_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Coverage and half-width, earlier and now, of each world, size and number of seeds; and of the committed trials."""
    ways = ("earlier", "now")
    table = {
        f"{row['outcome']}, {row['world']}, {row['size']}, {row['seeds']} seeds": {
            "coverage": [row[f"inside, {way}"] / row["times"] for way in ways],
            "half-width": [row[f"half, {way}"] for way in ways],
        }
        for row in rows
        if row["part"] == "precision"
    }
    real = {}
    for outcome, against, items in itertools.product(OUTCOMES[:2], ("frozen", "uniform"), ITEMS):
        wanted = (outcome, against, items)
        own = [
            row for row in rows if row["part"] == "committed" and (row["outcome"], row["against"], row["items"]) == wanted
        ]
        real[f"{outcome}, against {against}, {items} items"] = {
            "coverage": [share(own, f"inside, {way}").value for way in ways],
            "half-width": [float(np.mean([row[f"half, {way}"] for row in own])) for way in ways],
        }
    return {"worlds, earlier and now": table, "committed trials, earlier and now": real}
