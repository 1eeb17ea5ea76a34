"""Study of difficulty without levels: success predicted from the rewards of similar prompts, learnt inside the run.

One small student per seed goes on by GRPO on pools whose levels the rule does not know, as in `rollouts`:

    wide           chains of 1 to 8 operations: 45 % mastered, 10 % reachable (4 to 6 operations), 45 % out of reach
    operators      the same shares in chains of four operations whose classes differ in difficulty: lengths say nothing
    traps          40 % are right half the time whatever the model does
    narrow         4 to 6 operations only
    uninformative  chains of 5 operations; a quarter of the problems accept every answer, a quarter have an answer drawn at
                   random, and no prompt shows which
    again          480 problems of the wide pool, five passes
    large          20,000 problems of the wide pool
    over-hard      that of `overhard`: 98 % out of reach, under the plan that a trainer makes by itself

Each has 2,400 problems and 5,760 rollouts where nothing else is said (over-hard 4,000 and 7,680, again 19,200). Arms: the
selector `difficulty` drawing evenly (`even`: no levels and no features, as it was before), with features of the prompts
(`predicted`), with those shuffled over the problems (`shuffled`, the null), with the true levels (`levels`); equal shares
of the true levels; a linear regression on counts of tokens (`linear`, the pilot's rule), filter and refill, an oracle that
knows the true success of each level, uniform draws and no training (`frozen`). Equal shares of tasks are uniform draws
here: every pool has one task. Wide, operators and over-hard have 20 seeds, the others ten, `large` three.

The primary outcome is greedy success on all held-out problems, every level counted once (`outcome.py`), and
differences are paired by seed and problem. It is read at the end, and at `EARLY_ROLLOUTS` rollouts, too: greedy success
comes to its ceiling soon, sampled success (beside it) later. All rollouts are charged, those thrown away and canaries too;
the oracle's knowledge alone is free. Rollouts to a target are a mechanism: the target of a run is sampled success on
reachable levels at its start + `TARGET_GAIN_SHARE`, reached at the first look whose mean with the look before is at or over
it; every run counts as min(T, 5,760), and arms are compared by the ratio of those means. Shares of a gain and of a damage
are ratios of means over seeds. Both have jackknife t intervals over seeds, which do not hold the spread of the held-out
problems; intervals are not corrected for their number. Seeds 400 to 419 were fixed before the run; POINTS, the worlds and
the predictor were chosen on seeds 100 to 207. Two earlier runs changed the rule: on seeds 80 to 99 five passes over 480
problems ended 7.6 points under uniform draws, so what was drawn was left alone for half a pass; on seeds 300 to 319
that left 15 % of the damage by over-hard problems, so its room counts a third instead.
A run that was interrupted goes on from its rows, as long as the commit is the same.

    python -m mixwright_lab.studies.unlabelled [--quick]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mixwright import Pool
from mixwright.contracts import World
from mixwright.estimates.intervals import jackknife
from mixwright.records import Example, Interval, Plan, Stage, to_data
from mixwright_lab.studies import outcome, overhard, rollouts
from mixwright_lab.studies.jobs import resumed, run_in_processes
from mixwright_lab.studies.peers.linear import Linear
from mixwright_lab.studies.peers.refill import Refill
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.rollouts import packed
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Rollouts, Settings
from mixwright_lab.training.oracle import Oracle
from mixwright_lab.training.rules import EngineRule, Rule, UniformRule, drive, pool_of, unique_examples
from mixwright_lab.worlds.chain import MODULUS, MOST_OPERATIONS, Chain
from mixwright_lab.worlds.operators import LEVELS, Operators

SEEDS = tuple(range(400, 420))
FEW, FEWEST = SEEDS[:10], SEEDS[:3]
TAUGHT = Recipe(levels=((1, 1.0), (2, 1.0)), styles=(("full", 0.3), ("direct", 0.7)), plain=1, steps=600, world="operators")
"""Class 1 is mastered; class 2 it could work out, but mostly guesses at once; operations of class 3 were never seen."""
TRAP, OPEN, WRONG = rollouts.TRAP_LEVEL, 10, 11
"""Levels of traps, of problems that accept every answer, and of problems whose answer is drawn at random."""
HIDDEN = 5
"""Operations of every problem whose difficulty its prompt does not show."""
ALL = (
    *("frozen", "uniform", "equal levels", "levels", "even"),
    *("predicted", "shuffled", "linear", "refill", "oracle"),
)
PLAIN = ("frozen", "uniform", "even", "predicted")
READ = ("predicted", "shuffled")
"""Arms that predict success from features of prompts."""
PREDICT: Mapping[str, Any] = {"selectors.difficulty": {"predict": True}}
TRUE = ("equal levels", "levels", "oracle")
"""Arms that know the true levels."""
SELECTORS = {"equal levels": "equal_levels"}
GUARDED = "over-hard"
"""The pool of `overhard`, under the plan that a trainer makes by itself."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A pool, and what is run on it."""

    shares: Mapping[int, float]
    """Of problems, by level; levels from 9 on are `TRAP`, `OPEN` and `WRONG`."""
    arms: tuple[str, ...] = ALL
    seeds: tuple[int, ...] = SEEDS
    size: int = 2400
    """Problems; fewer where there are not so many different ones."""
    budget: int = 5_760
    """Rollouts."""
    reachable: tuple[int, ...] = (4, 5, 6)
    """Levels that can be learnt: those of the target."""
    operators: bool = False
    """Whether the world is `operators`."""
    every: int = 960
    """Rollouts between two looks at the reachable levels."""
    each: int = 40
    """Held-out problems per level."""

    @property
    def world(self) -> World:
        """Of the problems."""
        return Operators() if self.operators else Chain()

    @property
    def recipe(self) -> Recipe:
        """Of the student."""
        return TAUGHT if self.operators else rollouts.BASE


