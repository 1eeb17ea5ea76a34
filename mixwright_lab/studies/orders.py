"""Study of orders: whether short runs tell in which order tasks are best trained, and whether stages pay.

Three tasks name one digit of a number; a letter says which task it is. In worlds of one-way damage the rows of the second
task hold as many rows of the first, and those of the third of both, so that one order loses nothing. In worlds of wrong rows
they hold these with wrong answers, and the rows of a task hold some of those after it: one order ends with what is right,
and all tasks together contradict each other. In worlds of two-way damage no task's rows hold others, so that whichever is
last is left; in worlds without damage each task's rows hold some of all; in worlds of mutual help all letters ask for the
same digit. Every order of three stages is trained from one model, orders that begin alike sharing their beginnings, with
eight seeds each. Beside them: no training, all tasks together in one stage, all together with a new optimiser at the
places of the borders, and one task alone for as many steps, the one whose short runs, as many and as long as the probe's,
end best: in worlds of wrong rows one task's rows are all right, so that what helps is a choice of data.

Two words are judged by the eight seeds. Orders differ: the order that is best by the other seven is better than the mean of
all orders by five points or more, with an interval above 0. Stages are better: the same order is better than all tasks
together by as much. The planner `transfer_order` has seen none of this, only short runs; it plans stages where both words
are shown. Beside each word stands how often it would be right to say no always. Settings were chosen, and the second word
and the worlds of wrong rows added, on worlds 0 to 3 after a first full run on these. That the probe tries its order anew was
added when worlds from 10 on were known; that it does so for twice as long, where orders differ only, was chosen on worlds 0
to 3 when too few gains had been seen in those from 10 on. Worlds from 20 on were made after that, and decide. The
`UNDERTAUGHT` ones, whose model had a fifth of the warm-up, show harm.
"""

from __future__ import annotations

import copy
import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from mixwright import catalog
from mixwright.config import ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.learner.learner import Learner
from mixwright.learner.tiny import build_tiny
from mixwright.learner.warmup import warm_up
from mixwright.measure.bursts import train_on
from mixwright.measure.row_losses import RowLosses, rows_by_task
from mixwright.measure.transfers import RunSizes, measure_transfer
from mixwright.records import Example, Interval, TrainingSetup, to_data
from mixwright_lab.studies.jobs import load_or_make, run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run

TASKS = ("a", "b", "c")
ONE_WAY, WRONG, TWO_WAY, NONE, HELP = "one-way damage", "wrong rows", "two-way damage", "no damage", "mutual help"
COUNTS = {ONE_WAY: 2, WRONG: 3, TWO_WAY: 2, NONE: 2, HELP: 1}
WORLDS = tuple((kind, first + number) for first in (20, 10) for kind, count in COUNTS.items() for number in range(count))
"""Those from 20 on were made after the last rule was chosen; those from 10 on were known."""
DECIDING_WORLDS = 10
"""Worlds, the first, that decide."""
NEW = "new worlds"
UNDERTAUGHT = tuple((kind, 40 + number) for kind in (TWO_WAY, WRONG) for number in range(3))
"""Worlds from 40 on: what a model does not know yet cannot be lost at the start, so that single runs see no damage there."""
SEEDS = 8
ROWS, ITEMS, WARMUP_STEPS, STEPS, BATCH, RATE = 300, 50, 300, 200, 16, 3e-3
PROBE = RunSizes(steps=48, batch=BATCH, learning_rate=RATE, seeds=4, pairs=True)
MATTERS, HARM, UNDER_SEEDS = 0.05, 0.02, 2
PAIRS, SINGLE = "pairs", "single runs"
JOINT, RESETS, FROZEN = "joint", "joint with resets", "frozen"
ALONE = "one task alone"


@dataclass(frozen=True)
class Job:
    """One seed of all orders of a world; seed None is the probe."""

    kind: str
    world: int
    seed: int | None


def rows_of(kind: str, world: int) -> Corpus:
    """Rows of the three tasks; in worlds of one-way damage and of wrong rows the first is in the rows of the other two."""
    rng = random.Random(f"orders {kind} {world}")
    places, ranks = rng.sample(range(3), 3), rng.sample(TASKS, 3)
    rows: list[Example] = []

    def add(label: str, task: str, split: str, values: Sequence[int], *, wrong: bool = False) -> None:
        place = places[0] if kind == HELP else places[(TASKS.index(task) + wrong) % len(TASKS)]
        for value in values:
            prompt, answer = f"{task} {value:03d} = ", f"{value:03d}"[place]
            name = f"{len(rows)}"
            rows.append(Example(name, label, prompt, target=answer, answer=answer, split=split))

    held: dict[str, set[int]] = {}
    for task in TASKS:
        values = rng.sample(range(1000), ROWS + ITEMS)
        held[task] = set(values[ROWS:])
        add(task, task, "train", values[:ROWS])
        add(task, task, "eval", values[ROWS:])
    for label, task in itertools.permutations(TASKS, 2):
        before = ranks.index(task) < ranks.index(label)
        share = {ONE_WAY: float(before), WRONG: 1.0 if before else 0.25, NONE: 0.25}.get(kind, 0.0)
        free = [value for value in range(1000) if value not in held[task]]
        add(label, task, "train", rng.sample(free, int(share * ROWS)), wrong=kind == WRONG and before)
    return Corpus.from_examples(rows)


