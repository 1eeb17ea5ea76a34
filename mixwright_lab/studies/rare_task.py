"""Study of rare tasks in a small model: weights from a retention probe, and simple rules, against a wider one.

24 tables are memorised (`mixwright_lab/worlds/tables.py`), their frequency a power of their rank. Rare are the three
least frequent complex ones: 0.77, 0.68 and 0.60 % of the data. Every arm draws through the engine. The primary outcome is
the accuracy over all tasks: the mean over the 24 tables, every entry of each; the rare and the common accuracy are parts of
it, and mechanisms.

The plan of `rare_tasks`, `temperature` and `floor` (the rows' own shares, none under 2 %) are compared, paired by seed, with
three references of the same width: `frozen` is the model at its initial weights, `natural` draws tasks as often as they have
rows, which is what drawing rows uniformly does, and `uniform` draws all tasks equally often (equal shares); and with
`natural` and `uniform` at width 128. Intervals are 95 % t intervals over seeds, not corrected for the number of comparisons.
Nothing beats a reference that gets every entry right: a difference of exactly 0 then says "at the ceiling", not "shown to be
alike".

Arms of a comparison take as many steps, but for `frozen`; the probe of the plan comes on top. Compute is 6 x parameters x
tokens per trained row and 2 x per row that is only read; the probe is charged. CPU seconds stand beside it: at these sizes
they measure Python as much as arithmetic.

Every arm at every width is tuned over the same five learning rates: it takes the one with the best primary outcome on seed
100, the larger of equals; seeds 0 to 4 are reported. The plan's arm takes an eighth of its steps on the natural mixture, is
probed on a copy, and goes on under the plan.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from mixwright import Engine
from mixwright.catalog import create
from mixwright.measure.bursts import Burst, watch_bursts
from mixwright.records import Interval, Measurement, Plan, Stage, TrainingSetup
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.training.tables import ROW_TOKENS, Data, Model, Training, accuracies
from mixwright_lab.worlds.tables import Tables

ROWS, BATCH, STEPS, STEPS_BEFORE_PROBE = 20_480, 128, 1600, 200
"""Rows of the corpus; rows per step; steps; steps before the probe."""
TASKS, RARE = range(24), (19, 21, 23)
"""All tasks by rank, from 0; the three rarest complex ones."""
PARTS = {
    "all": tuple(TASKS),
    "rare": RARE,
    "common": tuple(task for task in TASKS if task not in RARE),
    "frequent_complex": (1, 3, 5, 7),
}
"""Tasks over which an accuracy is averaged; `all` is the primary outcome."""
BURST = Burst(steps=30, after=40, batch=64, learning_rate=0.0)
"""Sizes of the probe; the learning rate is the arm's own."""
FLOOR_SHARE = 0.02
"""Share of draws that `floor` gives every task at least."""
PROBED_TASKS = 8
"""Rarest tasks that the probe bursts on: all under 1 % of the data."""
SEEDS, TUNING = (0, 1, 2, 3, 4), (100,)
TUNED_RATES = (1.2e-2, 6e-3, 3e-3, 1.5e-3, 7.5e-4)
"""Learning rates that every arm is tuned over."""
QUICK_RATES = {32: 6e-3, 128: 7.5e-4}
"""Learning rates by width in the quick run, which does not tune: the best of most arms of that width on seed 100."""
Kind = Literal["frozen", "natural", "uniform", "temperature", "floor", "plan"]
Row = Mapping[str, Any]
BySeed = Mapping[int, Row]


@dataclass(frozen=True)
class Arm:
    """One way to train."""

    kind: Kind
    """What decides the weights; `frozen` takes no step."""
    width: int = 32
    steps: int = STEPS

    @property
    def name(self) -> str:
        """In tables and rows."""
        longer = "" if self.steps == STEPS else f", {self.steps / STEPS:g}x steps"
        return f"{self.kind}, width {self.width}{longer}"


