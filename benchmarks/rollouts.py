"""Rollouts to a target: ours against uniform, static_band, target, filter-and-refill, screen-then-commit and an oracle.

One small student per seed goes on by GRPO on one of three pools. SFT from scratch has taught it chains of up to 3 operations
(right 98 % of the time) and partly those of 4 to 6 (right 20 to 35 %: it mostly answers at once); 7 and 8 it has never seen.

    wide     90 % of the problems lie outside the band: 45 % of 1 to 3 operations, 45 % of 7 or 8; 10 % of 4 to 6
    in-band  4 to 6 operations only
    trap     40 % are of 8 operations and accept a random half of all answers: right half the time whatever the model does;
             30 % of 4 to 6 operations

All rollouts are charged, also those that were thrown away and the measurement that static_band starts from; the oracle's
knowledge alone is free. The score is sampled accuracy on held-out problems of 4 to 6 operations. Target of a seed: 90 % of
what its oracle reaches in the end (mean of the last three looks). A run has reached it at the first look whose mean with the
look before is at or over it. A run that never does counts with its whole budget; a ratio with it on top is a lower bound.
Ours is the difficulty selector alone: no gate, no controller, nothing measured before. Of the traps no single answer is
right, so a run cannot tell from its answers that they do not depend on the prompt: its stated blind spot. Pools, student,
target and the selector's options were chosen on seeds from 100 on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._report import Result, interval, run
from benchmarks.peers._arena import Arena, Settings
from benchmarks.peers._base import Recipe, base_model
from benchmarks.peers._rules import Engined, Plain, Rule, cell_plan, distinct, drive, pool_of
from benchmarks.peers._workers import spread
from benchmarks.peers.oracle import Oracle
from benchmarks.peers.refill import Refill
from benchmarks.peers.screen import Screen
from benchmarks.peers.spread import Spread
from mixwright.contracts import Pool
from mixwright.estimates.intervals import share_interval
from mixwright.records import CellPlan, Example, Plan, Stage, to_data
from mixwright_lab.worlds.chain import LONGEST, MODULUS, Chain

BASE = Recipe(plain=3, steps=600, styles=(("full", 0.3), ("direct", 0.7)))
"""Up to 3 operations are mastered; 4 to 6 it could work out, but mostly guesses at once; 7 and 8 were never seen."""
BAND = (0.1, 0.9)
POOLS = {
    "wide": {1: 0.05, 2: 0.2, 3: 0.2, 4: 0.035, 5: 0.035, 6: 0.03, 7: 0.225, 8: 0.225},
    "in-band": {4: 0.4, 5: 0.3, 6: 0.3},
    "trap": {2: 0.1, 3: 0.1, 4: 0.1, 5: 0.1, 6: 0.1, 7: 0.05, 8: 0.05, 9: 0.4},
}
"""Share of problems by level; level 9 are the traps."""
TRAP = 9
SIZE = 2400
"""Problems of a pool; fewer of one operation, of which there are not so many."""
SCORED = (4, 5, 6)
HELD_OUT = 48
"""Held-out problems per scored level, four responses each."""
ARMS = {
    "wide": ("uniform", "static_band", "target", "refill", "screen", "oracle", "ours"),
    "in-band": ("uniform", "oracle", "ours"),
    "trap": ("uniform", "spread", "oracle", "ours"),
}
BUDGET = {False: 5_760, True: 3_840}
EVERY = 240
"""Rollouts between two looks."""
SEEDS = {False: (0, 1, 2, 3, 4), True: (0, 1)}
SHARE = 0.9
"""Of the oracle's final accuracy: the target."""
MEASURED = (8, 8)
"""Problems per level, and rollouts of each, that static_band measures at the start."""
OPTIONS: dict[str, dict[str, Any]] = {"target": {}, "difficulty": {}}


def problems(kind: str, seed: int) -> list[Example]:
    """The pool of a seed, shuffled."""
    rng, world, found = np.random.default_rng((seed, 7)), Chain(), []
    for level, share in POOLS[kind].items():
        start = int(rng.integers(2**30))
        made = [world.make(start + index, min(level, LONGEST), "train") for index in range(round(share * SIZE))]
        found += [trapped(example, rng) for example in made] if level == TRAP else made
    found = distinct(found)
    return [found[index] for index in rng.permutation(len(found))]