POOLS: Mapping[str, Setting] = {
    "wide": Setting(rollouts.WIDE_SHARES, every=240),
    "operators": Setting({1: 0.45, 2: 0.1, 3: 0.45}, reachable=(2,), operators=True, every=240, each=100),
    "traps": Setting(rollouts.POOLS["trap"].shares, (*PLAIN, "levels"), FEW),
    "narrow": Setting(rollouts.POOLS["in-band"].shares, PLAIN, FEW),
    "uninformative": Setting({HIDDEN: 0.5, OPEN: 0.25, WRONG: 0.25}, PLAIN, FEW, reachable=(HIDDEN,)),
    "again": Setting(rollouts.WIDE_SHARES, ("frozen", "uniform", "levels", "predicted"), FEW, size=480, budget=19_200),
    "large": Setting(rollouts.WIDE_SHARES, (*PLAIN, "levels"), FEWEST, size=20_000),
    GUARDED: Setting(
        overhard.MOSTLY_HARD,
        (*PLAIN, "levels"),
        size=overhard.POOL_PROBLEMS,
        budget=overhard.STEPS * 96,
        reachable=(3, 4, 5, 6),
    ),
}


@dataclass(frozen=True)
class Job:
    """One run."""

    pool: str
    arm: str
    seed: int
    budget: int
    """Rollouts, but for canaries."""
    early: int = 0
    """Rollouts at which the outcome is read, too; 0 for never."""


def problems(kind: str, seed: int, size: int | None = None) -> list[Example]:
    """The pool of a seed with its true levels, shuffled; `size` problems instead of the setting's."""
    setting, rng, found = POOLS[kind], np.random.default_rng((seed, 7)), []
    for level, share in setting.shares.items():
        start = int(rng.integers(2**30))
        plain = {TRAP: MOST_OPERATIONS, OPEN: HIDDEN, WRONG: HIDDEN}.get(level, level)
        count = round(share * (size or setting.size))
        made = [setting.world.make(start + index, plain, "train") for index in range(count)]
        found += [changed(example, level, rng) for example in made] if level >= TRAP else made
    found = unique_examples(found)
    return [found[index] for index in rng.permutation(len(found))]


def changed(example: Example, level: int, rng: np.random.Generator) -> Example:
    """The problem as a trap, with every answer right, or with an answer drawn at random."""
    if level == TRAP:
        return rollouts.trapped(example, rng)
    changed = replace(example, id=f"{level}:{example.id}", level=float(level))
    if level == OPEN:
        return replace(changed, extra={**example.extra, "accepted": tuple(map(str, range(MODULUS)))})
    return replace(changed, answer=str(rng.integers(MODULUS)))


