"""Study of refusing: over-hard cells, cells without information, cells of partial skill, one lever left out in turn.

A tiny GPT is trained by GRPO, 80 steps of 12 x 8 rollouts. It can do chains of 1 to 6 operations (`able`: a fifth of its
answers given at once), or of 1 to 3, and could work out 4 to 6 but mostly guesses at once (`lazy`). Pools of 4,000 problems,
the same for all arms of a seed:
    hard        98 % out of reach (8 operations, chance level 1/16), 2 % not (3 to 6 operations, 20 problems each);
                able, at a high learning rate of 1e-3
    half rate   the same at 5e-4
    unlabelled  the same as hard without levels, so that nothing tells the hard rows from the others
    medium      5 and 6 operations only, where a guard must cost nothing; able, 1e-3
    blind       half of the rows have answers that do not depend on the prompt (0 in 45 %, else any): nothing can be
                learnt of them but to say 0; the other half are 4 to 6 operations; lazy, 5e-4
    partial     4 to 6 operations whose answer is 0 in half of the rows: a skill that the model has in part, beside a
                majority answer that is quicker to learn; lazy, 5e-4
The primary outcome is greedy success on held-out problems of every level of that world, each counted once, what the pool
lacks too (`outcome.py`). References: `frozen` (not trained), `uniform` (every row alike, no lever), `equal
shares` of tasks and levels. `default` is the plan that a trainer makes by itself, with nothing measured before (selector
difficulty, gate too_hard, `min_informative_share`; in the committed run canaries, too, and arms without and with them
alone); `no X` is that plan without X; `X alone` is X on uniform
draws. To train less is a lever, too: a lower learning rate, or a coin that refuses as many groups as the gate did in an
earlier run. Intervals are not corrected for
their number. Seeds 30 to 37 (20 seeds, 30 to 49, without levels) were fixed before the run. Pools and rates were chosen on
seeds from 100 on, of which no rows were kept; that 20 seeds without levels should decide on the rule for lucky cells was
chosen on seeds 100 to 104. A first run had seeds 20 to 27 (mixwright_lab/log.md).

    python -m mixwright_lab.studies.overhard [--quick]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from mixwright.contracts import Pool
from mixwright.records import Example, Plan, Stage, to_data
from mixwright_lab.studies import outcome
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.peers.coin import Coin
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena, Settings
from mixwright_lab.training.rules import EngineRule, Rule, pool_of, unique_examples
from mixwright_lab.worlds.chain import MODULUS, MOST_OPERATIONS, Chain

STEPS, QUICK = 80, (30, 31)
POOL_PROBLEMS = 4000
"""Problems of a pool."""
HELD_OUT_PER_LEVEL = 40
"""Held-out problems per level."""
HIGH_RATE, ORDINARY_RATE = 1e-3, 5e-4
"""Learning rates."""
ABLE = Recipe()
LAZY = Recipe(plain=3, steps=600, styles=(("full", 0.3), ("direct", 0.7)))
MOSTLY_HARD = {8: 0.98, 3: 0.005, 4: 0.005, 5: 0.005, 6: 0.005}
BLIND_LEVEL, MAJORITY_SHARE, PARTLY_ZERO_SHARE = 8, 0.45, 0.5
"""Level of the rows without information, share of 0 among their answers; share of 0 where skill is partial."""


@dataclass(frozen=True)
class World:
    """A pool and what is run on it."""

    shares: Mapping[int, float]
    """Of problems, by number of operations."""
    rate: float
    """Learning rate."""
    arms: Sequence[str]
    labelled: bool = True
    blind: bool = False
    """Whether the answers of level `BLIND_LEVEL` say nothing of their prompts."""
    biased: Sequence[int] = ()
    """Levels of which `PARTLY_ZERO_SHARE` have the answer 0."""
    recipe: Recipe = ABLE
    """Of the student."""
    refused: float = 0.0
    """Share of groups that the gate refused in an earlier run, on the draws that the coin stands beside."""
    seeds: Sequence[int] = tuple(range(30, 38))

    def make(self, index: int, level: float, split: str) -> Example:
        """The problem at that index."""
        made = Chain(bias=PARTLY_ZERO_SHARE if level in self.biased else 0.0).make(index, level, split)
        if not (self.blind and level == BLIND_LEVEL):
            return made
        rng = np.random.default_rng((index, split == "eval", 0xB11D))
        answer = 0 if rng.random() < MAJORITY_SHARE else int(rng.integers(MODULUS))
        return replace(made, task="blind", answer=str(answer))


@dataclass(frozen=True)
class Guards:
    """What one arm does; nothing by default."""

    selector: str = "uniform"
    gates: Sequence[str] = ()
    controllers: Sequence[str] = ()
    engine: Mapping[str, Any] = field(default_factory=lambda: {"min_informative_share": 0.0})
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of plug-ins."""
    beta: float = 0.0
    """KL coefficient at the start."""
    rate: float = 1.0
    """Factor on the learning rate from the start."""
    coin: float | None = None
    """Uniform draws refused by a coin, in this part of the world's share; None: the engine draws and decides."""
    permute: bool = False
    """Train on rewards permuted within groups."""
    trains: bool = True


