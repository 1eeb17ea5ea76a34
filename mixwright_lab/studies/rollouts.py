"""Study of choosing problems: ours against not training, uniform draws, equal shares of the levels, and other rules.

One small student per seed goes on by GRPO on one of four pools. SFT from scratch has trained it on chains of up to 3
operations (right 98 % of the time) and partly on those of 4 to 6 (right 20 to 35 %: it mostly answers at once); 7 and 8 it
has never seen.

    wide     90 % of the problems lie outside the band: 45 % of 1 to 3 operations, 45 % of 7 or 8; 10 % of 4 to 6;
             19,200 rollouts, which are one pass of uniform draws
             (read at 1,920 rollouts, too, because greedy success reaches its ceiling soon)
    again    480 problems in the same shares and 19,200 rollouts: five passes
    in-band  4 to 6 operations only; 5,760 rollouts
    trap     40 % are of 8 operations and accept a random half of all answers: right half the time whatever the model does;
             30 % of 4 to 6 operations; 5,760 rollouts

The primary outcome is greedy success on all held-out problems, every level counted once, mastered and hopeless ones too
(`outcome.py`). All rollouts are charged, also those that were thrown away and the measurement that static_band
starts from; the oracle's knowledge alone is free. Ours is the difficulty selector alone with nothing measured before;
`default` is all that a trainer does when no plan is given. Labels of levels are true, shuffled over all problems, noisy (a
normal error of one level, rounded) or absent.

Rollouts to a target are a mechanism: the target of a seed is 90 % of what its oracle reaches on 4 to 6 operations (sampled,
mean of the looks at 5,280 to 5,760 rollouts); a run has reached it at the first look whose mean with the look before is at
or over it; a run that does not within 5,760 counts with these, and a ratio with it on top is a lower bound. Intervals are
not corrected for the number of comparisons. Seeds 40 to 59 were fixed before the run; pools and student were chosen on seeds
from 100 on. On seeds 20 to 39 it was decided that problems of a cell are drawn evenly (mixwright_lab/log.md, with
peers that throw rollouts away: filter and refill, screen, then commit). Of the traps no single answer is right, so a run
cannot tell from its answers that they do not depend on the prompt: its stated blind spot.

    python -m mixwright_lab.studies.rollouts [--quick]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mixwright import Pool, default_plan
from mixwright.records import Example, Plan, Stage, to_data
from mixwright_lab.studies import outcome
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.peers.spread import Spread
from mixwright_lab.studies.peers.target import Target
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Rollouts, Settings
from mixwright_lab.training.oracle import Oracle
from mixwright_lab.training.rules import EngineRule, Rule, UniformRule, drive, pool_of, unique_examples
from mixwright_lab.training.static_band import StaticBand
from mixwright_lab.worlds.chain import MODULUS, MOST_OPERATIONS, Chain

BASE = Recipe(plain=3, steps=600, styles=(("full", 0.3), ("direct", 0.7)))
"""Up to 3 operations are mastered; 4 to 6 it could work out, but mostly guesses at once; 7 and 8 were never seen."""
BAND = (0.1, 0.9)
WIDE_SHARES = {1: 0.05, 2: 0.2, 3: 0.2, 4: 0.035, 5: 0.035, 6: 0.03, 7: 0.225, 8: 0.225}
TRAP_LEVEL = 9
"""Level of the traps."""


@dataclass(frozen=True)
class Setting:
    """A pool, and what is run on it."""

    shares: Mapping[int, float]
    """Of problems, by level; level 9 are the traps."""
    arms: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Arms that are run on `FEW_SEEDS` seeds."""
    size: int = 2400
    """Problems; fewer of one operation, of which there are not so many."""
    budget: int = 5_760
    """Rollouts."""


POOLS = {
    "wide": Setting(
        WIDE_SHARES,
        (
            *("uniform", "equal shares", "ours", "default"),
            *("ours, shuffled", "ours, noisy", "equal shares, noisy", "ours, absent"),
        ),
        ("target", "static_band", "oracle"),
        budget=19_200,
    ),
    "again": Setting(WIDE_SHARES, (), ("uniform", "equal shares", "ours", "ours, absent"), size=480, budget=19_200),
    "in-band": Setting({4: 0.4, 5: 0.3, 6: 0.3}, (), ("uniform", "equal shares", "oracle", "ours")),
    "trap": Setting(
        {2: 0.1, 3: 0.1, 4: 0.1, 5: 0.1, 6: 0.1, 7: 0.05, 8: 0.05, TRAP_LEVEL: 0.4},
        (),
        ("uniform", "equal shares", "spread", "oracle", "ours"),
    ),
}
MASTERED, SCORED = (1, 2, 3), (4, 5, 6)
"""Levels that the student had mastered; levels of the target."""
HELD_OUT_PER_LEVEL = 40
"""Held-out problems per level."""
EARLY_ROLLOUTS, WATCHED_ROLLOUTS = 1_920, 5_760
"""Rollouts at which the outcome of longer runs is read, too; within which the target must be reached."""
ROLLOUTS_BETWEEN_LOOKS = 240
"""Rollouts between two looks at the target; ten times as many later."""
SEEDS = tuple(range(40, 60))
FEW_SEEDS = SEEDS[:10]
TARGET_SHARE = 0.9
"""Of the oracle's accuracy: the target."""
SELECTORS = {"ours": "difficulty", "equal shares": "equal_levels"}
Row = dict[str, Any]