@dataclass
class Bench:
    """A world's rows and starting model."""

    corpus: Corpus
    learner: Learner
    losses: RowLosses
    train: Mapping[str, np.ndarray]

    def success(self, model: Any) -> dict[str, np.ndarray]:
        """Greedy success of each held-out item, per task."""
        learner, found = copy.copy(self.learner), {}
        learner.model = model
        for task in TASKS:
            items = [row for row in self.corpus.select(split="eval") if row.task == task]
            prompts = [item.prompt for item in items]
            made = [one for (one,) in learner.sample(prompts, count=1, temperature=0.0, max_new_tokens=2, seed=0)]
            found[task] = np.array([float(one.text == item.answer) for one, item in zip(made, items, strict=True)])
        return found

    def mean(self, model: Any) -> float:
        """Of tasks."""
        return float(np.mean([values.mean() for values in self.success(model).values()]))

    def trained(self, model: Any, rows: np.ndarray, steps: int, key: Sequence[int]) -> Any:
        """A copy after so many steps with a new optimiser."""
        branch, rng = copy.deepcopy(model), np.random.default_rng(list(key))
        train_on(branch, self.losses, [rng.choice(rows, BATCH) for _ in range(steps)], RATE)
        return branch


def begun(kind: str, world: int) -> Bench:
    """The starting model: SFT on a mixture of all rows, not to the end."""
    corpus = rows_of(kind, world)
    texts = [f"{row.prompt}{row.target}" for row in corpus]
    learner = build_tiny(texts, ModelConfig(width=32, depth=2, heads=2, vocabulary=264), seed=world)
    steps = WARMUP_STEPS // 5 if world >= UNDERTAUGHT[0][1] else WARMUP_STEPS
    warm_up(learner, corpus.select(split="train"), WarmupConfig(steps=steps, batch_size=32, learning_rate=5e-3), seed=world)
    learner.model.eval()
    return Bench(corpus, learner, RowLosses(learner, corpus), rows_by_task(corpus, "train"))


def try_one(job: Job) -> dict[str, Any]:
    """Every order of one seed with the arms beside them; or the probe of a world and the plan made from it."""
    bench, start = begun(job.kind, job.world), time.process_time()
    if job.seed is None:
        probes = {name: _planned(bench, replace(PROBE, pairs=name == PAIRS)) for name in (PAIRS, SINGLE)}
        return {"kind": job.kind, "world": job.world, "seed": None, "probes": probes, "cpu": time.process_time() - start}
    found, model = {FROZEN: bench.mean(bench.learner.model)}, bench.learner.model

    def grow(branch: Any, done: tuple[str, ...]) -> None:
        if len(done) == len(TASKS):
            found["".join(done)] = bench.mean(branch)
            return
        for task in TASKS:
            if task not in done:
                key = (job.world, job.seed or 0, *map(TASKS.index, (*done, task)))
                grow(bench.trained(branch, bench.train[task], STEPS, key), (*done, task))

    grow(model, ())
    everything = np.concatenate(list(bench.train.values()))
    key = (job.world, job.seed, 99)
    found[JOINT] = bench.mean(bench.trained(model, everything, len(TASKS) * STEPS, key))
    for part in range(len(TASKS)):
        model = bench.trained(model, everything, STEPS, (*key, part))
    found[RESETS] = bench.mean(model)
    return {"kind": job.kind, "world": job.world, "seed": job.seed, "success": found, "cpu": time.process_time() - start}


def keep_one(job: Job) -> dict[str, Any]:
    """As `try_one`, or as it was kept."""
    return load_or_make(Path(__file__), repr(job), lambda: try_one(job))