FROZEN, NATURAL, UNIFORM = Arm("frozen"), Arm("natural"), Arm("uniform")
PLAN, FLOOR, TEMPERATURE = Arm("plan"), Arm("floor"), Arm("temperature")
WIDE, WIDE_UNIFORM = Arm("natural", 128), Arm("uniform", 128)
NARROW = (Arm("natural", 16), Arm("uniform", 16), Arm("plan", 16))
HALF = (Arm("plan", 32, STEPS // 2), Arm("uniform", 32, STEPS // 2))
REFERENCES, OURS = (FROZEN, NATURAL, UNIFORM, WIDE, WIDE_UNIFORM), (PLAN, FLOOR, TEMPERATURE)
ARMS = (FROZEN, NATURAL, UNIFORM, TEMPERATURE, FLOOR, PLAN, *HALF, WIDE, WIDE_UNIFORM, *NARROW)
"""The small model and the wide one; a narrow one, where capacity should be the limit; half of the steps."""
QUICK = (FROZEN, NATURAL, UNIFORM, FLOOR, PLAN, WIDE)
"""What the goals need."""
COMPARED = (
    *((ours, reference) for ours in OURS for reference in REFERENCES),
    *((HALF[0], HALF[1]), (NARROW[2], NARROW[0]), (NARROW[2], NARROW[1])),
    *((UNIFORM, NATURAL), (WIDE_UNIFORM, WIDE), (NARROW[1], NARROW[0]), (UNIFORM, NARROW[1])),
)
"""Paired differences that are reported."""


@dataclass(frozen=True)
class Job:
    """One training run."""

    arm: Arm
    rate: float
    seed: int


def train(job: Job) -> dict[str, Any]:
    """Train one model; what it can do and what it cost."""
    arm, world = job.arm, Tables(seed=job.seed)
    model = Model(arm.width, world.tasks, world.symbols, job.seed)
    training = Training(model, job.rate, arm.steps)
    told: dict[str, Any] = {}
    if arm.kind == "plan":
        told = _under_the_plan(training, Data(world, world.corpus(ROWS)), job)
    elif arm.kind != "frozen":
        data = Data(world, world.corpus(ROWS))
        _follow(training, data, plan_of(arm.kind, data, arm.steps), job.seed, arm.steps)
    return {
        "arm": arm.name,
        "rate": job.rate,
        "seed": job.seed,
        "tasks": accuracies(model, world).tolist(),
        "flops": training.flops,
        "cpu_seconds": round(training.seconds, 2),
        "parameters": model.size,
        **told,
    }


def _under_the_plan(training: Training, data: Data, job: Job) -> dict[str, Any]:
    """Train on the natural mixture, probe, and train under the plan; what the plan said."""
    steps, model = job.arm.steps, training.model
    before = STEPS_BEFORE_PROBE * steps // STEPS
    _follow(training, data, plan_of("natural", data, before), job.seed, before)
    found, cost, seconds = probe(model, data, job.rate, job.seed)
    plan = create("planners", "rare_tasks").plan(data.pool.cells, found, TrainingSetup(steps - before, "sft", BATCH))
    training.flops += cost
    training.seconds += seconds
    _follow(training, data, plan, job.seed + 1, steps - before)
    return {"needed": plan.why["stages.0.weights"], "probe_flops": cost, "weights": dict(plan.stages[0].weights)}


def probe(model: Model, data: Data, rate: float, seed: int) -> tuple[list[Measurement], float, float]:
    """What the retention probe says of the model, its compute, and its CPU time. Every entry of a table is read once."""
    begun = time.process_time()
    tasks = dict(enumerate(data.pool.tasks))
    train_rows = {name: np.flatnonzero(data.pool.task_of == task) for task, name in tasks.items()}
    read = {name: rows[: data.world.symbols**2] for name, rows in train_rows.items()}
    rare = sorted(train_rows, key=lambda name: len(train_rows[name]))[:PROBED_TASKS]
    sizes = replace(BURST, learning_rate=rate)
    found = watch_bursts(model, data.losses, train_rows, read, rare, sizes, np.random.default_rng(seed))
    rows = {row.name: row.value for row in found if row.task == "*"}
    cost = model.size * ROW_TOKENS * (6 * rows["rows_trained"] + 2 * rows["rows_read"])
    return found, cost, time.process_time() - begun


def plan_of(kind: Kind, data: Data, steps: int) -> Plan:
    """The plan of an arm that needs no measurements: the rows' own shares unless its kind has a planner of its own."""
    planner = {"uniform": "equal_shares", "temperature": "temperature"}.get(kind, "proportional")
    made = create("planners", planner).plan(data.pool.cells, [], TrainingSetup(steps, "sft", BATCH))
    weights = made.stages[0].weights
    return Plan(planner, (Stage("training", "sft", steps, raised(weights, FLOOR_SHARE) if kind == "floor" else weights),))


def raised(weights: Mapping[str, float], least: float) -> dict[str, float]:
    """Shares of at least `least` each, the others scaled down alike."""
    low: set[str] = set()
    while True:
        scale = (1 - least * len(low)) / sum(share for task, share in weights.items() if task not in low)
        found = {task: least if task in low else share * scale for task, share in weights.items()}
        if not (under := {task for task, share in found.items() if share < least - 1e-12}):
            return found
        low |= under


def _follow(training: Training, data: Data, plan: Plan, seed: int, steps: int) -> None:
    """Train under a plan."""
    engine = Engine(plan, data.pool, seed=seed)
    training.learn(data, lambda: engine.draw(BATCH), steps)


def part(row: Row, name: str) -> float:
    """Mean accuracy of one run over some of its tasks, or what else its row holds under this name."""
    return float(np.mean([row["tasks"][task] for task in PARTS[name]])) if name in PARTS else row[name]


def tuned(rows: Sequence[Row]) -> dict[str, float]:
    """The learning rate of each arm with the best mean primary outcome; the larger of equals."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["arm"]][row["rate"]].append(part(row, "all"))
    return {arm: max(rates, key=lambda rate: (np.mean(rates[rate]), rate)) for arm, rates in found.items()}


def by_arm(rows: Sequence[Row]) -> dict[str, dict[int, Row]]:
    """Rows by name of the arm and seed."""
    found: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        found[row["arm"]][row["seed"]] = row
    return dict(found)


def difference(one: BySeed, other: BySeed, name: str) -> Interval:
    """Mean of the differences of two arms, paired by seed."""
    return interval([part(one[seed], name) - part(other[seed], name) for seed in one])


def ratio(one: BySeed, other: BySeed, name: str) -> Interval:
    """Mean of the ratios of two arms, paired by seed."""
    return interval([part(one[seed], name) / part(other[seed], name) for seed in one])


def goals(rows: Sequence[Row]) -> list[Goal]:
    """Goals on the primary outcome, on two mechanisms, and on the outcome where there is room; by the whole interval."""
    arms = by_arm(rows)
    pairs = ((PLAN, UNIFORM), (PLAN, NATURAL), (FLOOR, UNIFORM))
    told = []
    for one, other in pairs:
        found = difference(arms[one.name], arms[other.name], "all")
        told.append(Goal(f"accuracy over all tasks, {one.name} - {other.name}", found, "low end > 0", found.low > 0))
    plan, wide = arms[PLAN.name], arms[WIDE.name]
    rare, compute = ratio(plan, wide, "rare"), ratio(plan, wide, "flops")
    names = [f"{what}, {PLAN.name} / {WIDE.name}" for what in ("rare accuracy", "compute")]
    told.append(Goal(names[0], rare, "low end >= 0.95", rare.low >= 0.95))
    told.append(Goal(names[1], compute, "high end <= 0.25", compute.high <= 0.25))
    for one, other in ((HALF[0], HALF[1]), (NARROW[2], NARROW[1])):  # equal shares at full steps are at the ceiling
        if one.name in arms and other.name in arms:
            found = difference(arms[one.name], arms[other.name], "all")
            told.append(Goal(f"accuracy over all tasks, {one.name} - {other.name}", found, "low end > 0", found.low > 0))
    return told


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Means with intervals per arm, paired differences, and the plan against the wide model."""
    arms = by_arm(rows)
    wide, plan = arms[WIDE.name], arms[PLAN.name]
    found: dict[str, Any] = {"arms": {name: _arm(own, wide) for name, own in arms.items()}}
    for one, other in COMPARED:
        if one.name in arms and other.name in arms:
            pair = arms[one.name], arms[other.name]
            found[f"{one.name} - {other.name}"] = {name: _format_row(difference(*pair, name)) for name in PARTS}
    found["goal"] = {
        "rare accuracy of the plan / wide": _format_row(ratio(plan, wide, "rare")),
        "compute of the plan / wide": _format_row(ratio(plan, wide, "flops")),
        "CPU time of the plan / wide": _format_row(ratio(plan, wide, "cpu_seconds")),
        "probe's share of the plan's compute": _format_row(
            interval([row["probe_flops"] / row["flops"] for row in plan.values()])
        ),
    }
    found["says capacity"] = {
        name: f"{sum('capacity' in row['needed'] for row in own.values())} of {len(own)} seeds"
        for name, own in arms.items()
        if all("needed" in row for row in own.values())
    }
    return found


def _arm(own: BySeed, wide: BySeed) -> dict[str, Any]:
    means = {name: _format_row(interval([part(row, name) for row in own.values()])) for name in PARTS}
    ratios = {f"{name} / wide": ratio(own, wide, name).value for name in ("flops", "cpu_seconds")}
    return {**means, **ratios, "rate": next(iter(own.values()))["rate"]}


def _format_row(found: Interval) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def measure(quick: bool) -> Result:
    """Tune on another seed, then run every arm on every seed; the quick run has two seeds, seven arms, no tuning."""
    arms, seeds = (QUICK, SEEDS[:2]) if quick else (ARMS, SEEDS)
    learning = [arm for arm in arms if arm != FROZEN]
    trials = (
        []
        if quick
        else run_in_processes(train, [Job(a, r, s) for a in learning for r in TUNED_RATES for s in TUNING], say="tuning")
    )
    rates = {arm.name: QUICK_RATES[arm.width] for arm in QUICK} | tuned(trials) | {FROZEN.name: 0.0}
    rows = run_in_processes(train, [Job(arm, rates[arm.name], seed) for seed in seeds for arm in arms], say="run")
    named = goals(rows)
    settings = {
        "burst": asdict(BURST),
        "batch": BATCH,
        "steps": STEPS,
        "before": STEPS_BEFORE_PROBE,
        "rows": ROWS,
        "tuning": TUNING,
    }
    return Result(
        named[0].found,
        "accuracy over all 24 tasks at width 32: the plan minus equal weights of tasks, as many steps, its probe on top",
        seeds,
        [*trials, *rows],
        figures(rows),
        settings | {"rates": TUNED_RATES},
        goals=named,
    )


if __name__ == "__main__":
    run("rare_task", __doc__, measure)