def problems(kind: str, seed: int) -> list[Example]:
    """The pool of a seed, shuffled."""
    setting, rng, world, found = POOLS[kind], np.random.default_rng((seed, 7)), Chain(), []
    for level, share in setting.shares.items():
        start = int(rng.integers(2**30))
        made = [
            world.make(start + index, min(level, MOST_OPERATIONS), "train") for index in range(round(share * setting.size))
        ]
        found += [trapped(example, rng) for example in made] if level == TRAP_LEVEL else made
    found = unique_examples(found)
    return [found[index] for index in rng.permutation(len(found))]


def trapped(example: Example, rng: np.random.Generator) -> Example:
    """The problem with 7 to 9 of the 16 answers accepted, drawn at random: guessing is right half the time."""
    accepted = rng.permutation(MODULUS)[: int(rng.integers(7, 10))]
    answers = tuple(sorted(str(answer) for answer in accepted.tolist()))
    extra = {**example.extra, "accepted": answers}
    return replace(example, id=f"trap:{example.id}", level=float(TRAP_LEVEL), answer=answers[0], extra=extra)


def labelled(examples: Sequence[Example], labels: str, seed: int) -> list[Example]:
    """The problems with other levels: "" leaves them, "shuffled", "noisy" or "absent"."""
    rng = np.random.default_rng((seed, 8))
    levels = np.array([example.level for example in examples], dtype=float)
    if labels == "shuffled":
        levels = rng.permutation(levels)
    if labels == "noisy":
        levels = np.clip(np.rint(levels + rng.normal(size=len(levels))), 1, MOST_OPERATIONS)
    given = [None] * len(levels) if labels == "absent" else levels.tolist()
    return [replace(example, level=level) for example, level in zip(examples, given, strict=True)]


def chance(example: Example) -> float:
    """Level of the example's cell."""
    return 0.5 if example.level == TRAP_LEVEL else 1 / MODULUS


def held_out(kind: str) -> list[Example]:
    """Problems that the outcome is about: all levels, and traps where the pool has some."""
    found = outcome.held_out(range(1, MOST_OPERATIONS + 1), HELD_OUT_PER_LEVEL, Chain().make)
    if TRAP_LEVEL in POOLS[kind].shares:
        rng, start = np.random.default_rng(9), 10_000  # other problems than those of level 8
        found += [trapped(Chain().make(start + index, MOST_OPERATIONS, "eval"), rng) for index in range(HELD_OUT_PER_LEVEL)]
    return found


def rule_of(arm: str, arena: Arena, pool: Pool, seed: int) -> Rule:
    """The rule of an arm, its labels left out of the name."""
    if arm in ("oracle", "static_band"):
        return {"oracle": Oracle, "static_band": StaticBand}[arm](pool, BAND, seed)
    if arm in ("spread", "target"):
        return {"spread": Spread, "target": Target}[arm](pool, seed)
    if arm == "uniform":
        return UniformRule(len(arena.examples), seed)
    if arm == "default":
        return EngineRule(default_plan(pool, "grpo", 1000, kl_penalty=False), pool, seed)
    stage = Stage("training", "grpo", 1000, {"chain": 1.0}, BAND, selector=SELECTORS[arm])
    return EngineRule(Plan("rollouts", (stage,)), pool, seed)


class Counted(Arena):
    """Counts the rollouts of traps (True) and of everything else (False)."""

    def __init__(self, examples: Sequence[Example], model: GPT, settings: Settings, seed: int) -> None:
        super().__init__(examples, model, settings, seed)
        self.drawn = Counter[bool]()

    def roll(self, indices: Sequence[int], count: int, *, greedy: bool = False) -> Rollouts:
        """Rollouts, charged and counted."""
        for index in indices:
            self.drawn[self.examples[index].level == TRAP_LEVEL] += count
        return super().roll(indices, count, greedy=greedy)


