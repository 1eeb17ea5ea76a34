"""Study of narrow SFT on a skill: SmolLM2-135M-Instruct learns the middle one of three numbers; what does that take away?

As `real_sft`, whose new task is a form, with another new task: 2,000 questions such as "Which of 12, 511 and 90 is neither
the largest nor the smallest?". In the search (`real_skills`, seed 3) sums of two-digit numbers gained most, 91 points, but
one of the protected tasks is sums; Roman numerals and minutes share numbers between training and test items. The middle
number gained 72 points over the start, and 40 over naming one of the three numbers. Every training is 80 steps of 16 rows
with LoRA. Arms: `frozen`, `narrow` with its scaled and early forms, `uniform`, `plan`, `own`; and, added after these were
seen, the mixes, shares and penalties that were added to `real_sft`, with what is expected there.

Expectations, written before the first seed that counts: the new task gains at least 20 points over a third, which naming
one of the numbers gives; `plan` keeps at least half of what `narrow` loses of the four tasks, the interval of their
difference has no 0, and the new task is at most five points lower at its interval's lower end. If `narrow` loses under five
points there is nothing to keep, and that is the result. In `real_sft` a quarter of the model's own answers kept 9.9 points
[5.7, 14.1] more of the four tasks than the plan's quarter of true rows, one of many readings; here it is a goal that it
keeps more, the interval without 0, at no more than five points of the new task at its interval's end.

Finished rows are kept, all answers with them, in `real_skill_sft.rows.jsonl`, and a run that was stopped goes on; on an
accelerator `real_device` makes rows. Weights are Q4_1, dequantised.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_skill_sft [--quick] [--report]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright_lab.conditions import conditions, device
from mixwright_lab.studies.everyday import HALF_KNOWN
from mixwright_lab.studies.jobs import append_row, read_rows, rows_by_seed, run_in_processes
from mixwright_lab.studies.real_models import (
    ARMS_OF_JOB,
    BLENDS,
    FROZEN,
    MIDDLE_NUMBER,
    NARROW,
    OWN,
    PENALTIES,
    PLAN,
    SHARES,
    UNIFORM,
    PublicPlace,
    RealModels,
    settings,
)
from mixwright_lab.studies.real_sft import (
    CURVES,
    GROUPS,
    MOST_NEW_LOSS,
    NEW,
    QUICK,
    SFTJob,
    difference_at_equal_success,
    goals_of,
    mean_success,
    readings,
    share_left,
    success,
    table,
)
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

SEEDS = (421, 439, 457, 479, 499)
GATE_SEEDS = (613, 631)
"""Further seeds, for `real_branches` alone, with further items measured."""
ROWS_FILE = RESULTS / "real_skill_sft.rows.jsonl"
PLACE = Path("runs") / "real_skill_sft"
LATER = (*BLENDS, *SHARES, *PENALTIES)
"""Arms that were added after the others were seen."""
JOBS: Mapping[str, tuple[str, ...]] = {
    FROZEN: (FROZEN,),
    **{arm: ARMS_OF_JOB[arm] for arm in (NARROW, PLAN, UNIFORM, OWN, *LATER)},
}
"""Job -> models that it measures, which share one training."""
GUESSED, LEAST_GAIN = 100 / 3, 20.0
"""Points of the new task that naming one of the three numbers gives, and what has to be gained over them."""


def do_job(job: SFTJob) -> None:
    """Train and measure, in a process with one thread; each measured model is a row."""
    place = PLACE / ("quick" if job.quick else f"seed-{job.seed}")
    public, truth = PublicPlace.from_environment(), job.seed in GATE_SEEDS
    models = RealModels(place, job.seed, public, truth=truth, quick=job.quick, task=MIDDLE_NUMBER)
    for arm in job.arms:
        began = time.monotonic()
        answers, remarks = models.measure(arm)
        row = {"seed": job.seed, "arm": arm, "settings": settings(MIDDLE_NUMBER), "commit": conditions()["commit"]}
        row |= {"device": device(), "seconds": round(time.monotonic() - began), "remarks": remarks, "answers": answers}
        append_row(place / "rows.jsonl" if job.quick else ROWS_FILE, row)


def kept_rows(seeds: Sequence[int] = SEEDS) -> list[dict[str, Any]]:
    """Finished rows of these settings and seeds."""
    return [row for row in read_rows(ROWS_FILE) if row["settings"] == settings(MIDDLE_NUMBER) and row["seed"] in seeds]


def jobs_left(quick: bool, seeds: Sequence[int] = SEEDS) -> list[SFTJob]:
    """Trainings that have no row yet, seed after seed."""
    known = set() if quick else {(row["seed"], row["arm"]) for row in kept_rows(seeds)}
    return [
        SFTJob(seed, name, left, quick)
        for seed in (QUICK if quick else seeds)
        for name, arms in JOBS.items()
        if (left := tuple(arm for arm in arms if (seed, arm) not in known))
    ]


def figures_of(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Means with intervals over seeds: each arm's tasks, the plan less it, and the plan less each curve."""
    arms = [arm for of_job in JOBS.values() for arm in of_job if all(arm in row for row in by_seed.values())]
    if len(by_seed) < 2 or PLAN not in arms:
        return {"seeds": len(by_seed)}
    found: dict[str, Any] = {}
    for arm in arms:
        rows = [(row[PLAN], row[arm]) for row in by_seed.values()]
        found[arm] = {name: rounded([mean_success(row, tasks) for _, row in rows]) for name, tasks in readings().items()}
        found[arm]["rehearsed, no task above its start"] = share_left(by_seed.values(), arm)
        for name, tasks in ({NEW: (NEW,)} | GROUPS).items():
            less = [mean_success(plan, tasks) - mean_success(row, tasks) for plan, row in rows]
            found[arm][f"{name}, plan less this"] = rounded(less)
    for name, curve in CURVES.items():
        if set(curve) <= set(arms):
            found[name] = {
                "rehearsed, plan less this at equal success": rounded(
                    [difference_at_equal_success(row, curve) for row in by_seed.values()]
                )
            }
    return found


