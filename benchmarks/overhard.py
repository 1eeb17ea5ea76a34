"""What over-hard problems cost a model that could do easier ones, and how much of that each guard keeps.

A tiny GPT that does chains of 1 to 6 operations (a fifth of its answers given at once) is trained by GRPO, 80 steps of 12 x 8
rollouts at a high learning rate, on a pool in which 90 % of the problems are out of reach (8 operations, luck 1/16) and 10 %
are not (3 to 6 operations). All arms have the same pool and, but for anchors, replay and the `difficulty` selector, draw by
the pool's own shares. `loss` is what success on held-out problems of 1 to 4 operations (easy) and of 5 and 6 (medium), sampled
at temperature 1, has fallen by after the last step; `kept` is 1 - loss(guard) / loss(unguarded) over seeds, paired by seed.
Pools: `hard`; `biased`, whose hard answers are 0 in 15 % of cases, a shortcut; `medium`, 5 and 6 operations only, where a
guard must cost nothing. Rollouts of canaries and of the measurement that a plan rests on are charged and listed.

    python -m benchmarks.overhard [--quick]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from benchmarks._report import Result, interval, run

# isort: split
import numpy as np

from benchmarks.peers._arena import Arena, Settings
from benchmarks.peers._base import Recipe, base_model
from benchmarks.peers._rules import Engined, distinct, drive, pool_of
from benchmarks.peers._workers import spread
from mixwright.measure._estimates import clustered_share
from mixwright.plan._states import classify
from mixwright.records import CellPlan, Example, Plan, Stage
from mixwright_lab.worlds.chain import MODULUS, Chain

STEPS, SEEDS, QUICK = 80, (0, 1, 2, 3, 4), (0, 1)
HARD = 8
SIZE = 4000
"""Problems of a pool."""
PROBED = 8
"""Problems per level that a measured plan rests on, with a group of rollouts each."""
SETTINGS = Settings(rate=1e-3)
RECIPE = Recipe()
POOLS: Mapping[str, tuple[Mapping[int, float], float]] = {
    "hard": ({HARD: 0.98, 3: 0.005, 4: 0.005, 5: 0.005, 6: 0.005}, 0.0),
    "biased": ({HARD: 0.98, 3: 0.005, 4: 0.005, 5: 0.005, 6: 0.005}, 0.15),
    "medium": ({5: 0.5, 6: 0.5}, 0.0),
}
"""Name -> share of problems per number of operations, and share of hard answers made 0."""


@dataclass(frozen=True)
class Guards:
    """What one arm does against damage; nothing by default."""

    stage: Mapping[str, Any] = field(default_factory=dict)
    """Plug-ins of the stage."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Options of the engine; survivors are off unless named."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of plug-ins."""
    beta: float = 0.0
    """KL coefficient at the start."""
    rate: float = 1.0
    """Factor on the learning rate from the start."""
    measured: bool = True
    """Whether the plan knows what was measured before, which is charged."""
    permute: bool = False
    """Train on rewards permuted within groups."""


GATE, DRIFT, WATCH = {"gates": ("too_hard",)}, {"controllers": ("drift",)}, {"monitors": ("canary",)}
REPLAY = {"replay": 0.25, "replay_steps": 20}
ALL = Guards(GATE | DRIFT | WATCH, REPLAY | {"survivors": 0.25, "anchor": 0.25}, beta=0.01)
ARMS: Mapping[str, Guards] = {
    "unguarded": Guards(measured=False),
    "permuted": Guards(measured=False, permute=True),
    "too_hard": Guards(GATE),
    "too_hard+survivors": Guards(GATE, {"survivors": 0.25}),
    "anchor": Guards(engine={"anchor": 0.25}),
    "drift": Guards(DRIFT, beta=0.01, measured=False),
    "drift, beta 0": Guards(DRIFT | {"monitors": ("canary",)}, {"on_alarm": "log"}),
    "canary": Guards(WATCH, REPLAY, beta=0.01),
    "canary, beta 0": Guards(WATCH, REPLAY),
    "lower rate": Guards(rate=0.2, measured=False),
    "fixed beta": Guards(beta=0.1, measured=False),
    "all": ALL,
    "all, beta 0": replace(ALL, beta=0.0),
    "all, nothing measured": replace(ALL, measured=False),
    "all + difficulty": replace(ALL, stage=ALL.stage | {"selector": "difficulty"}),
}
SHORT = ("unguarded", "too_hard+survivors", "anchor", "drift", "canary", "all", "all, beta 0", "all, nothing measured")
PLAN: Mapping[str, Sequence[str]] = {"hard": tuple(ARMS), "biased": SHORT, "medium": ("unguarded", "all", "all, beta 0")}


@dataclass(frozen=True)
class Job:
    """One run."""

    pool: str
    arm: str
    guards: Guards
    seed: int
    steps: int = STEPS


def examples_of(pool: str, seed: int) -> list[Example]:
    """The pool of a seed: each problem once."""
    shares, bias = POOLS[pool]
    worlds, found = {True: Chain(bias=bias), False: Chain()}, []
    for level, share in shares.items():
        made = (worlds[level == HARD].make(seed * 100_000 + i, level, "train") for i in range(2 * SIZE))
        found += distinct(list(made))[: round(share * SIZE)]
    return found


def lucks(examples: Sequence[Example]) -> dict[float, float]:
    """Luck per level: the larger of blind choice and the commonest answer's share."""
    answers: dict[float, Counter[str]] = {}
    for example in examples:
        answers.setdefault(float(example.level or 0), Counter())[str(example.answer)] += 1
    return {level: max(1 / MODULUS, max(c.values()) / c.total() if c.total() > 200 else 0) for level, c in answers.items()}


