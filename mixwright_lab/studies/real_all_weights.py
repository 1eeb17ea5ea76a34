"""Study of narrow SFT with all weights on SmolLM2-135M-Instruct: 300 steps, eight seeds, on an accelerator.

The files, arms and items of `real_sft`, whose trainings are 40 steps of LoRA. Here a training is 300 steps of 16 rows, 2.4
times the rows of the new task, at a rate of 1e-4 that falls to 0, and changes all weights. The rate was not tuned.
Arms: `frozen`, `narrow`, `uniform`, `plan` and `own`. The first five seeds are those of `real_sft`.

Expectations, written before the first seed: those of `real_sft` (`narrow` loses at least 5 points of the four rehearsed
tasks; `plan` keeps at least half of that, the interval of the difference without 0, at no more than 5 points of the new task
at its interval's lower end), and with own answers the mean of the four tasks does not fall by more than 5 points, at its
interval's lower end.

Finished rows are kept, all answers with them, in `real_all_weights.rows.jsonl`; trained models are deleted once they are
measured, for each has half a gigabyte. `real_device` makes rows on an accelerator, and nothing else does: a training takes
45 minutes of two cores. This command writes the result of the rows that are there.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_all_weights --report
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright_lab.conditions import conditions, device
from mixwright_lab.studies import real_sft
from mixwright_lab.studies.everyday import HALF_KNOWN
from mixwright_lab.studies.jobs import append_row, read_rows, rows_by_seed, run_in_processes
from mixwright_lab.studies.real_models import (
    FROZEN,
    NARROW,
    OWN,
    PLAN,
    TOOL_CALLS,
    TRAINING,
    UNIFORM,
    PublicPlace,
    RealModels,
    settings,
)
from mixwright_lab.studies.real_sft import QUICK, SFTJob, goals_of, mean_success, readings, share_left, table
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

SEEDS = (*real_sft.SEEDS, 211, 233, 257)
ROWS_FILE = RESULTS / "real_all_weights.rows.jsonl"
PLACE = Path("runs") / "real_all_weights"
TASK = replace(TOOL_CALLS, training=replace(TRAINING, steps=300, learning_rate=1e-4, rank=0))
ARMS = (NARROW, UNIFORM, PLAN, OWN, FROZEN)
MOST_LOST = 5.0
"""Points of the rehearsed tasks that own answers may cost."""


def do_job(job: SFTJob) -> None:
    """Train, measure, and delete the trained model."""
    place = PLACE / "-".join([f"seed-{job.seed}", job.name, *(["quick"] if job.quick else [])])
    models = RealModels(place, job.seed, PublicPlace.from_environment(), quick=job.quick, task=TASK)
    for arm in job.arms:
        began = time.monotonic()
        answers, remarks = models.measure(arm)
        row = {"seed": job.seed, "arm": arm, "settings": settings(TASK), "commit": conditions()["commit"]}
        row |= {"device": device(), "seconds": round(time.monotonic() - began), "remarks": remarks, "answers": answers}
        append_row(rows_file(job.quick), row)
        shutil.rmtree(place / "models", ignore_errors=True)


def rows_file(quick: bool) -> Path:
    """Where rows are kept."""
    return PLACE / "quick.jsonl" if quick else ROWS_FILE


def kept_rows(quick: bool = False) -> list[dict[str, Any]]:
    """Finished rows of these settings."""
    return [row for row in read_rows(rows_file(quick)) if row["settings"] == settings(TASK)]


def jobs_left(quick: bool) -> list[SFTJob]:
    """Trainings that have no row yet, seed after seed; the quick ones are always made anew."""
    known = set() if quick else {(row["seed"], row["arm"]) for row in kept_rows()}
    seeds = QUICK if quick else SEEDS
    return [SFTJob(seed, arm, (arm,), quick) for seed in seeds for arm in ARMS if (seed, arm) not in known]


def figures_of(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Means of each arm with intervals over the seeds that have all arms, and less all rows as they come and less before."""
    whole = [arms for arms in by_seed.values() if set(ARMS) <= set(arms)]
    if len(whole) < 2:
        return {"seeds with all arms": len(whole)}
    found: dict[str, Any] = {"seeds with all arms": len(whole)}
    for arm in ARMS:
        found[arm] = {name: rounded([mean_success(row[arm], tasks) for row in whole]) for name, tasks in readings().items()}
        found[arm]["rehearsed, no task above its start"] = share_left(whole, arm)
        for other, word in ((UNIFORM, "uniform"), (FROZEN, "before")):
            for name, tasks in readings().items():
                less = [mean_success(row[arm], tasks) - mean_success(row[other], tasks) for row in whole]
                found[arm][f"{name}, this less {word}"] = rounded(less)
    return found


def own_goal(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> Goal:
    """What own answers leave of the rehearsed tasks."""
    pairs = [(arms[OWN], arms[FROZEN]) for arms in by_seed.values() if {OWN, FROZEN} <= set(arms)]
    change = interval([mean_success(own, tuple(HALF_KNOWN)) - mean_success(old, tuple(HALF_KNOWN)) for own, old in pairs])
    goal = f"low >= {-MOST_LOST:g}"
    return Goal("own answers less before on the rehearsed tasks, points", change, goal, change.low >= -MOST_LOST)


def measure(quick: bool, begin: bool = True) -> Result:
    """The rows that are there; the quick ones are made."""
    if quick:
        rows_file(quick).unlink(missing_ok=True)
        run_in_processes(do_job, jobs_left(quick) if begin else [], say="training")
    rows = kept_rows(quick)
    by_seed = rows_by_seed(rows)
    print(table(by_seed), file=sys.stderr, flush=True)
    goals = goals_of(by_seed) + ([own_goal(by_seed)] if len(by_seed) > 1 else [])
    short = [{name: value for name, value in row.items() if name not in ("answers", "settings")} for row in rows]
    unit = "points that SFT of all weights on the new rows alone loses of the four tasks"
    about = settings(TASK) | {"answers": ROWS_FILE.name, "public files": PublicPlace.from_environment().digests()}
    return Result(goals[0].found, unit, QUICK if quick else SEEDS, short, figures_of(by_seed), about, goals=goals)


if __name__ == "__main__":
    run("real_all_weights", __doc__, measure, kept=True)
