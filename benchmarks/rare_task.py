"""Rare tasks in a small model: weights from a retention probe, and mixtures, against a model four times as wide.

24 tables are learnt by heart (`mixwright_lab/worlds/tables.py`), their frequency a power of their rank. Rare are the three
least frequent complex ones: 0.77, 0.68 and 0.60 % of the data. Every arm draws through the engine, which is told each row's
loss where a mixture listens. Goal, fixed before the run: the plan of `rare_tasks` (width 32) reaches at least 95 % of the
rare accuracy of the natural mixture at width 128, for at most a quarter of its compute, other tasks within 2 points of it.
Compute is 6 x parameters x tokens per trained row and 2 x per row that is only read; the probe and the steps before it are
charged. CPU seconds stand beside it: at these sizes they measure Python as much as arithmetic.

The learning rate of each arm is the better of two on seed 100, by rare accuracy; seeds 0 to 4 are reported. The plan's arm
takes an eighth of its steps on the natural mixture, is probed on a copy, and goes on under the plan.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from benchmarks._report import Result, interval, run
from benchmarks._tables import TOKENS, Data, Model, Training, accuracies
from benchmarks.peers._workers import spread
from mixwright.catalog import create
from mixwright.measure._bursts import Burst, watch_bursts
from mixwright.records import Interval, Measurement, Plan, Stage
from mixwright.steer._engine import Engine
from mixwright_lab.worlds.tables import Tables

ROWS, BATCH, STEPS, BEFORE = 20_480, 128, 1600, 200
"""Rows of the corpus; rows per step; steps; steps before the probe."""
RARE = (19, 21, 23)
"""The three rarest complex tasks."""
BURST = Burst(steps=30, after=40, batch=64, learning_rate=0.0)
"""Sizes of the probe; the learning rate is the arm's own."""
PROBED = 8
"""Rarest tasks that the probe bursts on: all under 1 % of the data."""
BY_HAND = 6.0
NAMES = ("rare", "common", "frequent_complex")
"""Accuracies that are told: of the rare tasks, of all others, of the four commonest complex ones."""
SEEDS, TUNING = (0, 1, 2, 3, 4), (100,)
RATES = {16: (6e-3, 3e-3), 32: (4.2e-3, 2.1e-3), 128: (1e-3, 5e-4)}
"""About 3e-3 (64 / width) ** 0.5, less at width 128, and half of that."""
Kind = Literal["natural", "uniform", "temperature", "floor", "starved", "by hand", "alone", "plan"]


@dataclass(frozen=True)
class Arm:
    """One way to train."""

    kind: Kind
    """What decides the weights."""
    width: int = 32
    steps: int = STEPS

    @property
    def name(self) -> str:
        """In tables and rows."""
        longer = "" if self.steps == STEPS else f", {self.steps / STEPS:g}x steps"
        return f"{self.kind}, width {self.width}{longer}"


