"""Study of narrow SFT on SmolLM2-135M-Instruct: what it takes away, and what keeps it, at equal success on the new task.

The new task has 2,000 rows; four tasks that the model half knows (capitals, opposites, sums, products) have 60 rows each
and 100 test items each. Three public sets of short questions are in no training row: past tenses, plurals, and the
companies that make a product. Every training is 40 steps of 16 rows with LoRA on all linear layers and differs in its
rows alone, or in the one thing that the name of the arm says. Arms:

- `frozen`, and `prompted`: the best of five system messages, chosen on other rows, and no training;
- `narrow` (new rows only), its adapter times .25, .5 and .75, its adapter after 5, 10 and 20 steps, half and a fifth of the
  rate, a penalty on the divergence from the start: the rivals that rehearse nothing;
- `uniform` (all rows as they come: 10.7 % are old), `equal shares` (a fifth each), `plan` (`mixwright plan`, which is a
  quarter of true rows here), `own` (a quarter of the model's own answers to the same prompts), `self-made` (a quarter of
  prompts and answers that the model made), `chat` (a quarter of unrelated public chat rows: the null of rehearsal);
- a quarter of 60 true rows of one, two or four old tasks (drawn by the seed): variety at the same amount, read on the tasks
  that nobody rehearsed. No goal; added after the rows of the other arms were seen;
- an eighth each of two kinds of rows (true rows, own answers, chat), a tenth and a half of own answers, and a penalty of ten
  and a hundred times the weight. Added after all others were seen. Expected: true rows with own answers end at most five
  points under true rows alone on the old tasks, and above them on the tasks without rows; a penalty that keeps half of the
  old tasks keeps the new one from being learnt (under half of it right). Read with their intervals, and no goal.

Expectations, written before the first seed that counts: `plan` keeps at least half of what `narrow` loses of the four tasks,
the interval of their difference has no 0, and the new task is at most five points lower at its interval's lower end. If
`narrow` loses under five points there is nothing to keep, and that is the result. Whether scaling, stopping or chat rows do
as well is read at equal success on the new task, between the points of their curves.

Settings were chosen on seed 3. The arms of the primary question run first, for all seeds; then the harmless trainings that
the study of the gate needs; then the rivals. Two processes of one thread run at once; each finished row is kept, all answers
with it, in `real_sft.rows.jsonl`, and a run that was stopped goes on; on an accelerator `real_device` makes rows. Public
files are read from the folder that MIXWRIGHT_PUBLIC names (`mixwright_lab/studies/public_sets.py` says which). Weights are
Q4_1, dequantised.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_sft [--quick] [--report]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.conditions import conditions, device
from mixwright_lab.studies.everyday import HALF_KNOWN
from mixwright_lab.studies.jobs import append_row, read_rows, rows_by_seed, run_in_processes
from mixwright_lab.studies.public_sets import QUESTIONS
from mixwright_lab.studies.real_models import (
    ARMS_OF_JOB,
    CHAT,
    FROZEN,
    HARMLESS,
    NARROW,
    PLAN,
    PROMPTED,
    UNIFORM,
    PublicPlace,
    RealModels,
    settings,
)
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

SEEDS, QUICK = (101, 127, 149, 173, 197), (3,)
GATE_SEEDS = SEEDS[:2]
"""Seeds of which harmless trainings are made, too, and further items measured: the study of the gate rests on them."""
ROWS_FILE = RESULTS / "real_sft.rows.jsonl"
PLACE = Path("runs") / "real_sft"
NEW = "new"
UNREHEARSED = tuple(QUESTIONS)
GROUPS = {"rehearsed": tuple(HALF_KNOWN), "not rehearsed": UNREHEARSED, "all": (NEW, *HALF_KNOWN, *UNREHEARSED)}
"""Mean of tasks -> the tasks."""
FIRST_ARMS = (FROZEN, PROMPTED, NARROW, PLAN, CHAT, UNIFORM)
"""Arms of the primary question, made of every seed before any other arm is."""
LEAST_LOSS, LEAST_KEPT, MOST_NEW_LOSS = 5.0, 0.5, 5.0
"""Points that have to be lost; share of the loss that the plan keeps; points of the new task that it may cost."""


@dataclass(frozen=True)
class SFTJob:
    """One training and what is measured of it."""

    seed: int
    name: str
    """Key of `jobs_of` its seed."""
    arms: tuple[str, ...]
    """Models of it that are measured now."""
    quick: bool = False


def do_job(job: SFTJob) -> None:
    """Train and measure, in a process with one thread; each measured model is a row."""
    place = PLACE / ("quick" if job.quick else f"seed-{job.seed}")
    public, truth = PublicPlace.from_environment(), job.seed in GATE_SEEDS
    models = RealModels(place, job.seed, public, truth=truth, quick=job.quick)
    for arm in job.arms:
        began = time.monotonic()
        answers, remarks = models.measure(arm)
        row = {"seed": job.seed, "arm": arm, "settings": settings(), "commit": conditions()["commit"]}
        row["device"] = device()
        row |= {"seconds": round(time.monotonic() - began), "remarks": remarks, "answers": answers}
        append_row(place / "rows.jsonl" if job.quick else ROWS_FILE, row)


def jobs_of(seed: int) -> dict[str, tuple[str, ...]]:
    """Training -> the models that are measured of it; harmless ones come last, and for some seeds only."""
    return {**ARMS_OF_JOB, **({arm: (arm,) for arm in HARMLESS} if seed in GATE_SEEDS else {})}


def kept_rows() -> list[dict[str, Any]]:
    """Finished rows of these settings."""
    return [row for row in read_rows(ROWS_FILE) if row["settings"] == settings()]


def success(row: Mapping[str, Any], task: str) -> float:
    """Points of a task's test items, 0 to 100; answers are [task, item, score, completion, cut]."""
    scores = [answer[2] for answer in row["answers"] if answer[0] == task and answer[1].startswith("test")]
    return 100 * sum(scores) / len(scores)