DEFAULT = Guards("difficulty", ("too_hard",), engine={})
"""The levers of `default_plan`; a test compares them."""
GATE = Guards(gates=("too_hard",), engine={})
UNLUCKY = {"gates.too_hard": {"lucky_kappa": 0.0}, "selectors.difficulty": {"lucky_kappa": 0.0}}
ARMS: Mapping[str, Guards] = {
    "frozen": Guards(trains=False),
    "uniform": Guards(),
    "equal shares": Guards("equal_levels"),
    "permuted": Guards(permute=True),
    "lower rate": Guards(rate=0.2),
    "half the rate": Guards(rate=0.5),
    "coin": Guards(coin=1.0),
    "survivors alone": Guards(coin=0.0),
    "default": DEFAULT,
    "no selector": replace(DEFAULT, selector="uniform"),
    "equal levels for selector": replace(DEFAULT, selector="equal_levels"),
    "no gate": replace(DEFAULT, gates=()),
    "no lucky cells": replace(DEFAULT, options=UNLUCKY),
    "no over-hard cells": replace(DEFAULT, options={"gates.too_hard": {"floor": 0.0}}),
    "no survivors": replace(DEFAULT, engine={"min_informative_share": 0.0}),
    "selector alone": Guards("difficulty"),
    "gate alone": GATE,
    "gate alone, no survivors": replace(GATE, engine={"min_informative_share": 0.0}),
    "gate alone, no lucky cells": replace(GATE, options=UNLUCKY),
    "gate alone, no over-hard cells": replace(GATE, options={"gates.too_hard": {"floor": 0.0}}),
    "drift alone": Guards(controllers=("drift",), beta=0.01),
    "beta alone": Guards(beta=0.01),
    "default, beta and drift": replace(DEFAULT, controllers=("drift",), beta=0.01),
}
REFERENCES = outcome.REFERENCES
LESS_TRAINING_ARMS = ("coin", "half the rate", "lower rate")
"""Ways to train less that know nothing of the cells."""
UNLABELLED = ("no lucky cells", "no over-hard cells", "survivors alone", *LESS_TRAINING_ARMS, "default, beta and drift")
PARTS = ("default", "no selector", "equal levels for selector", "no gate", "no lucky cells", "selector alone", "gate alone")
POOLS: Mapping[str, World] = {
    "hard": World(MOSTLY_HARD, HIGH_RATE, tuple(ARMS), refused=0.55),
    "half rate": World(MOSTLY_HARD, ORDINARY_RATE, (*REFERENCES, "default", "no gate", "gate alone")),
    "unlabelled": World(
        MOSTLY_HARD,
        HIGH_RATE,
        ("frozen", "uniform", "default", "no gate", *UNLABELLED),
        labelled=False,
        refused=0.44,
        seeds=tuple(range(30, 50)),
    ),
    "blind": World(
        {4: 0.2, 5: 0.15, 6: 0.15, BLIND_LEVEL: 0.5},
        ORDINARY_RATE,
        (*REFERENCES, *PARTS, *LESS_TRAINING_ARMS),
        blind=True,
        recipe=LAZY,
        refused=0.39,
    ),
    "partial": World(
        {4: 0.4, 5: 0.3, 6: 0.3},
        ORDINARY_RATE,
        (*REFERENCES, *PARTS, *LESS_TRAINING_ARMS[1:]),
        biased=(4, 5, 6),
        recipe=LAZY,
    ),
    "medium": World({5: 0.5, 6: 0.5}, HIGH_RATE, (*REFERENCES, "lower rate", "default", "no gate", "drift alone")),
}
QUICK_ARMS = (*REFERENCES, "default", "no gate", "gate alone")