def held_out(kind: str) -> list[Example]:
    """Problems that the outcome is about: every level of the world, and traps where the pool has some."""
    if kind == GUARDED:
        return overhard.held_out("unlabelled")
    if kind == "traps":
        return rollouts.held_out("trap")
    setting = POOLS[kind]
    levels = LEVELS if setting.operators else range(1, MOST_OPERATIONS + 1)
    return outcome.held_out(levels, setting.each, setting.world.make)


def without(examples: Sequence[Example]) -> list[Example]:
    """The problems without levels."""
    return [replace(example, level=None) for example in examples]


def pool_for(arm: str, examples: Sequence[Example], seed: int, chance: Callable[[Example], float] = rollouts.chance) -> Pool:
    """The engine's pool: with features of the prompts where success is predicted, shuffled over all rows for the null."""
    pool = pool_of(examples, chance, predict_from_prompts=arm in READ)
    if arm != "shuffled" or pool.features is None:
        return pool
    return replace(pool, features=np.random.default_rng((seed, 11)).permutation(pool.features))


def rule_of(arm: str, examples: Sequence[Example], seed: int) -> Rule:
    """The rule of an arm, on the problems as that arm knows them."""
    if arm in ("uniform", "refill"):
        return {"uniform": UniformRule, "refill": Refill}[arm](len(examples), seed)
    if arm == "linear":
        return Linear([str(example.prompt) for example in examples], seed)
    pool = pool_for(arm, examples, seed)
    if arm == "oracle":
        return Oracle(pool, rollouts.BAND, seed)
    selector, options = SELECTORS.get(arm, "difficulty"), PREDICT if arm in READ else {}
    stage = Stage("training", "grpo", 1000, {"chain": 1.0}, rollouts.BAND, selector=selector, options=options)
    return EngineRule(Plan("unlabelled", (stage,)), pool, seed)


class Counted(Arena):
    """Counts training rollouts by true level, which the rule may not know.

    Args:
        examples: as the rule knows them.
        levels: the true ones.
        model: where the student starts.
        settings: of the run.
        seed: of every sample.
    """

    def __init__(
        self, examples: Sequence[Example], levels: Sequence[float | None], model: GPT, settings: Settings, seed: int
    ) -> None:
        super().__init__(examples, model, settings, seed)
        self.levels, self.drawn = levels, Counter[str]()

    def roll(self, indices: Sequence[int], count: int, *, greedy: bool = False) -> Rollouts:
        """Rollouts, charged and counted."""
        for index in indices:
            self.drawn[f"{self.levels[index]:g}"] += count
        return super().roll(indices, count, greedy=greedy)


def trained(job: Job) -> Row:
    """One run, with looks at the reachable levels on the way and every answer to the held-out problems at its end."""
    if job.pool == GUARDED:
        return guarded(job)
    setting, scored = POOLS[job.pool], held_out(job.pool)
    true = problems(job.pool, job.seed)
    examples = true if job.arm in TRUE else without(true)
    model = base_model(job.seed, setting.recipe)
    arena = Counted(examples, [example.level for example in true], model, Settings(), job.seed)
    made: Row = {"pool": job.pool, "arm": job.arm, "seed": job.seed}
    if job.arm == "frozen":
        return made | {"charged": 0, "answers": outcome.answers(arena, scored)}
    rule = rule_of(job.arm, examples, job.seed)
    target = [example for example in scored if example.level in setting.reachable]

    def look(arena: Arena) -> Row:
        return {"accuracy": round(float(arena.look(target).rewards.mean()), 4)}

    seen: list[Row] = []
    for until in (job.early, job.budget) if job.early else (job.budget,):
        seen += drive(arena, rule, until, setting.every, look)[bool(seen) :]
        if until == job.early:
            made["early"] = outcome.answers(arena, scored)
    return made | account_of(arena, rule) | {"answers": outcome.answers(arena, scored), "seen": seen}