def own_goals(by_seed: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> list[Goal]:
    """Own answers against the plan's true rows: more kept, and as much learnt."""
    pairs = [(arms[OWN], arms[PLAN]) for arms in by_seed.values() if {OWN, PLAN} <= set(arms)]
    kept = interval([mean_success(own, tuple(HALF_KNOWN)) - mean_success(plan, tuple(HALF_KNOWN)) for own, plan in pairs])
    new = interval([success(own, NEW) - success(plan, NEW) for own, plan in pairs])
    return [
        Goal("own answers less plan on the rehearsed tasks, points", kept, "low > 0", kept.low > 0),
        Goal("own answers less plan on the new task, points", new, f"low >= {-MOST_NEW_LOSS:g}", new.low >= -MOST_NEW_LOSS),
    ]


def gain_goal(rows: Sequence[Mapping[str, Any]]) -> Goal:
    """What the new rows taught, over naming one of the three numbers."""
    gain = interval([success(row, NEW) - GUESSED for row in rows])
    return Goal("new task over naming one number, points", gain, f">= {LEAST_GAIN:g}", gain.value >= LEAST_GAIN)


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left."""
    path = PLACE / "quick" / "rows.jsonl" if quick else ROWS_FILE
    if quick:
        path.unlink(missing_ok=True)
    run_in_processes(do_job, jobs_left(quick) if begin else [], say="training")
    rows = read_rows(path) if quick else kept_rows()
    by_seed = rows_by_seed(rows)
    print(table(by_seed), file=sys.stderr, flush=True)
    narrow = [arms[NARROW] for arms in by_seed.values() if NARROW in arms]
    goals = goals_of(by_seed) + ([gain_goal(narrow), *own_goals(by_seed)] if len(narrow) > 1 else [])
    short = [{name: value for name, value in row.items() if name not in ("answers", "settings")} for row in rows]
    unit = "points that SFT on the new skill alone loses of the four tasks"
    about = settings(MIDDLE_NUMBER) | {"answers": ROWS_FILE.name, "public files": PublicPlace.from_environment().digests()}
    return Result(goals[0].found, unit, QUICK if quick else SEEDS, short, figures_of(by_seed), about, goals=goals)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    run("real_skill_sft", __doc__, measure, kept=True)
