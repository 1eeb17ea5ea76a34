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
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mixwright.estimates.intervals import jackknife
from mixwright.records import Example, Interval, to_data
from mixwright_lab.studies import outcome
from mixwright_lab.studies._unlabelled_pools import GUARDED, POOLS, SEEDS, TAUGHT, TRAP, Job, Row, bases, held_out, trained
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.rollouts import packed
from mixwright_lab.studies.rows import resumed
from mixwright_lab.workers import run_in_processes

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