def trapped(example: Example, rng: np.random.Generator) -> Example:
    """The problem with 7 to 9 of the 16 answers accepted, drawn at random: guessing is right half the time."""
    accepted = rng.permutation(MODULUS)[: int(rng.integers(7, 10))]
    answers = tuple(sorted(str(answer) for answer in accepted.tolist()))
    extra = {**example.extra, "accepted": answers}
    return replace(example, id=f"trap:{example.id}", level=float(TRAP), answer=answers[0], extra=extra)


def chance(example: Example) -> float:
    """Level of the example's cell."""
    return 0.5 if example.level == TRAP else 1 / MODULUS


def held_out() -> list[Example]:
    """Problems that the score is about."""
    return distinct([Chain().make(index, level, "eval") for level in SCORED for index in range(HELD_OUT)])


def measured(arena: Arena, pool: Pool) -> tuple[CellPlan, ...]:
    """What a charged measurement of every level says of the cells."""
    found, (items, samples) = [], MEASURED
    rng = np.random.default_rng(arena.charged)
    for number, cell in enumerate(pool.cells):
        members = np.flatnonzero(pool.cell_of == number)
        rolled = arena.roll(rng.choice(members, min(items, len(members)), replace=False).tolist(), samples)
        found.append(cell_plan(cell, rolled, share_interval(float(rolled.rewards.sum()), rolled.rewards.size), BAND))
    return tuple(found)


def engined(selector: str, arena: Arena, pool: Pool, seed: int, cells: tuple[CellPlan, ...] = ()) -> Rule:
    """Our engine with that selector and nothing else."""
    options = {f"selectors.{selector}": OPTIONS[selector]} if OPTIONS.get(selector) else {}
    stage = Stage("training", "grpo", 1000, {"chain": 1.0}, BAND, selector=selector, options=options)
    return Engined(Plan("rollouts", (stage,), cells), pool, seed)


def rule_of(arm: str, arena: Arena, pool: Pool, seed: int) -> Rule:
    """The rule of an arm."""
    size = len(arena.examples)
    if arm == "static_band":
        return engined(arm, arena, pool, seed, measured(arena, pool))
    if arm in ("target", "ours"):
        return engined({"ours": "difficulty"}.get(arm, arm), arena, pool, seed)
    if arm in ("oracle", "spread"):
        return Oracle(pool, BAND, seed) if arm == "oracle" else Spread(pool, seed)
    return {"uniform": Plain, "refill": Refill, "screen": Screen}[arm](size, seed)


def trained(job: tuple[str, str, int, int]) -> dict[str, Any]:
    """One run: pool, arm, seed, budget."""
    kind, arm, seed, budget = job
    examples, scored = problems(kind, seed), held_out()
    arena = Arena(examples, base_model(seed, BASE), Settings(), seed)
    pool, drawn = pool_of(examples, chance), [0, 0]
    rule = rule_of(arm, arena, pool, seed)
    levels = np.array([example.level for example in scored])
    roll = arena.roll

    def counted(indices: Sequence[int], count: int, *, greedy: bool = False) -> Any:
        drawn[0] += count * sum(examples[index].level == TRAP for index in indices)
        drawn[1] += count * len(indices)
        return roll(indices, count, greedy=greedy)

    arena.roll = counted  # type: ignore[method-assign]

    def look(arena: Arena) -> dict[str, Any]:
        success = arena.look(scored).rewards.mean(1)
        return {"accuracy": float(success.mean()), "levels": [float(success[levels == level].mean()) for level in SCORED]}

    seen = drive(arena, rule, budget, EVERY, look)
    teach = rule.totals["teach"] / max(1, rule.totals["groups"])
    books = {"steps": arena.steps, "charged": arena.charged, "teach": teach, "trap_share": drawn[0] / max(1, drawn[1])}
    return {"pool": kind, "arm": arm, "seed": seed, **books, "seen": seen}


def final(row: dict[str, Any]) -> float:
    """Accuracy at the end: mean of the last three looks."""
    return float(np.mean([look["accuracy"] for look in row["seen"][-3:]]))


def reached(row: dict[str, Any], target: float) -> float | None:
    """Rollouts charged when the target was reached; None when it never was."""
    for before, now in zip(row["seen"], row["seen"][1:], strict=False):
        if (before["accuracy"] + now["accuracy"]) / 2 >= target:
            return float(now["charged"])
    return None