SMALL, PLAN, WIDE, LONG = Arm("natural"), Arm("plan"), Arm("natural", 128), Arm("uniform", 16, 2 * STEPS)
ARMS = (
    *(SMALL, Arm("floor"), Arm("starved"), PLAN, Arm("by hand"), Arm("temperature"), Arm("uniform"), Arm("alone"), WIDE),
    *(Arm("natural", 16), Arm("plan", 16), Arm("uniform", 16), LONG),
    *(Arm(kind, 32, STEPS // 2) for kind in ("plan", "uniform")),
)
"""The small model and the wide one; a smaller one, where capacity should be the limit, also with twice the steps, at the
learning rate of the shorter run; half of the steps."""
HALF = STEPS // 2
COMPARED = (
    *((PLAN, WIDE), (PLAN, SMALL), (PLAN, Arm("uniform")), (PLAN, Arm("temperature")), (PLAN, Arm("by hand"))),
    *((Arm("starved"), SMALL), (Arm("floor"), SMALL), (Arm("starved"), Arm("floor")), (Arm("alone"), SMALL)),
    *((Arm("plan", 32, HALF), Arm("uniform", 32, HALF)), (Arm("uniform"), Arm("uniform", 16)), (LONG, Arm("uniform", 16))),
)
"""Paired differences that are told."""


@dataclass(frozen=True)
class Job:
    """One training run."""

    arm: Arm
    rate: float
    seed: int


def train(job: Job) -> dict[str, Any]:
    """Train one model; what it can do and what it cost."""
    arm, world = job.arm, Tables(seed=job.seed)
    data = Data(world, world.corpus(ROWS))
    model = Model(arm.width, world.tasks, world.symbols, job.seed)
    training = Training(model, job.rate, arm.steps)
    told: dict[str, Any] = {}
    if arm.kind == "plan":
        before = BEFORE * arm.steps // STEPS
        _follow(training, data, _plan("natural", data, before), job.seed, before)
        found, cost, seconds = probe(model, data, job.rate, job.seed)
        plan = create("planners", "rare_tasks", {"batch": BATCH}).plan(data.pool.cells, [], found, steps=arm.steps - before)
        training.flops += cost
        training.seconds += seconds
        told = {"needed": plan.why["stages.0.weights"], "probe_flops": cost, "weights": dict(plan.stages[0].weights)}
        _follow(training, data, plan, job.seed + 1, arm.steps - before)
    else:
        _follow(training, data, _plan(arm.kind, data, arm.steps), job.seed, arm.steps, alone=arm.kind == "alone")
    right = accuracies(model, world)
    common = np.delete(right, RARE)
    return {
        "arm": arm.name,
        "rate": job.rate,
        "seed": job.seed,
        "rare": float(right[list(RARE)].mean()),
        "common": float(common.mean()),
        "frequent_complex": float(right[1:8:2].mean()),
        "flops": training.flops,
        "cpu_seconds": round(training.seconds, 2),
        "parameters": model.size,
        "tasks": [round(float(share), 4) for share in right],
        **told,
    }


def probe(model: Model, data: Data, rate: float, seed: int) -> tuple[list[Measurement], float, float]:
    """What the retention probe says of the model, its compute, and its CPU time. Every entry of a table is read once."""
    begun = time.process_time()
    tasks = dict(enumerate(data.pool.tasks))
    train_rows = {name: np.flatnonzero(data.pool.task_of == task) for task, name in tasks.items()}
    read = {name: rows[: data.world.symbols**2] for name, rows in train_rows.items()}
    rare = sorted(train_rows, key=lambda name: len(train_rows[name]))[:PROBED]
    sizes = replace(BURST, learning_rate=rate)
    found = watch_bursts(model, data.losses, train_rows, read, rare, sizes, np.random.default_rng(seed))
    rows = {row.name: row.value for row in found if row.task == "*"}
    cost = model.size * TOKENS * (6 * rows["rows_trained"] + 2 * rows["rows_read"])
    return found, cost, time.process_time() - begun


def _plan(kind: str, data: Data, steps: int) -> Plan:
    """The plan of an arm that needs no measurements."""
    planner = kind if kind in ("uniform", "temperature") else "proportional"
    made = create("planners", planner, {"objective": "sft"}).plan(data.pool.cells, [], [], steps=steps)
    weights = dict(made.stages[0].weights)
    if kind == "by hand":
        for task in RARE:
            weights[data.world.name(task)] *= BY_HAND
    total = sum(weights.values())
    mixture = kind if kind in ("floor", "starved") else None
    stage = Stage("training", "sft", steps, {task: share / total for task, share in weights.items()}, mixture=mixture)
    return Plan(planner, (stage,))


def _follow(training: Training, data: Data, plan: Plan, seed: int, steps: int, *, alone: bool = False) -> None:
    """Train under a plan. `alone` leaves out the common tasks: a step has the rows that were drawn of the rare ones."""
    engine = Engine(plan, data.pool, seed=seed)

    def draw() -> list[int]:
        rows: list[int] = []
        while not rows:
            rows = engine.draw(BATCH)
            if alone:
                rows = [row for row in rows if data.pool.task_of[row] in RARE]
        return rows

    training.learn(data, draw, steps, engine if plan.stages[0].mixture else None)


def tuned(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The better learning rate of each arm, by mean rare accuracy."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["arm"]][row["rate"]].append(row["rare"])
    return {arm: max(rates, key=lambda rate: np.mean(rates[rate])) for arm, rates in found.items()}


def figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means with intervals per arm, and the goal's parts."""
    by_arm: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        by_arm[row["arm"]][row["seed"]] = row
    wide, plan = by_arm[WIDE.name], by_arm[PLAN.name]
    found: dict[str, Any] = {"arms": {name: _arm(own, wide) for name, own in by_arm.items()}}
    for one, other in COMPARED:
        if one.name in by_arm and other.name in by_arm:
            pair = by_arm[one.name], by_arm[other.name]
            found[f"{one.name} - {other.name}"] = {name: _told(_ratios(*pair, name, minus=True)) for name in NAMES}
    found["goal"] = {
        "rare accuracy of the plan / wide": _told(_ratios(plan, wide, "rare")),
        "compute of the plan / wide": _told(_ratios(plan, wide, "flops")),
        "CPU time of the plan / wide": _told(_ratios(plan, wide, "cpu_seconds")),
        "probe's share of the plan's compute": _told([row["probe_flops"] / row["flops"] for row in plan.values()]),
    }
    found["says capacity"] = {
        name: f"{sum('capacity' in row['needed'] for row in own.values())} of {len(own)} seeds"
        for name, own in by_arm.items()
        if "plan" in name
    }
    return found


def _arm(own: dict[int, dict[str, Any]], wide: dict[int, dict[str, Any]]) -> dict[str, Any]:
    means = {name: _told([row[name] for row in own.values()]) for name in NAMES}
    ratios = {f"{name} / wide": float(np.mean(_ratios(own, wide, name))) for name in ("flops", "cpu_seconds")}
    return {**means, **ratios, "rate": next(iter(own.values()))["rate"]}


def _ratios(
    one: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]], name: str, *, minus: bool = False
) -> list[float]:
    """Paired by seed: ratios, or differences."""
    return [one[seed][name] - other[seed][name] if minus else one[seed][name] / other[seed][name] for seed in one]


def _told(values: Sequence[float]) -> dict[str, float]:
    found: Interval = interval(values)
    return {"value": found.value, "low": found.low, "high": found.high}


def measure(quick: bool) -> Result:
    """Tune on other seeds, then run every arm on every seed; the quick run has two seeds, the first rates and three arms."""
    arms, seeds = ((SMALL, PLAN, WIDE), SEEDS[:2]) if quick else (ARMS, SEEDS)
    trials = (
        [] if quick else spread(train, [Job(a, r, s) for a in arms for r in RATES[a.width] for s in TUNING], say="tuning")
    )
    rates = {arm.name: RATES[arm.width][0] for arm in arms} | tuned(trials)
    rows = spread(train, [Job(arm, rates[arm.name], seed) for seed in seeds for arm in arms], say="run")
    told = figures(rows)
    ratio = told["goal"]["rare accuracy of the plan / wide"]
    settings = {"burst": asdict(BURST), "batch": BATCH, "steps": STEPS, "before": BEFORE, "rows": ROWS, "tuning": TUNING}
    return Result(
        Interval(ratio["value"], ratio["low"], ratio["high"], len(seeds)),
        "rare accuracy under the plan (width 32) over that of the natural mixture at width 128",
        seeds,
        [*trials, *rows],
        told,
        settings,
        "ratio",
    )


if __name__ == "__main__":
    run("rare_task", __doc__, measure)