def probe(arena: Arena, luck: Mapping[float, float], group: int) -> tuple[CellPlan, ...]:
    """What the model can do per level, from a few groups each; charged."""
    cells = []
    for level, chance in sorted(luck.items()):
        here = [number for number, example in enumerate(arena.examples) if example.level == level]
        rewards = arena.roll(here[:PROBED], group).rewards
        share = clustered_share(rewards.mean(1), group)
        state = classify(share.value, share.low, share.high, chance, rewards.size)
        cells.append(CellPlan("chain", level, state, share.value, chance, rewards.size, len(here), share.low, share.high))
    return tuple(cells)


def rule_of(arena: Arena, guards: Guards, seed: int) -> Engined:
    """The engine with an arm's guards."""
    luck = lucks(arena.examples)
    cells = probe(arena, luck, arena.settings.group) if guards.measured else ()
    options = {"engine": {"survivors": 0.0, **guards.engine}, **guards.options}
    stage = Stage("training", "grpo", STEPS, {"chain": 1.0}, options=options, **guards.stage)
    pool = pool_of(arena.examples, lambda example: luck[float(example.level or 0)])
    return Engined(Plan("hand", (stage,), cells), pool, seed)


def work(job: Job) -> dict[str, Any]:
    """One run: what was seen at the start, half way and at the end."""
    guards = job.guards
    settings = replace(SETTINGS, beta=guards.beta, rate=SETTINGS.rate * guards.rate, permute=guards.permute)
    arena = Arena(examples_of(job.pool, job.seed), base_model(job.seed, RECIPE), settings, job.seed)
    worlds = Chain(), Chain(bias=POOLS[job.pool][1])
    easy, medium = ([worlds[0].make(i, n, "eval") for n in levels for i in range(40)] for levels in ((1, 2, 3, 4), (5, 6)))
    hard = [worlds[1].make(i, HARD, "eval") for i in range(80)]

    def look(arena: Arena) -> dict[str, float]:
        rolls = {name: arena.look(part) for name, part in (("easy", easy), ("medium", medium), ("hard", hard))}
        seen = {name: float(rolled.rewards.mean()) for name, rolled in rolls.items()}
        for name in ("easy", "hard"):
            given = Counter(answer for group in rolls[name].answers for answer in group)
            seen[f"top answer, {name}"] = given.most_common(1)[0][1] / given.total()
        styles = Counter(style for group in rolls["easy"].formats for style in group)
        return seen | {
            "given at once": styles["direct"] / styles.total(),
            "kl per answer": float(arena.drift(rolls["easy"]).mean()),
        }

    rule = rule_of(arena, guards, job.seed)
    probed = arena.charged
    seen = [look(arena)]
    for step in range(1, job.steps + 1):
        rule.step(arena)
        if step in (job.steps // 2, job.steps):
            seen.append(look(arena))
    kinds = Counter(d.what.partition(".")[0] for d in rule.decisions)
    made = {"measuring": probed, "canaries": arena.charged - probed - job.steps * SETTINGS.prompts * SETTINGS.group}
    return {
        "pool": job.pool,
        "arm": job.arm,
        "seed": job.seed,
        "charged": arena.charged,
        **made,
        "seen": seen,
        "groups": dict(rule.totals),
        "decisions": dict(kinds),
    }
