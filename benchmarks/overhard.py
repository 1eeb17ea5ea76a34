"""What over-hard problems cost a model that could do easier ones, and how much of that each guard keeps.

A tiny GPT that does chains of 1 to 6 operations (a fifth of its answers given at once) is trained by GRPO, 80 steps of
12 x 8 rollouts at a high learning rate. Pools of 4,000 problems, the same for all arms of a seed:
hard: 98 % out of reach (8 operations, chance level 1/16), 2 % not (3 to 6 operations, 20 problems each).
biased: the same, but 15 % of the hard problems have the answer 0, a shortcut that can be guessed.
unlabelled: the same as hard without levels, so that nothing tells the hard rows from the others.
medium: 5 and 6 operations only, where a guard must cost nothing.
But for anchors, replay and the selector `difficulty`, every arm draws by the pool's own shares. `loss` is what success on
held-out problems of 1 to 6 operations, sampled at temperature 1, has fallen by after the last step (mean over levels; 1 to 4
and 5 to 6 are listed too); `kept` is 1 - loss(guard) / loss(unguarded), paired by seed, over 1 where a guarded run gains.
Rollouts of canaries and of the measurement that a plan rests on are charged on top of the 7,680 of training, and listed.

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
from benchmarks.peers._rules import Engined, cell_plan, distinct, pool_of
from benchmarks.peers._workers import spread
from mixwright.estimates.cell_states import BAND
from mixwright.estimates.intervals import clustered_share
from mixwright.records import Cell, CellPlan, Example, Plan, Stage
from mixwright.trainers._steering import default_plan
from mixwright_lab.worlds.chain import MODULUS, Chain

STEPS, SEEDS, QUICK = 80, (0, 1, 2, 3, 4), (0, 1)
HARD = 8
SIZE = 4000
"""Problems of a pool."""
PROBED = 8
"""Problems per level that a measured plan rests on, with a group of rollouts each."""
SETTINGS = Settings(rate=1e-3)
RECIPE = Recipe()
MOSTLY_HARD = {HARD: 0.98, 3: 0.005, 4: 0.005, 5: 0.005, 6: 0.005}
POOLS: Mapping[str, tuple[Mapping[int, float], float]] = {
    "hard": (MOSTLY_HARD, 0.0),
    "biased": (MOSTLY_HARD, 0.15),
    "unlabelled": (MOSTLY_HARD, 0.0),
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
    every: int = 20
    """Steps between canary passes."""
    measured: bool = True
    """Whether the plan knows what was measured before, which is charged."""
    permute: bool = False
    """Train on rewards permuted within groups."""
    default: bool = False
    """The plan that a trainer makes where none is given."""


GATE, DRIFT, WATCH = {"gates": ("too_hard",)}, {"controllers": ("drift",)}, {"monitors": ("canary",)}
REPLAY, SURVIVE = {"replay": 0.25}, {"survivors": 0.25}
ALL = Guards(GATE | DRIFT | WATCH, REPLAY | SURVIVE | {"anchor": 0.25}, beta=0.01, every=5)
ARMS: Mapping[str, Guards] = {
    "unguarded": Guards(measured=False),
    "permuted": Guards(measured=False, permute=True),
    "lower rate": Guards(rate=0.2, measured=False),
    "too_hard": Guards(GATE),
    "too_hard + survivors": Guards(GATE, SURVIVE),
    "anchor": Guards(engine={"anchor": 0.25}),
    "drift": Guards(DRIFT, beta=0.01, measured=False),
    "drift, beta 0": Guards(DRIFT | WATCH, {"on_alarm": "log"}, every=5),
    "canary": Guards(WATCH, REPLAY, beta=0.01, every=5),
    "canary, no replay": Guards(WATCH, beta=0.01, every=5),
    "all": ALL,
    "default": Guards(default=True, measured=False, every=5),
}
PLAN: Mapping[str, Sequence[str]] = {
    "hard": tuple(ARMS),
    "biased": ("unguarded", "all"),
    "unlabelled": ("unguarded", "all"),
    "medium": ("unguarded", "lower rate", "all", "default"),
}
"""Arms per pool."""
QUICK_PLAN = {"hard": ("unguarded", "permuted", "too_hard + survivors", "drift", "all"), "medium": ("unguarded", "all")}


@dataclass(frozen=True)
class Job:
    """One run."""

    pool: str
    arm: str
    seed: int
    steps: int = STEPS


def examples_of(pool: str, seed: int) -> list[Example]:
    """The pool of a seed: each problem once."""
    shares, bias = POOLS[pool]
    worlds, found = {True: Chain(bias=bias), False: Chain()}, []
    for level, share in shares.items():
        count = round(share * SIZE)
        made = [worlds[level == HARD].make(seed * 100_000 + i, level, "train") for i in range(2 * count)]
        found += distinct(made)[:count]
    return [replace(example, level=None) for example in found] if pool == "unlabelled" else found


def chances(examples: Sequence[Example]) -> dict[float | None, float]:
    """Chance level of each level: the larger of blind choice and, in levels of many rows, the commonest answer's share."""
    answers: dict[float | None, Counter[str]] = {}
    for example in examples:
        answers.setdefault(example.level, Counter())[str(example.answer)] += 1
    common = {level: max(c.values()) / c.total() if c.total() > 200 else 0.0 for level, c in answers.items()}
    return {level: max(1 / MODULUS, share) for level, share in common.items()}