@dataclass(frozen=True)
class Job:
    """One run."""

    pool: str
    arm: str
    seed: int
    budget: int


def trained(job: Job) -> Row:
    """One run, with what was seen on the way and every answer to the held-out problems at the end."""
    name, _, labels = job.arm.partition(", ")
    examples, scored = labelled(problems(job.pool, job.seed), labels, job.seed), held_out(job.pool)
    arena = Counted(examples, base_model(job.seed, BASE), Settings(), job.seed)
    made: Row = {"pool": job.pool, "arm": job.arm, "seed": job.seed}
    if name == "frozen":
        return made | {"charged": 0, "answers": outcome.answers(arena, scored)}
    rule = rule_of(name, arena, pool_of(examples, chance), job.seed)
    target = [example for example in scored if example.level in SCORED]

    def look(arena: Arena) -> Row:
        return {"accuracy": round(float(arena.look(target).rewards.mean()), 4)}

    seen: list[Row] = []
    for until, every in (
        (EARLY_ROLLOUTS, ROLLOUTS_BETWEEN_LOOKS),
        (WATCHED_ROLLOUTS, ROLLOUTS_BETWEEN_LOOKS),
        (job.budget, 10 * ROLLOUTS_BETWEEN_LOOKS),
    ):
        if until <= job.budget:
            seen += drive(arena, rule, until, every, look)[bool(seen) :]
        if until == EARLY_ROLLOUTS <= job.budget:
            made["early"] = outcome.answers(arena, scored)
    groups = max(1, rule.totals["groups"])
    books = {"steps": arena.steps, "charged": arena.charged, "teach": rule.totals["teach"] / groups}
    books |= {"refused": rule.totals["refused"] / groups, "trap_share": arena.drawn[True] / max(1, arena.drawn.total())}
    return made | books | {"answers": outcome.answers(arena, scored), "seen": seen}


def accuracy(row: Row) -> float:
    """Mean of the last three looks within the watched rollouts."""
    return float(np.mean([look["accuracy"] for look in _watched(row)[-3:]]))


def reached(row: Row, target: float) -> float | None:
    """Rollouts charged when the target was reached; None when it never was."""
    watched = _watched(row)
    for before, now in pairwise(watched):
        if (before["accuracy"] + now["accuracy"]) / 2 >= target:
            return float(now["charged"])
    return None


def _watched(row: Row) -> list[dict[str, float]]:
    """The looks within `WATCHED_ROLLOUTS` rollouts, the batch that reaches it included."""
    return [look for look in row["seen"] if look["charged"] < WATCHED_ROLLOUTS + ROLLOUTS_BETWEEN_LOOKS]


def ratio(rows: Sequence[Row], over: str, under: str) -> dict[str, Any]:
    """Geometric mean of rollouts of one arm over those of another, with its t interval on logs, and what was censored."""
    spent = {(row["arm"], row["seed"]): row["to_target"] for row in rows if "to_target" in row}
    seeds = sorted(seed for arm, seed in spent if arm == over and (under, seed) in spent)
    censored = {arm: sum(spent[arm, seed] is None for seed in seeds) for arm in (over, under)}
    value = interval(
        [math.log((spent[over, seed] or WATCHED_ROLLOUTS) / (spent[under, seed] or WATCHED_ROLLOUTS)) for seed in seeds]
    )
    ends = {name: math.exp(getattr(value, name)) for name in ("value", "low", "high")}
    return ends | {"seeds": len(seeds), "censored": censored, "lower bound": censored[over] > censored[under]}


def mechanism(rows: Sequence[Row]) -> dict[str, Any]:
    """Rollouts to the target and shares of groups, per arm; fills `to_target` of the rows where an oracle ran."""
    targets = {row["seed"]: TARGET_SHARE * accuracy(row) for row in rows if row["arm"] == "oracle"}
    for row in rows:
        if row["seed"] in targets and "seen" in row:
            row["to_target"] = reached(row, targets[row["seed"]])
    figures: dict[str, Any] = {}
    for arm in dict.fromkeys(row["arm"] for row in rows if "seen" in row):
        mine = [row for row in rows if row["arm"] == arm]
        figures[arm] = {name: float(np.mean([row[name] for row in mine])) for name in ("teach", "refused", "trap_share")}
        judged = [row["to_target"] for row in mine if "to_target" in row]
        if judged:
            figures[arm]["rollouts to target, geometric mean"] = float(
                np.exp(np.mean(np.log([n or WATCHED_ROLLOUTS for n in judged])))
            )
            figures[arm]["censored"] = judged.count(None)
            if arm != "ours":
                figures[arm]["rollouts over ours"] = ratio(rows, arm, "ours")
    return figures