@dataclass(frozen=True)
class Job:
    """One run."""

    pool: str
    arm: str
    seed: int
    steps: int = STEPS


def examples_of(pool: str, seed: int) -> list[Example]:
    """The pool of a seed: each problem once."""
    world, found = POOLS[pool], []
    for level, share in world.shares.items():
        count = round(share * POOL_PROBLEMS)
        found += unique_examples([world.make(seed * 100_000 + i, level, "train") for i in range(2 * count)])[:count]
    return found if world.labelled else [replace(example, level=None) for example in found]


def held_out(pool: str) -> list[Example]:
    """Every level, as this world has it."""
    return outcome.held_out(range(1, MOST_OPERATIONS + 1), HELD_OUT_PER_LEVEL, POOLS[pool].make)


def chances(examples: Sequence[Example]) -> dict[float | None, float]:
    """Chance level of each level: the larger of blind choice and, in levels of many rows, the commonest answer's share."""
    answers: dict[float | None, Counter[str]] = {}
    for example in examples:
        answers.setdefault(example.level, Counter())[str(example.answer)] += 1
    common = {level: max(c.values()) / c.total() if c.total() > 200 else 0.0 for level, c in answers.items()}
    return {level: max(1 / MODULUS, share) for level, share in common.items()}


def plan_of(guards: Guards, pool: Pool, *, equal: bool = False) -> Plan:
    """The plan of an arm; tasks weigh by their rows, or the same."""
    counts = np.bincount(pool.task_of) / len(pool.task_of)
    weights = {task: 1 / len(counts) if equal else float(counts[number]) for number, task in enumerate(pool.tasks)}
    options = {"engine": guards.engine, **guards.options}
    options = {name: value for name, value in options.items() if _used(name, guards)}
    stage = Stage("training", "grpo", STEPS, weights, selector=guards.selector, options=options)
    levers = {name: tuple(getattr(guards, name)) for name in ("gates", "controllers")}
    return Plan("hand", (replace(stage, **levers),))


def _used(name: str, guards: Guards) -> bool:
    kind, _, plugin = name.partition(".")
    return not plugin or plugin in (*guards.gates, guards.selector) or kind == "engine"


def run_job(job: Job) -> dict[str, Any]:
    """One run, with every answer to the held-out problems at its end."""
    guards, world = ARMS[job.arm], POOLS[job.pool]
    settings = Settings(rate=world.rate * guards.rate, beta=guards.beta, permute=guards.permute)
    arena = Arena(examples_of(job.pool, job.seed), base_model(job.seed, world.recipe), settings, job.seed)
    made = {"pool": job.pool, "arm": job.arm, "seed": job.seed}
    if not guards.trains:
        return made | {"charged": 0, "answers": outcome.answers(arena, held_out(job.pool))}
    if guards.coin is not None:
        return made | trained(Coin(len(arena.examples), job.seed, guards.coin * world.refused), arena, job)
    known = chances(arena.examples)
    pool = pool_of(arena.examples, lambda example: known[example.level])
    plan = plan_of(guards, pool, equal=job.arm == "equal shares")
    rule = EngineRule(plan, pool, job.seed)
    return made | trained(rule, arena, job)


def trained(rule: Rule, arena: Arena, job: Job) -> dict[str, Any]:
    """All steps of a run: its books, and every answer at its end."""
    for _ in range(job.steps):
        rule.step(arena)
    books: dict[str, Any] = {"charged": arena.charged, "groups": dict(rule.totals)}
    if isinstance(rule, EngineRule):
        books["decisions"] = dict(Counter(decision.what.partition(".")[0] for decision in rule.decisions))
    return books | {"answers": outcome.answers(arena, held_out(job.pool))}