def probe(arena: Arena, known: Mapping[float | None, float], group: int) -> tuple[CellPlan, ...]:
    """What the model can do per level, from a few groups each; charged."""
    cells, rng = [], np.random.default_rng(arena.settings.group)
    for level, chance in known.items():
        here = [number for number, example in enumerate(arena.examples) if example.level == level]
        rolled = arena.roll(rng.choice(here, PROBED, replace=False).tolist(), group)
        share = clustered_share(rolled.rewards.mean(1), group)
        cells.append(cell_plan(Cell("chain", level, len(here), chance), rolled, share, BAND))
    return tuple(cells)


def rule_of(arena: Arena, guards: Guards, seed: int) -> Engined:
    """The engine with an arm's guards."""
    known = chances(arena.examples)
    cells = probe(arena, known, arena.settings.group) if guards.measured else ()
    pool = pool_of(arena.examples, lambda example: known[example.level])
    options = {"engine": {"survivors": 0.0, **guards.engine}, **guards.options}
    stage = Stage("training", "grpo", STEPS, {"chain": 1.0}, options=options, **guards.stage)
    plan = default_plan(pool, "grpo", STEPS) if guards.default else Plan("hand", (stage,), cells)
    return Engined(plan, pool, seed, canary_every=guards.every)


def work(job: Job) -> dict[str, Any]:
    """One run: what was seen at the start and at the end."""
    guards = ARMS[job.arm]
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
    for _ in range(job.steps):
        rule.step(arena)
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


def success(seen: Mapping[str, float]) -> float:
    """Mean over 1 to 6 operations."""
    return (4 * seen["easy"] + 2 * seen["medium"]) / 6


def lost(row: Mapping[str, Any]) -> float:
    """What success has fallen by."""
    return success(row["seen"][0]) - success(row["seen"][-1])


def told(rows: Sequence[dict[str, Any]], plain: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of one arm in one pool, against the unguarded rows of the same seeds."""
    pairs, last = list(zip(rows, plain, strict=True)), [row["seen"][-1] for row in rows]
    figures = {
        "loss": asdict(interval([lost(row) for row in rows])),
        "kept": asdict(interval([1 - lost(row) / lost(other) for row, other in pairs])) if lost_enough(plain) else None,
        "success against unguarded": asdict(
            interval([success(row["seen"][-1]) - success(other["seen"][-1]) for row, other in pairs])
        ),
        "loss of 1 to 4, 5 to 6": [
            fmean(row["seen"][0][n] - row["seen"][-1][n] for row in rows) for n in ("easy", "medium")
        ],
        **{name: fmean(seen[name] for seen in last) for name in list(last[0])[3:]},
        "groups that teach": fmean(row["groups"]["teach"] / row["groups"]["groups"] for row in rows),
        "steps skipped": fmean(row["groups"].get("skipped", 0) for row in rows),
    }
    return figures | {name: fmean(row[name] for row in rows) for name in ("charged", "measuring", "canaries")}


def lost_enough(plain: Sequence[dict[str, Any]]) -> bool:
    """Whether there is a loss to keep a share of: at least a tenth in every seed."""
    return min(lost(row) for row in plain) >= 0.1


def measure(quick: bool) -> Result:
    """All pools and arms."""
    seeds, chosen = (QUICK, QUICK_PLAN) if quick else (SEEDS, PLAN)
    for seed in seeds:  # once, so that no two workers teach the same one
        base_model(seed, RECIPE)
    jobs = [Job(pool, arm, seed) for seed in seeds for pool, arms in chosen.items() for arm in arms]
    rows = spread(work, jobs, say="run")
    figures: dict[str, Any] = {}
    for pool, arms in chosen.items():
        by_arm = {arm: [row for row in rows if (row["pool"], row["arm"]) == (pool, arm)] for arm in arms}
        figures[pool] = {arm: told(found, by_arm["unguarded"]) for arm, found in by_arm.items()}
    settings = {"run": asdict(SETTINGS), "steps": STEPS, "pools": {n: dict(p[0]) for n, p in POOLS.items()}, "size": SIZE}
    kept = [1 - lost(a) / lost(b) for a, b in zip(*(picked(rows, arm) for arm in ("all", "unguarded")), strict=True)]
    unit = "share of the loss on an over-hard pool that all guards keep; over 1: they gain"
    arms = {arm: asdict(guards) for arm, guards in ARMS.items()}
    return Result(interval(kept), unit, seeds, rows, figures, settings | {"recipe": asdict(RECIPE), "arms": arms})


def picked(rows: Sequence[dict[str, Any]], arm: str) -> list[dict[str, Any]]:
    """The rows of an arm in the hard pool, by seed."""
    return [row for row in rows if (row["pool"], row["arm"]) == ("hard", arm)]


if __name__ == "__main__":
    run("overhard", __doc__, measure)