def ratio(rows: Sequence[dict[str, Any]], over: str, under: str, budget: int) -> dict[str, Any]:
    """Geometric mean of rollouts of one arm over those of another, with its t interval on logs, and what was censored."""
    logs, censored = [], {over: 0, under: 0}
    for seed in sorted({row["seed"] for row in rows}):
        spent = {}
        for arm in (over, under):
            row = next(row for row in rows if row["seed"] == seed and row["arm"] == arm)
            censored[arm] += row["to_target"] is None
            spent[arm] = row["to_target"] or budget
        logs.append(math.log(spent[over] / spent[under]))
    value = interval(logs)
    ends = {name: math.exp(getattr(value, name)) for name in ("value", "low", "high")}
    return ends | {"logs": logs, "censored": censored, "lower bound": censored[over] > censored[under]}


def judged(rows: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    """Targets, rollouts to them, final accuracies and ratios of one pool; fills `final` and `to_target` of the rows."""
    targets = {row["seed"]: SHARE * final(row) for row in rows if row["arm"] == "oracle"}
    for row in rows:
        row["final"], row["to_target"] = final(row), reached(row, targets[row["seed"]])
    figures: dict[str, Any] = {"targets": targets}
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm]
        spent = [row["to_target"] or budget for row in mine]
        figures[arm] = {
            "rollouts to target, geometric mean": float(np.exp(np.mean(np.log(spent)))),
            "censored": sum(row["to_target"] is None for row in mine),
            "final": float(np.mean([row["final"] for row in mine])),
            **{name: float(np.mean([row[name] for row in mine])) for name in ("teach", "trap_share")},
        }
        if arm != "ours":
            ours = {row["seed"]: row["final"] for row in rows if row["arm"] == "ours"}
            figures[arm]["rollouts over ours"] = ratio(rows, arm, "ours", budget)
            figures[arm]["final, ours minus it"] = to_data(interval([ours[row["seed"]] - row["final"] for row in mine]))
    geometric = {arm: figures[arm]["rollouts to target, geometric mean"] for arm in ("uniform", "oracle", "ours")}
    room = geometric["uniform"] - geometric["oracle"]
    figures["share of the oracle's saving"] = (geometric["uniform"] - geometric["ours"]) / room if room > 0 else None
    return figures


def told(kind: str, figures: dict[str, Any]) -> None:
    """A table of one pool."""
    share = figures["share of the oracle's saving"]
    print(f"\n{kind}: share of the oracle's saving {share if share is None else round(share, 2)}")
    print(f"{'':<12}{'to target':>10}{'censored':>9}{'final':>7}{'teach':>7}{'traps':>7}  rollouts over ours")
    for arm, shown in figures.items():
        if not isinstance(shown, dict) or "final" not in shown:
            continue
        over = shown.get("rollouts over ours")
        text = "" if over is None else f"{over['value']:.2f} [{over['low']:.2f}, {over['high']:.2f}]"
        text += " at least" if over and over["lower bound"] else ""
        numbers = f"{shown['rollouts to target, geometric mean']:>10.0f}{shown['censored']:>9}{shown['final']:>7.3f}"
        print(f"{arm:<12}{numbers}{shown['teach']:>7.2f}{shown['trap_share']:>7.2f}  {text}")


def measure(quick: bool, seeds: Sequence[int] | None = None, arms: dict[str, tuple[str, ...]] | None = None) -> Result:
    """All arms on all pools; the headline is uniform's rollouts to the target over ours, on the wide pool."""
    budget, chosen, arms = BUDGET[quick], seeds or SEEDS[quick], arms or ARMS
    spread(base, chosen)
    jobs = [(kind, arm, seed, budget) for kind in arms for seed in chosen for arm in arms[kind]]
    rows = spread(trained, jobs, say="run")
    figures = {kind: judged([row for row in rows if row["pool"] == kind], budget) for kind in arms}
    for kind, shown in figures.items():
        told(kind, shown)
    wide = figures["wide"]["uniform"]["rollouts over ours"]
    settings = {"pools": POOLS, "size": SIZE, "band": BAND, "budget": budget, "share": SHARE, "base": to_data(BASE)}
    return Result(
        replace(interval(wide["logs"]), value=wide["value"], low=wide["low"], high=wide["high"]),
        "uniform's charged rollouts to the target over ours, wide pool, geometric mean"
        + ("; a lower bound: uniform did not always reach it" if wide["lower bound"] else ""),
        chosen,
        rows,
        figures=to_data(figures),
        settings=to_data(settings | {"options": OPTIONS}),
        kind="ratio",
    )


def base(seed: int) -> None:
    """Teach the base of a seed; it stays on disk."""
    base_model(seed, BASE)


if __name__ == "__main__":
    run("rollouts", __doc__ or "", measure)