def pairs_of(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Every arm with the references; the default plan with itself without one part, and with ways to train less."""
    found = [(arm, reference) for arm in arms for reference in REFERENCES if arm not in ("frozen", reference)]
    others = [
        arm
        for arm in arms
        if arm.startswith("no ") or arm in (*LESS_TRAINING_ARMS, "survivors alone", "equal levels for selector")
    ]
    found += [("default", arm) for arm in others if "default" in arms]
    alone = ("coin", "gate alone, no lucky cells", "gate alone, no over-hard cells")
    found += [("gate alone", arm) for arm in alone if {arm, "gate alone"} <= set(arms)]
    return found + ([("coin", "no gate")] if {"coin", "no gate"} <= set(arms) else [])


def mechanism(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Per arm: shares of informative and of refused groups, steps skipped."""
    found: dict[str, Any] = {}
    for arm in dict.fromkeys(row["arm"] for row in rows if "groups" in row):
        mine = [row for row in rows if row["arm"] == arm]
        shares = {
            name: [row["groups"].get(name, 0) / row["groups"]["groups"] for row in mine] for name in ("teach", "refused")
        }
        found[arm] = {name: float(np.mean(values)) for name, values in shares.items()}
        found[arm]["skipped"] = float(np.mean([row["groups"].get("skipped", 0) for row in mine]))
    return found


def goals_of(figures: Mapping[str, Any]) -> list[Goal]:
    """Refusing must be worth something where it is meant to be, and cost nothing elsewhere.

    Those on lucky and over-hard cells were fixed after the first run, those on the coin after the second, before this one.
    """
    wanted = [(pool, f"default - {reference}", 0.0) for pool in POOLS for reference in REFERENCES]
    wanted += [(pool, "default - no gate", 0.0) for pool in ("hard", "half rate", "unlabelled", "blind")]
    wanted += [(pool, "default - no lucky cells", 0.0) for pool in ("unlabelled", "blind")]
    wanted += [("unlabelled", "default - no over-hard cells", 0.0), ("partial", "default - no lucky cells", -0.02)]
    wanted += [("partial", "default - no gate", -0.02), ("medium", "default - no gate", -0.02)]
    wanted += [("unlabelled", "default - coin", 0.0), ("hard", "gate alone - coin", 0.0)]
    found = []
    for pool, pair, least in wanted:
        shown = figures[pool]["outcome"].get(pair)
        if shown is not None:
            value = outcome.interval_of(shown)
            found.append(Goal(f"{pool}: {pair}, greedy success, all levels", value, f"> {least:g}", value.low > least))
    return found


def measure(quick: bool) -> Result:
    """All pools and arms; the headline is the default plan against not training, over-hard pool."""
    seeds = QUICK if quick else sorted({seed for world in POOLS.values() for seed in world.seeds})
    run_in_processes(base, seeds)
    chosen = {pool: [arm for arm in world.arms if not quick or arm in QUICK_ARMS] for pool, world in POOLS.items()}
    jobs = [
        Job(pool, arm, seed)
        for seed in seeds
        for pool, arms in chosen.items()
        for arm in arms
        if quick or seed in POOLS[pool].seeds
    ]
    rows = run_in_processes(run_job, jobs, say="run")
    figures: dict[str, Any] = {}
    for pool, arms in chosen.items():
        mine, scored = [row for row in rows if row["pool"] == pool], held_out(pool)
        shown = outcome.differences(mine, scored, pairs_of(arms))
        figures[pool] = {"outcome": shown, "means": outcome.means(mine, scored), "mechanism": mechanism(mine)}
        outcome.table(pool, shown, figures[pool]["means"])
    value = figures["hard"]["outcome"]["default - frozen"]
    settings = {
        "pools": to_data(dict(POOLS)),
        "steps": STEPS,
        "size": POOL_PROBLEMS,
        "students": {"able": asdict(ABLE), "lazy": asdict(LAZY)},
    }
    settings |= {"arms": {arm: asdict(guards) for arm, guards in ARMS.items()}, "held out": HELD_OUT_PER_LEVEL}
    unit = "greedy success over all held-out levels, the trainer's own plan minus not training, over-hard pool"
    return Result(outcome.interval_of(value), unit, seeds, rows, figures, to_data(settings), goals=goals_of(figures))


def base(seed: int) -> None:
    """Train the students of a seed; they stay on disk."""
    for recipe in (ABLE, LAZY):
        base_model(seed, recipe)


if __name__ == "__main__":
    run("overhard", __doc__, measure)