def mean_success(row: Mapping[str, Any], tasks: Sequence[str]) -> float:
    """Mean over tasks, points."""
    return sum(success(row, task) for task in tasks) / len(tasks)


def kept_at(points: Sequence[tuple[float, float]], new: float) -> float:
    """Points kept on the curve through (new task, kept), at so much success on the new task; its ends beyond it."""
    import numpy as np

    ordered = sorted(points)
    return float(np.interp(new, [one for one, _ in ordered], [kept for _, kept in ordered]))


CURVES = {
    "adapter scaled": ("frozen", "narrow x 0.25", "narrow x 0.5", "narrow x 0.75", "narrow"),
    "stopped early": ("frozen", "narrow, 5 steps", "narrow, 10 steps", "narrow, 20 steps", "narrow"),
    "lower rate": ("frozen", "a fifth of the rate", "half the rate", "narrow"),
}
"""Rival without rehearsal -> arms that are its curve, from nothing to all of the new task."""


def figures_of(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Means with intervals over seeds that have the first arms: tasks of each arm that all of them have, and differences."""
    whole = {seed: arms for seed, arms in by_seed.items() if set(FIRST_ARMS) <= set(arms)}
    if len(whole) < 2:
        return {"seeds with the first arms": len(whole)}
    of_all = [arm for arm in every_arm() if all(arm in arms for arms in whole.values())]
    found: dict[str, Any] = {}
    for name in of_all:
        rows = [(arms[PLAN], arms[name]) for arms in whole.values()]
        found[name] = {
            reading: rounded([mean_success(row, tasks) for _, row in rows]) for reading, tasks in readings().items()
        }
        found[name]["rehearsed, no task above its start"] = share_left(whole.values(), name)
        for reading, tasks in ({NEW: (NEW,)} | GROUPS).items():
            less = [mean_success(plan, tasks) - mean_success(row, tasks) for plan, row in rows]
            found[name][f"{reading}, plan less this"] = rounded(less)
    for name, curve in CURVES.items():
        if not set(curve) <= set(of_all):
            continue
        found[name] = {
            "rehearsed, plan less this at equal success": rounded(
                [difference_at_equal_success(arms, curve) for arms in whole.values()]
            )
        }
    return found


def readings() -> dict[str, tuple[str, ...]]:
    """What a mean is taken of -> its tasks: each task, and each group of them."""
    return {task: (task,) for task in (NEW, *HALF_KNOWN, *UNREHEARSED)} | GROUPS


def difference_at_equal_success(arms: Mapping[str, Mapping[str, Any]], curve: Sequence[str]) -> float:
    """Points of the rehearsed tasks that the plan has more than a curve at the plan's success on the new task."""
    points = [(success(arms[arm], NEW), _kept(arms[arm])) for arm in curve]
    return _kept(arms[PLAN]) - kept_at(points, success(arms[PLAN], NEW))


def _kept(row: Mapping[str, Any]) -> float:
    return mean_success(row, tuple(HALF_KNOWN))


def kept_of_start(arms: Mapping[str, Mapping[str, Any]], name: str) -> float:
    """Percent of the start that is left where gains of one task do not hide losses of another."""
    kept = sum(min(success(arms[name], task), success(arms[FROZEN], task)) for task in HALF_KNOWN)
    return 100 * kept / sum(success(arms[FROZEN], task) for task in HALF_KNOWN)


def share_left(seeds: Iterable[Mapping[str, Mapping[str, Any]]], name: str) -> dict[str, float]:
    """Mean of `kept_of_start` over seeds with its interval, which ends at 100 %."""
    found = rounded([kept_of_start(arms, name) for arms in seeds])
    return found | {"high": min(found["high"], 100.0)}


def _share_kept(arms: Mapping[str, Mapping[str, Any]]) -> float:
    """What the plan has more than `narrow`, of what `narrow` lost; 0 where it lost nothing."""
    lost = _kept(arms["frozen"]) - _kept(arms["narrow"])
    return (_kept(arms["plan"]) - _kept(arms["narrow"])) / lost if lost > 0 else 0.0


def every_arm() -> tuple[str, ...]:
    """All arms, in the order in which they run."""
    return tuple(arm for arms in ARMS_OF_JOB.values() for arm in arms)


def goals_of(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> list[Goal]:
    """What was expected; on fewer than two seeds with these arms nothing can be said, and no goal is reached."""
    whole = [arms for arms in by_seed.values() if {"frozen", "narrow", "plan"} <= set(arms)]
    if len(whole) < 2:
        nothing = Interval(0.0, -100.0, 100.0, len(whole))
        return [Goal("narrow loses of the rehearsed tasks, points", nothing, f">= {LEAST_LOSS:g}", False)]
    lost = interval([_kept(arms["frozen"]) - _kept(arms["narrow"]) for arms in whole])
    gained = interval([_kept(arms["plan"]) - _kept(arms["narrow"]) for arms in whole])
    share = interval([_share_kept(arms) for arms in whole])
    new = interval([success(arms["plan"], NEW) - success(arms["narrow"], NEW) for arms in whole])
    return [
        Goal("narrow loses of the rehearsed tasks, points", lost, f">= {LEAST_LOSS:g}", lost.value >= LEAST_LOSS),
        Goal("plan less narrow on the rehearsed tasks, points", gained, "low > 0", gained.low > 0),
        Goal("share of the loss that the plan keeps", share, f">= {LEAST_KEPT:g}", share.value >= LEAST_KEPT),
        Goal("plan less narrow on the new task, points", new, f"low >= {-MOST_NEW_LOSS:g}", new.low >= -MOST_NEW_LOSS),
    ]


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left: the first arms of all seeds, then the harmless trainings, then the other arms."""
    seeds = QUICK if quick else SEEDS
    if quick:
        (PLACE / "quick" / "rows.jsonl").unlink(missing_ok=True)
    known = set() if quick else {(row["seed"], row["arm"]) for row in kept_rows()}
    for wave in (FIRST_ARMS, tuple(HARMLESS), every_arm()) if begin else ():
        jobs = [
            SFTJob(seed, name, left, quick)
            for seed in sorted(seeds, key=lambda seed: seed in GATE_SEEDS[1:])  # those take longest
            for name, arms in jobs_of(seed).items()
            if (left := tuple(arm for arm in arms if arm in wave and (seed, arm) not in known))
        ]
        run_in_processes(do_job, jobs, say="training")
        known |= {(job.seed, arm) for job in jobs for arm in job.arms}
    rows = read_rows(PLACE / "quick" / "rows.jsonl") if quick else kept_rows()
    by_seed = rows_by_seed(rows)
    print(table(by_seed), file=sys.stderr, flush=True)
    goals = goals_of(by_seed)
    short = [{name: value for name, value in row.items() if name not in ("answers", "settings")} for row in rows]
    unit = "points that SFT on the new rows alone loses of the four tasks"
    about = settings() | {"answers": ROWS_FILE.name, "public files": PublicPlace.from_environment().digests()}
    return Result(goals[0].found, unit, seeds, short, figures_of(by_seed), about, goals=goals)


def table(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> str:
    """Markdown: a line per arm, means over the seeds that have it, points."""
    tasks = (NEW, *HALF_KNOWN, *UNREHEARSED)
    lines = ["| arm | seeds | " + " | ".join(tasks) + " |", "|---" * (len(tasks) + 2) + "|"]
    for arm in (*every_arm(), *HARMLESS):
        own = [arms[arm] for arms in by_seed.values() if arm in arms]
        if own:
            cells = [f"{sum(success(row, task) for row in own) / len(own):.0f}" for task in tasks]
            lines.append(f"| {arm} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    run("real_sft", __doc__, measure, kept=True)