def account_of(arena: Counted, rule: Rule) -> Row:
    """What was charged and drawn, and shares of the groups that were learnt from."""
    groups, drawn = max(1, rule.totals["groups"]), max(1, arena.drawn.total())
    shares = {level: round(count / drawn, 5) for level, count in sorted(arena.drawn.items())}
    found: Row = {"steps": arena.steps, "charged": arena.charged, "drawn": shares}
    return found | {name: rule.totals[name] / groups for name in ("teach", "refused")}


def guarded(job: Job) -> Row:
    """One run on the over-hard pool: the trainer's own plan with levels, without, or with predictions instead."""
    true = overhard.examples_of("hard", job.seed)
    examples = true if job.arm in TRUE else without(true)
    world, scored = overhard.POOLS["unlabelled"], held_out(GUARDED)
    model = base_model(job.seed, world.recipe)
    arena = Counted(examples, [example.level for example in true], model, Settings(rate=world.rate), job.seed)
    made: Row = {"pool": job.pool, "arm": job.arm, "seed": job.seed}
    if job.arm == "frozen":
        return made | {"charged": 0, "answers": outcome.answers(arena, scored)}
    guards = overhard.ARMS["uniform" if job.arm == "uniform" else "default"]
    guards = replace(guards, options=PREDICT) if job.arm in READ else guards
    known = overhard.chances(examples)
    pool = pool_for(job.arm, examples, job.seed, lambda example: known[example.level])
    rule = EngineRule(overhard.plan_of(guards, pool), pool, job.seed, canary_every=5 if guards.monitors else 20)
    for _ in range(job.budget // (arena.settings.prompts * arena.settings.group)):
        rule.step(arena)
    return made | account_of(arena, rule) | {"answers": outcome.answers(arena, scored)}


def bases(seed: int) -> None:
    """Train the students of a seed; they stay on disk."""
    for recipe in (rollouts.BASE, TAUGHT, overhard.ABLE):
        base_model(seed, recipe)


TARGET_GAIN_SHARE = 0.4
"""Above the start's success on reachable levels: the target. On seeds from 100 on about two thirds of what true levels gain
within `WATCHED_ROLLOUTS` rollouts, and nearly all runs with uniform draws arrive."""
EARLY_ROLLOUTS, WATCHED_ROLLOUTS = 1_920, 5_760
"""Rollouts at which the outcome is read, too; within which the target must be reached."""
QUICK = (200, 201)
REFERENCES = ("frozen", "uniform", "equal levels")
WHEN = {"early": "early", "answers": "end"}
"""Columns of answers, and what their readings are called."""
TARGET_READING = "greedy, all levels"


def time_to_target(row: Row, points: float = TARGET_GAIN_SHARE) -> float | None:
    """Rollouts charged when the target was reached, means of two looks; None when it never was within `WATCHED_ROLLOUTS`."""
    looks = row["seen"]
    for before, now in pairwise(looks):
        if (before["accuracy"] + now["accuracy"]) / 2 >= looks[0]["accuracy"] + points:
            return float(now["charged"])
    return None


def sooner(rows: Sequence[Row], arm: str, reference: str, watched: int = WATCHED_ROLLOUTS) -> Interval | None:
    """Rollouts to the target of the reference over those of the arm, a ratio of restricted means: above 1 it is sooner."""
    times = {(row["arm"], row["seed"]): min(time_to_target(row) or watched, watched) for row in rows if "seen" in row}
    seeds = sorted(seed for name, seed in times if name == arm and (reference, seed) in times)
    pairs = np.array([[times[name, seed] for name in (reference, arm)] for seed in seeds], dtype=float)
    if not len(pairs) or (pairs >= watched).all():
        return None  # no run arrived: nothing to see
    found = jackknife(pairs, lambda total: math.log(total[0] / total[1]))
    return found and Interval(math.exp(found.value), math.exp(found.low), math.exp(found.high), found.n)


def successes(
    rows: Sequence[Row], scored: Sequence[Example], levels: Sequence[float], decoding: str, column: str
) -> dict[str, dict[int, float]]:
    """Arm -> seed -> success, mean over levels.

    Args:
        rows: of one pool.
        scored: its held-out problems.
        levels: that are meant.
        decoding: greedy or pass@1.
        column: of the rows that holds the answers; rows that lack it (models that were not trained) have "answers".
    """
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        known = outcome.scores(row.get(column, row["answers"]), scored).scores[decoding]
        by = [np.mean([value for item, value in known.items() if item[1] == level]) for level in levels]
        found.setdefault(row["arm"], {})[row["seed"]] = float(np.mean(by))
    return found


def recovered(found: Mapping[str, Mapping[int, float]], arm: str, whole: str) -> Interval | None:
    """(arm - uniform) / (whole - uniform), a ratio of means over seeds, with a jackknife t interval.

    With `levels` for the whole it is the share of the gain of true levels; with `frozen`, where uniform draws damage, the
    share of that damage which is prevented, 1 - (frozen - arm) / (frozen - uniform).

    Args:
        found: success, by arm and seed.
        arm: of which the share is asked for.
        whole: of which it is a share.
    """
    sides = [found[name] for name in (arm, whole, "uniform")]
    seeds = sorted(set(sides[0]) & set(sides[1]) & set(sides[2]))
    parts = np.array([[side[seed] - sides[2][seed] for side in sides[:2]] for seed in seeds])
    if not parts[:, 1].sum():
        return None  # nothing to have a share of
    share = jackknife(parts, lambda total: total[0] / total[1] if total[1] else math.nan)
    return share if share is not None and math.isfinite(share.low) else None


def mechanism(rows: Sequence[Row], watched: int) -> dict[str, Any]:
    """Per arm: informative and refused groups, draws by true level, rollouts to the target and uniform's over them."""
    figures: dict[str, Any] = {}
    for arm in dict.fromkeys(row["arm"] for row in rows if "drawn" in row):
        mine = [row for row in rows if row["arm"] == arm]
        shown: dict[str, Any] = {
            name: float(np.mean([row[name] for row in mine])) for name in ("teach", "refused", "charged")
        }
        levels = sorted({level for row in mine for level in row["drawn"]}, key=float)
        shown["drawn"] = {level: float(np.mean([row["drawn"].get(level, 0.0) for row in mine])) for level in levels}
        if all("seen" in row for row in mine):
            times = [time_to_target(row) for row in mine]
            shown["rollouts to target"] = float(np.mean([min(t or watched, watched) for t in times]))
            shown["missed"] = sum(t is None or t >= watched for t in times)
            ratio = sooner(rows, arm, "uniform", watched)
            shown["uniform over it"] = to_data(ratio) if ratio else None
        figures[arm] = shown
    return figures


def pairs_of(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Every arm with not training, uniform draws and equal levels; the predictor with every other."""
    found = [(arm, reference) for reference in REFERENCES if reference in arms for arm in arms if arm not in REFERENCES]
    found += [
        ("uniform", "frozen"),
        *((("equal levels", "frozen"), ("equal levels", "uniform")) if "equal levels" in arms else ()),
    ]
    return found + [("predicted", arm) for arm in arms if arm not in (*REFERENCES, "predicted")]


def figures_of(kind: str, rows: Sequence[Row], watched: int) -> dict[str, Any]:
    """All figures of one pool; prints its table."""
    setting, scored = POOLS[kind], held_out(kind)
    pairs, found = pairs_of(setting.arms), {"mechanism": mechanism(rows, watched)}
    for column in ("early", "answers"):
        if kind == GUARDED and column == "early":
            continue
        shown: dict[str, Any] = {"outcome": outcome.differences(rows, scored, pairs, column=column)}
        shown["means"] = outcome.means(rows, scored, column=column)
        shown["reachable"] = outcome.differences(rows, scored, pairs, levels=setting.reachable, column=column)
        shown["shares"] = shares(kind, rows, scored, column)
        outcome.table(f"{kind}, {'early' if column == 'early' else 'at the end'}", shown["outcome"], shown["means"])
        found[WHEN[column]] = shown
    return found


def shares(kind: str, rows: Sequence[Row], scored: Sequence[Example], column: str) -> dict[str, Any]:
    """Shares of the gain of true levels (over-hard pool: of the damage that is prevented), by decoding and levels."""
    setting, whole = POOLS[kind], "frozen" if kind == GUARDED else "levels"
    everything = sorted({example.level for example in scored if example.level})
    found: dict[str, Any] = {}
    for decoding in ("greedy", "pass@1") if whole in setting.arms else ():
        for name, levels in (("all levels", everything), ("reachable", setting.reachable)):
            known = successes(rows, scored, levels, decoding, column)
            parts = {arm: recovered(known, arm, whole) for arm in setting.arms if arm not in ("frozen", "uniform", whole)}
            found[f"{decoding}, {name}"] = {arm: to_data(part) for arm, part in parts.items() if part is not None}
    return found


def goals_of(figures: Mapping[str, Any]) -> list[Goal]:
    """Fixed before the run."""
    found: list[Goal] = []

    def add(
        name: str, value: Interval | Mapping[str, Any] | None, goal: str, least: float, low: float | None = None
    ) -> None:
        if value is None:  # it stays in the list: nothing was seen, so nothing was reached
            found.append(Goal(f"{name} (no figure)", Interval(0.0, 0.0, 0.0, 0), goal, False))
            return
        shown = value if isinstance(value, Interval) else Interval(**value)
        found.append(Goal(name, shown, goal, shown.value >= least and (low is None or shown.low > low)))

    def gained(kind: str, against: str) -> Interval:
        return outcome.interval_of(figures[kind]["end"]["outcome"][f"predicted - {against}"])

    for kind, goal, least, low in (("wide", ">= 2.5", 2.5, None), ("operators", ">= 1.5, low end > 1", 1.5, 1.0)):
        ratio = figures[kind]["mechanism"]["predicted"]["uniform over it"]
        add(f"{kind}: rollouts to the target, uniform over predicted", ratio, goal, least, low)
    for when in ("early", "end"):
        share = figures["wide"][when]["shares"][TARGET_READING].get("predicted")
        add(f"wide, {when}: share of the gain of true levels, {TARGET_READING}", share, ">= 0.8", 0.8)
    add(f"traps: predicted - levels, {TARGET_READING}", gained("traps", "levels"), ">= -0.01", -0.01)
    for kind in ("narrow", "uninformative"):
        add(f"{kind}: predicted - uniform, {TARGET_READING}", gained(kind, "uniform"), "low end > -0.01", -math.inf, -0.01)
    prevented = figures[GUARDED]["end"]["shares"][TARGET_READING].get("predicted")
    add(f"over-hard: damage prevented, {TARGET_READING}", prevented, ">= 0.95, low end > 0.85", 0.95, 0.85)
    return found


def jobs_of(quick: bool) -> list[Job]:
    """Seed by seed, so that an interrupted run has whole pairs; a fifth of the rollouts for a quick one."""
    part = 5 if quick else 1
    return [
        Job(kind, arm, seed, setting.budget // part, 0 if kind == GUARDED else EARLY_ROLLOUTS // part)
        for seed in (QUICK if quick else SEEDS)
        for kind, setting in POOLS.items()
        if quick or seed in setting.seeds
        for arm in setting.arms
    ]


def measure(quick: bool) -> Result:
    """All pools and arms; the headline is the predictor against uniform draws on the wide pool, at the end."""
    seeds, jobs = QUICK if quick else SEEDS, jobs_of(quick)
    run_in_processes(bases, seeds)
    rows = resumed("unlabelled", trained, jobs)
    watched = WATCHED_ROLLOUTS // 5 if quick else WATCHED_ROLLOUTS
    figures = {kind: figures_of(kind, [row for row in rows if row["pool"] == kind], watched) for kind in POOLS}
    shown = {arm: found["drawn"].get(str(TRAP)) for arm, found in figures["traps"]["mechanism"].items()}
    print("\nshare of rollouts that traps had: " + ", ".join(f"{arm} {share:.3f}" for arm, share in shown.items()))
    value = outcome.interval_of(figures["wide"]["end"]["outcome"]["predicted - uniform"])
    settings = {
        "pools": to_data(dict(POOLS)),
        "operators": to_data(TAUGHT),
        "points": TARGET_GAIN_SHARE,
        "watched": WATCHED_ROLLOUTS,
    }
    unit = "greedy success over all held-out levels, predicted minus uniform, wide pool without levels"
    return Result(value, unit, seeds, packed(rows), to_data(figures), to_data(settings), goals=goals_of(figures))


if __name__ == "__main__":
    run("unlabelled", __doc__, measure)