def pairs_of(kind: str) -> list[tuple[str, str]]:
    """What is compared: every arm with the three references, ours with what it could do without, absent with even draws."""
    arms = [arm for arm in (*POOLS[kind].arms, *POOLS[kind].others) if arm not in outcome.REFERENCES]
    found = [(arm, reference) for arm in ("uniform", "equal shares", *arms) for reference in outcome.REFERENCES]
    found += [("ours", arm) for arm in arms if arm != "ours" and "ours" in arms]
    found += [("ours, noisy", "equal shares, noisy")] if "ours, noisy" in arms else []
    return [pair for pair in found if pair[0] != pair[1] and pair != ("uniform", "equal shares")]


def goals_of(figures: Mapping[str, Any]) -> list[Goal]:
    """Fixed before the run."""
    wanted = {
        "wide": (
            *(f"{arm} - {reference}" for arm in ("ours", "default") for reference in outcome.REFERENCES),
            *("ours, noisy - equal shares, noisy", "ours, absent - uniform"),
        ),
        "again": ("ours - equal shares", "ours, absent - uniform"),
        "trap": ("ours - uniform",),
        "in-band": ("ours - uniform",),
    }
    found = []
    for reading, when in (("outcome", "at the end"), ("early", f"at {EARLY_ROLLOUTS:,} rollouts")):
        for kind, pairs in wanted.items():
            for pair in pairs:
                value = outcome.interval_of(figures[kind][reading][pair])
                found.append(Goal(f"{kind}, {when}: {pair}, greedy success, all levels", value, "> 0", value.low > 0))
    return found


def measure(quick: bool) -> Result:
    """All arms on all pools; the headline is the outcome of ours against equal shares of the levels, on the wide pool."""
    run_in_processes(base, SEEDS[:2] if quick else SEEDS)
    jobs = []
    for kind, setting in POOLS.items():
        for arms, seeds in ((setting.arms, SEEDS), (setting.others, FEW_SEEDS)):
            seeds = seeds[:2] if quick else seeds
            arms = tuple(dict.fromkeys(("frozen", *arms))) if arms else ()
            budget = setting.budget // 5 if quick else setting.budget
            jobs += [Job(kind, arm, seed, budget) for seed in seeds for arm in arms]
    jobs = list(dict.fromkeys(jobs))
    rows = run_in_processes(trained, jobs, say="run")
    figures: dict[str, Any] = {}
    for kind in POOLS:
        mine, scored = [row for row in rows if row["pool"] == kind], held_out(kind)
        shown = outcome.differences(mine, scored, pairs_of(kind))
        figures[kind] = {"outcome": shown, "means": outcome.means(mine, scored), "mechanism": mechanism(mine)}
        outcome.table(kind, shown, figures[kind]["means"])
        early = outcome.differences(mine, scored, pairs_of(kind), column="early")
        kept = [pair for pair in pairs_of(kind) if pair[1] == "frozen"]
        figures[kind]["mastered"] = outcome.differences(mine, scored, kept, levels=MASTERED)
        figures[kind] |= {"early": early, "early means": outcome.means(mine, scored, column="early")}
        outcome.table(f"{kind}, at {EARLY_ROLLOUTS:,} rollouts", early, figures[kind]["early means"])
    value = outcome.interval_of(figures["wide"]["outcome"]["ours - equal shares"])
    settings = {"pools": {kind: to_data(setting) for kind, setting in POOLS.items()}, "band": BAND, "base": to_data(BASE)}
    settings |= {
        "held out": HELD_OUT_PER_LEVEL,
        "samples": outcome.SAMPLES,
        "share": TARGET_SHARE,
        "watched": WATCHED_ROLLOUTS,
    }
    unit = "greedy success over all held-out levels, ours minus equal shares of the levels, wide pool, one pass"
    return Result(value, unit, SEEDS, packed(rows), to_data(figures), to_data(settings), goals=goals_of(figures))


def packed(rows: Sequence[Row]) -> list[Row]:
    """The rows with their looks as one line of `charged:accuracy`."""
    looks = [" ".join(f"{look['charged']}:{look['accuracy']}" for look in row.get("seen", ())) for row in rows]
    return [row | ({"seen": seen} if seen else {}) for row, seen in zip(rows, looks, strict=True)]


def base(seed: int) -> None:
    """Train the base of a seed; it stays on disk."""
    base_model(seed, BASE)


if __name__ == "__main__":
    run("rollouts", __doc__, measure)