def alone_of(job: Job) -> dict[str, Any]:
    """The task whose short runs end best, mean of as many as the probe has, and success after it alone with every seed."""
    bench, start = begun(job.kind, job.world), time.process_time()

    def ended(task: str, steps: int, seed: int, part: int) -> float:
        key = (job.world, seed, part, TASKS.index(task))
        return bench.mean(bench.trained(bench.learner.model, bench.train[task], steps, key))

    short = {task: float(np.mean([ended(task, PROBE.steps, seed, 76) for seed in range(PROBE.seeds)])) for task in TASKS}
    task = max(short, key=lambda name: short[name])
    success = [ended(task, len(TASKS) * STEPS, seed, 77) for seed in range(SEEDS)]
    return {"short": short, "task": task, "success": success, "cpu": time.process_time() - start}


def keep_alone(job: Job) -> dict[str, Any]:
    """As `alone_of`, or as it was kept."""
    return load_or_make(Path(__file__), f"alone {job!r}", lambda: alone_of(job))


def _planned(bench: Bench, sizes: RunSizes) -> dict[str, Any]:
    """What the planner makes of the probe, and what it expects of every order."""
    from mixwright.estimates.orders import choose_order, expected_success
    from mixwright.plan.planners.transfer_order import effects_of

    begin = time.process_time()
    reads = 0

    def read(model: Any) -> dict[str, dict[str, np.ndarray]]:
        nonlocal reads
        reads += 1
        return {"success": bench.success(model)}

    measured = measure_transfer(
        bench.learner.model, bench.losses, read, bench.train, sizes, np.random.default_rng([SEEDS, 1])
    )
    spent = time.process_time() - begin
    cells = bench.corpus.select(split="train").cells()
    planner = catalog.create("planners", "transfer_order")
    plan = planner.plan(cells, measured, TrainingSetup(3 * STEPS, "sft", BATCH))
    effects = effects_of(measured, TASKS)
    choice = choose_order(effects)
    differ = choice.certainty >= planner.certain and choice.gain >= planner.least
    orders = list(itertools.permutations(range(len(TASKS))))
    expected = {"".join(TASKS[place] for place in order): float(expected_success(effects, order).mean()) for order in orders}
    order = "".join(TASKS[place] for place in choice.order)
    (steps,) = (row.value / BATCH for row in measured if row.name == "rows_trained")
    cost = {"cpu": spent, "steps": steps, "rollouts": reads * ITEMS * len(TASKS)}
    said = {"orders differ": differ, "stages are better": len(plan.stages) > 1}
    return {"order": order, "said": said, "why": plan.why["stages"], "expected": expected, "cost": cost}


def world_of(rows: Sequence[Mapping[str, Any]], alone: Sequence[float]) -> dict[str, Any]:
    """One world: truth by its seeds, and what the planner said by either probe.

    Args:
        rows: of the world: its probe's, and one per seed.
        alone: success of each seed after one task alone.
    """
    (probe,), seeds = [row for row in rows if row["seed"] is None], [row for row in rows if row["seed"] is not None]
    orders = ["".join(order) for order in itertools.permutations(TASKS)]
    table = np.array([[row["success"][order] for order in orders] for row in seeds])
    bests = [int(np.delete(table, place, 0).mean(0).argmax()) for place in range(len(seeds))]
    best = np.array([table[place, order] for place, order in enumerate(bests)])
    joint, actual = np.array([row["success"][JOINT] for row in seeds]), table.mean(0)
    gains = {
        "orders differ": interval((best - table.mean(1)).tolist()),
        "stages are better": interval((best - joint).tolist()),
    }
    arms = {arm: interval([row["success"][arm] for row in seeds]) for arm in (FROZEN, JOINT, RESETS)}
    single = np.array(alone[: len(seeds)])
    arms[ALONE] = interval(single.tolist())
    truth = {word: gain.low > 0 and gain.value >= MATTERS for word, gain in gains.items()}
    found = {"kind": probe["kind"], "world": probe["world"], "truth": truth, "the best order less": gains}
    found |= {"mean of all orders": interval(table.mean(1).tolist()), **arms}
    for name, said in probe["probes"].items():
        own = table[:, orders.index(said["order"])]
        beside = {arm: own - np.array([row["success"][arm] for row in seeds]) for arm in (FROZEN, JOINT, RESETS)}
        beside |= {
            ALONE: own - single,
            "reversed": own - table[:, orders.index(said["order"][::-1])],
            "all orders": own - table.mean(1),
        }
        expected, staged = [said["expected"][order] for order in orders], said["said"]["stages are better"]
        found[name] = {
            **said,
            "right": {word: said["said"][word] == truth[word] for word in truth},
            "spearman": _spearman(expected, actual),
            "planned less joint": float((own - joint).mean()) if staged else 0.0,
            "planned less one task alone": float(((own if staged else joint) - single).mean()),
            "rank": int((actual > own.mean() + 1e-9).sum()) + 1,
            "chosen less": {arm: interval(values.tolist()) for arm, values in beside.items()},
        }
    return found


