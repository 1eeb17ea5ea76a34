"""A bandit-like world for steering tests: cells with known success, some of it without reading the prompt."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixwright.contracts import Planner, Pool
from mixwright.estimates.dependence import dependence, permutation_p
from mixwright.estimates.intervals import wilson
from mixwright.plan.validate import validate_plan
from mixwright.records import Action, Cell, Decision, GroupOutcome, Measurement, Plan, Signals, TrainingSetup
from mixwright.steer.engine import Engine
from mixwright.steer.pool import make_pool

SUCCESS = {
    "chain@1": 0.97,
    "chain@2": 0.45,
    "chain@3": 0.0,
    "spell@1": 0.97,
    "spell@2": 0.3,
    "gcd@1": 0.98,
    "gcd@3": 0.0,
    "lcm@1": 0.01,
    "lcm@2": 0.0,
    "prime@1": 0.0,
    "count@1": 0.3,
    "count@2": 0.3,
}
BLIND = {"count@1": ("0",), "count@2": ("0", "1")}
"""What the model says in cells where it does not read the prompt: always the same, or one of two at random."""
CHANCE = {"count": 0.3}
GROUP = 8


def cells(examples: int = 60) -> tuple[Cell, ...]:
    split = [key.split("@") for key in SUCCESS]
    return tuple(Cell(task, float(level), examples, CHANCE.get(task, 0.0), "known") for task, level in split)


def gold(key: str, place: int) -> str:
    """Gold answer of an example; of ten examples of count, three are "0", three "1" at level 2, the others all differ."""
    if key in BLIND:
        said = BLIND[key]
        return said[place % 10 // 3] if place % 10 < 3 * len(said) else str(100 + place)
    return str(place % 20)


def pool(examples: int = 60) -> Pool:
    every = [cell for cell in cells(examples) for _ in range(examples)]
    ids = [f"{cell.key}#{place % examples}" for place, cell in enumerate(every)]
    golds = [gold(cell.key, place % examples) for place, cell in enumerate(every)]
    return make_pool(ids, [c.task for c in every], [c.level for c in every], golds)


def sampled_answers(key: str, right: str, success: float, rng: np.random.Generator, count: int = GROUP) -> tuple[str, ...]:
    """`count` answers to a prompt of a cell."""
    if key in BLIND:
        return tuple(BLIND[key][place] for place in rng.integers(len(BLIND[key]), size=count))
    return tuple(right if win else "wrong" for win in rng.random(count) < success)


def json_round_trip(state: Any) -> Any:
    """A state as it comes back from JSON."""
    return json.loads(json.dumps(state, allow_nan=False))


def competence(rng: np.random.Generator, n: int = 256) -> list[Measurement]:
    """What a probe finds in samples of `n` prompts of each cell; its interval is that of one sample each."""
    rows = []
    for cell in cells():
        golds = np.array([gold(cell.key, place) for place in range(n)])
        given = np.array([sampled_answers(cell.key, right, SUCCESS[cell.key], rng) for right in golds])
        table = (given[:, :, None] == golds).mean(axis=1)
        found, value = dependence(table), float(np.diagonal(table).mean())
        low, high = (float(end) for end in wilson(value * n, n))
        rows += [row(cell.task, cell.level, value, low, high, n), row(cell.task, cell.level, cell.chance, 0, 1, n, "chance")]
        for name, part in (("swapped", found.swapped), ("dependence", found.dependence), ("kappa", found.kappa)):
            rows.append(row(cell.task, cell.level, part.value, part.low, part.high, n, f"pass@1.{name}"))
        p = permutation_p(table, rng, 199)
        rows.append(row(cell.task, cell.level, p, p, p, n, "pass@1.permutation"))
    return rows


def row(
    task: str, level: float | None, value: float, low: float, high: float, n: int = 256, name: str = "pass@1"
) -> Measurement:
    return Measurement("competence", task, name, value, low, high, n, "share", level)


@dataclass
class Run:
    plan: Plan
    engine: Engine
    drawn: Counter[str] = field(default_factory=Counter)
    zero_signal: int = 0
    groups: int = 0
    decisions: list[Decision] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)


def train(
    planner: Planner, seed: int, *, steps: int = 60, prompts: int = 8, revive: tuple[str, int, float] | None = None
) -> Run:
    """Steer a learner that does not learn, except that cell `revive[0]` jumps to success `revive[2]` at step `revive[1]`."""
    rng, here = np.random.default_rng((99, seed)), pool()
    plan = planner.plan(cells(), competence(rng), TrainingSetup(steps))
    validate_plan(plan, here.cells)
    run, success = Run(plan, Engine(plan, here, seed=seed)), dict(SUCCESS)
    for step in range(steps):
        if revive and step == revive[1]:
            success[revive[0]] = revive[2]
        outcomes = [outcome(here, index, step, success, rng) for index in run.engine.draw(prompts)]
        run.actions += run.engine.observe(outcomes, Signals(step))
        run.decisions += run.engine.take_decisions()
        run.drawn.update(f"{o.task}@{o.level:g}" for o in outcomes)
        run.zero_signal += sum(o.no_signal for o in outcomes)
        run.groups += len(outcomes)
    return run


def outcome(pool: Pool, index: int, step: int, success: dict[str, float], rng: np.random.Generator) -> GroupOutcome:
    cell = pool.cells[pool.cell_of[index]]
    right = gold(cell.key, int(pool.ids[index].partition("#")[2]))
    answers = sampled_answers(cell.key, right, success[cell.key], rng)
    return GroupOutcome(pool.ids[index], cell.task, cell.level, step, tuple(float(a == right) for a in answers), answers)
