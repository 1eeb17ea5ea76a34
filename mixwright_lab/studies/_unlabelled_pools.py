"""Pools, arms and single runs of `unlabelled`: difficulty that nobody labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixwright import Pool
from mixwright.contracts import World
from mixwright.records import Example, Plan, Stage
from mixwright_lab.studies import outcome, overhard, rollouts
from mixwright_lab.studies.peers.linear import Linear
from mixwright_lab.studies.peers.refill import Refill
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