def _spearman(expected: Sequence[float], actual: np.ndarray) -> float | None:
    """None where all orders come to the same."""
    if np.ptp(expected) < 1e-12 or np.ptp(actual) < 1e-12:
        return None
    return float(np.asarray(spearmanr(expected, actual))[0])


def measure(quick: bool) -> Result:
    """All worlds."""
    worlds, seeds = (WORLDS[2:6:3], 2) if quick else (WORLDS, SEEDS)
    under = () if quick else UNDERTAUGHT
    jobs = [Job(*world, seed) for world in worlds for seed in (None, *range(seeds))]
    jobs += [Job(*world, seed) for world in under for seed in (None, *range(UNDER_SEEDS))]
    rows = run_in_processes(keep_one, jobs, say="world and seed")
    both = (*worlds, *under)
    singles = run_in_processes(keep_alone, [Job(*world, None) for world in both], say="world of one task alone")
    own = [[row for row in rows if (row["kind"], row["world"]) == world] for world in both]
    every = [world_of(part, single["success"]) for part, single in zip(own, singles, strict=True)]
    found, fresh = every[: len(worlds)], every[:DECIDING_WORLDS]
    lost = [one[name]["chosen less"] for one in every for name in (PAIRS, SINGLE) if one[name]["said"]["stages are better"]]
    harm = [any(less[arm].value < -HARM for arm in (FROZEN, JOINT)) for less in lost]
    words = right_words({NEW: fresh, "worlds known before": found[DECIDING_WORLDS:]})
    ordered = [one for one in found if one["truth"]["orders differ"]]
    ranks = [one[PAIRS]["spearman"] or 0.0 for one in ordered]
    spearman = interval(ranks) if len(ranks) > 1 else Interval(0, -1, 1, len(ranks))
    harmful = share_interval(sum(harm), max(len(harm), 1))
    first = share_interval(sum(one[PAIRS]["rank"] == 1 for one in ordered), max(len(ordered), 1))
    beside = interval([one[PAIRS]["planned less one task alone"] for one in fresh])
    wrong = [one for one in found if one["kind"] == WRONG]
    repaired = interval([one[PAIRS]["planned less one task alone"] for one in wrong]) if len(wrong) > 1 else beside
    followed = interval([one[PAIRS]["planned less joint"] for one in fresh])
    whole = sum(row["cpu"] for row in (*rows, *singles)) / 60
    goals = [
        *(Goal(f"the right word: {word}", share, ">= 0.9", share.value >= 0.9) for word, share in words.items()),
        Goal("Spearman of orders as expected, where orders differ", spearman, ">= 0.5", spearman.value >= 0.5),
        Goal("the chosen order is the best, where orders differ", first, ">= 0.5", first.value >= 0.5),
        Goal("plans of stages that lose to all together or to no training", harmful, "= 0", not harmful.value),
        Goal(f"success by the plan less all tasks together, {NEW}", followed, "> 0, lower end too", followed.low > 0),
        Goal(f"success by the plan less one task alone, {NEW}", beside, "> 0, lower end too", beside.low > 0),
        Goal("success by the plan less one task alone, wrong rows", repaired, "> 0, lower end too", repaired.low > 0),
        Goal("CPU minutes", Interval(whole, whole, whole, 1), "<= 120", whole <= 120),
    ]
    settings = {"steps of a stage": STEPS, "probe": str(PROBE), "items per task": ITEMS}
    told = {f"{one['kind']} {one['world']}": plain(one) for one in every}
    told["one task alone"] = {f"{kind} {world}": single for (kind, world), single in zip(both, singles, strict=True)}
    told["always no"] = {word: float(np.mean([not one["truth"][word] for one in fresh])) for word in found[0]["truth"]}
    told["start at .95 or more"] = sum(one[FROZEN].value >= 0.95 for one in fresh)
    unit = "share of worlds with the right word on whether stages are better than all tasks together"
    return Result(
        words[f"stages are better, by {PAIRS}, {NEW}"], unit, list(range(seeds)), rows, told, settings, goals=goals
    )


def right_words(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Interval]:
    """Shares of worlds with the right word: of each word, by each probe, in each group of worlds that is not empty."""
    return {
        f"{word}, by {name}, {of}": share_interval(sum(one[name]["right"][word] for one in group), len(group))
        for of, group in groups.items()
        for name in (PAIRS, SINGLE)
        for word in (group[0]["truth"] if group else ())
    }


def plain(value: Any) -> Any:
    """Intervals, at any depth, as JSON values."""
    if isinstance(value, Interval):
        return to_data(value)
    return {name: plain(inner) for name, inner in value.items()} if isinstance(value, Mapping) else value


if __name__ == "__main__":
    run("orders", __doc__, measure)
