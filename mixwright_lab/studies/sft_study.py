"""What the studies of narrow SFT share: rows that are kept, jobs that are left, readings, figures and the first goals.

A study teaches SmolLM2-135M-Instruct a new task on several seeds, by arms that `real_models` makes; each finished row is
kept with all answers in `NAME.rows.jsonl`, so that a run that was stopped goes on, and an accelerator may make rows, too.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.records import Interval
from mixwright_lab.studies.everyday import HALF_KNOWN
from mixwright_lab.studies.jobs import append_row, read_rows, row_of, rows_by_seed, run_in_processes, without_answers
from mixwright_lab.studies.public_sets import QUESTIONS
from mixwright_lab.studies.real_models import (
    FROZEN,
    NARROW,
    PLAN,
    TOOL_CALLS,
    NewTask,
    PublicPlace,
    RealModels,
    settings,
)
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded

QUICK = (3,)
NEW = "new"
UNREHEARSED = tuple(QUESTIONS)
GROUPS = {"rehearsed": tuple(HALF_KNOWN), "not rehearsed": UNREHEARSED, "all": (NEW, *HALF_KNOWN, *UNREHEARSED)}
"""Mean of tasks -> the tasks."""
READINGS: Mapping[str, tuple[str, ...]] = {task: (task,) for task in GROUPS["all"]} | GROUPS
"""Name of a mean -> its tasks: each task, and each group of them."""
LEAST_LOSS, LEAST_KEPT, MOST_NEW_LOSS = 5.0, 0.5, 5.0
"""Points that have to be lost; share of the loss that the plan keeps; points of the new task that it may cost."""
CURVES = {
    "adapter scaled": ("frozen", "narrow x 0.25", "narrow x 0.5", "narrow x 0.75", "narrow"),
    "stopped early": ("frozen", "narrow, 5 steps", "narrow, 10 steps", "narrow, 20 steps", "narrow"),
    "lower rate": ("frozen", "a fifth of the rate", "half the rate", "narrow"),
}
"""Rival without rehearsal -> arms that are its curve, from nothing to all of the new task."""
Arms = Mapping[str, Mapping[str, Any]]
"""Arm -> its row, of one seed."""


@dataclass(frozen=True)
class SFTJob:
    """One training and what is measured of it."""

    seed: int
    name: str
    """Key of the jobs of its seed."""
    arms: tuple[str, ...]
    """Models of it that are measured now."""
    quick: bool = False


@dataclass(frozen=True)
class SFTStudy:
    """Trainings of one new task on several seeds."""

    name: str
    """Of its module, and of the file of its rows."""
    seeds: tuple[int, ...]
    """Seeds that its result rests on."""
    jobs: Mapping[str, tuple[str, ...]]
    """Training -> the models that are measured of it."""
    first_arms: tuple[str, ...]
    """Arms that a seed must have to be in the figures."""
    gate_seeds: tuple[int, ...] = ()
    """Seeds of which further items are measured: the study of the gate rests on them."""
    gate_jobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Trainings of these seeds alone."""
    task: NewTask = TOOL_CALLS
    """What is taught."""
    deletes_models: bool = False
    """Whether a trained model is deleted once it is measured, since it has half a gigabyte."""

    @property
    def place(self) -> Path:
        """Folder of the models."""
        return Path("runs") / self.name

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms, in the order in which they run."""
        return tuple(arm for arms in self.jobs.values() for arm in arms)

    def rows_file(self, quick: bool) -> Path:
        """Where rows are kept."""
        return self.place / "quick.jsonl" if quick else RESULTS / f"{self.name}.rows.jsonl"

    def kept_rows(self, seeds: Sequence[int] | None = None, *, quick: bool = False) -> list[dict[str, Any]]:
        """Finished rows of these settings, of the study's seeds or of those named."""
        wanted = QUICK if quick else seeds or self.seeds
        rows = read_rows(self.rows_file(quick))
        return [row for row in rows if row["settings"] == settings(self.task) and row["seed"] in wanted]

    def jobs_of(self, seed: int) -> dict[str, tuple[str, ...]]:
        """Training -> the models that are measured of it; those of the gate come last."""
        return {**self.jobs, **(self.gate_jobs if seed in self.gate_seeds else {})}

    def jobs_left(
        self, quick: bool, seeds: Sequence[int] | None = None, arms: Collection[str] | None = None
    ) -> list[SFTJob]:
        """Trainings of these arms that have no row yet, seed after seed; the quick ones are always made anew."""
        known = set() if quick else {(row["seed"], row["arm"]) for row in self.kept_rows(seeds)}
        return [
            SFTJob(seed, name, left, quick)
            for seed in (QUICK if quick else seeds or self.seeds)
            for name, own in self.jobs_of(seed).items()
            if (left := tuple(arm for arm in own if (arms is None or arm in arms) and (seed, arm) not in known))
        ]

    def do_job(self, job: SFTJob) -> None:
        """Train and measure, in a process with one thread; each measured model is a row."""
        place = self.place / ("quick" if job.quick else f"seed-{job.seed}") / (job.name if self.deletes_models else "")
        truth = job.seed in self.gate_seeds
        models = RealModels(place, job.seed, PublicPlace.from_environment(), truth=truth, quick=job.quick, task=self.task)
        for arm in job.arms:
            began = time.monotonic()
            answers, remarks = models.measure(arm)
            row = {"seed": job.seed, "arm": arm, "settings": settings(self.task)} | row_of(began)
            append_row(self.rows_file(job.quick), row | {"remarks": remarks, "answers": answers})
            if self.deletes_models:
                shutil.rmtree(place / "models", ignore_errors=True)

    def run_jobs(self, quick: bool, waves: Sequence[Collection[str] | None] = (None,)) -> None:
        """Do the jobs that are left, wave after wave of arms; None has all of them, as the quick version has."""
        if quick:
            self.rows_file(quick).unlink(missing_ok=True)
        for wave in (None,) if quick else waves:
            run_in_processes(self.do_job, self.jobs_left(quick, arms=wave), say="training")

    def read_result(
        self,
        quick: bool,
        unit: str,
        figures: Callable[[Mapping[int, Arms]], dict[str, Any]],
        own_goals: Callable[[Mapping[int, Arms]], Sequence[Goal]] = lambda _: (),
    ) -> Result:
        """Judge the rows that are there; goals of its own a study has from two seeds on."""
        rows = self.kept_rows(quick=quick)
        by_seed = rows_by_seed(rows)
        print(table(by_seed, (*self.arms, *self.gate_jobs)), file=sys.stderr, flush=True)
        goals = [*goals_of(by_seed), *(own_goals(by_seed) if len(by_seed) > 1 else ())]
        about = settings(self.task) | {"answers": self.rows_file(quick).name}
        about |= {"public files": PublicPlace.from_environment().digests()}
        seeds = QUICK if quick else self.seeds
        return Result(goals[0].found, unit, seeds, without_answers(rows), figures(by_seed), about, goals=goals)

    def compare_with_plan(self, by_seed: Mapping[int, Arms]) -> dict[str, Any]:
        """Means with intervals over seeds that have the first arms: each arm that all have, the plan less it and curves."""
        whole = self.whole_seeds(by_seed)
        if len(whole) < 2:
            return {"seeds with the first arms": len(whole)}
        of_all = [arm for arm in self.arms if all(arm in arms for arms in whole)]
        found: dict[str, Any] = {}
        for arm in of_all:
            found[arm] = means_of(whole, arm)
            for name, tasks in ({NEW: (NEW,)} | GROUPS).items():
                found[arm][f"{name}, plan less this"] = rounded(differences(whole, PLAN, arm, tasks))
        for name, curve in CURVES.items():
            if set(curve) <= set(of_all):
                less = rounded([difference_at_equal_success(arms, curve) for arms in whole])
                found[name] = {"rehearsed, plan less this at equal success": less}
        return found

    def whole_seeds(self, by_seed: Mapping[int, Arms]) -> list[Arms]:
        """Seeds that have the first arms."""
        return [arms for arms in by_seed.values() if set(self.first_arms) <= set(arms)]


def means_of(seeds: Sequence[Arms], arm: str) -> dict[str, Any]:
    """Mean of each reading of an arm over seeds with its interval, and what is left of the start."""
    found: dict[str, Any] = {
        name: rounded([mean_success(arms[arm], tasks) for arms in seeds]) for name, tasks in READINGS.items()
    }
    return found | {"rehearsed, no task above its start": share_left(seeds, arm)}


def success(row: Mapping[str, Any], task: str) -> float:
    """Points of a task's test items, 0 to 100; answers are [task, item, score, completion, cut]."""
    scores = [answer[2] for answer in row["answers"] if answer[0] == task and answer[1].startswith("test")]
    return 100 * sum(scores) / len(scores)


def mean_success(row: Mapping[str, Any], tasks: Sequence[str]) -> float:
    """Mean over tasks, points."""
    return sum(success(row, task) for task in tasks) / len(tasks)


def differences(seeds: Iterable[Arms], arm: str, other: str, tasks: Sequence[str] = GROUPS["rehearsed"]) -> list[float]:
    """Points of an arm less another's, mean over tasks, of every seed that has both."""
    return [mean_success(arms[arm], tasks) - mean_success(arms[other], tasks) for arms in seeds if {arm, other} <= set(arms)]


def kept_at(points: Sequence[tuple[float, float]], new: float) -> float:
    """Points kept on the curve through (new task, kept), at so much success on the new task; its ends beyond it."""
    ordered = sorted(points)
    return float(np.interp(new, [one for one, _ in ordered], [kept for _, kept in ordered]))


def difference_at_equal_success(arms: Arms, curve: Sequence[str]) -> float:
    """Points of the rehearsed tasks that the plan has more than a curve at the plan's success on the new task."""
    points = [(success(arms[arm], NEW), _kept(arms[arm])) for arm in curve]
    return _kept(arms[PLAN]) - kept_at(points, success(arms[PLAN], NEW))


def _kept(row: Mapping[str, Any]) -> float:
    return mean_success(row, GROUPS["rehearsed"])


def share_left(seeds: Iterable[Arms], name: str) -> dict[str, float]:
    """Percent of the start that is left where gains of one task hide no loss of another; its interval ends at 100 %."""
    found = rounded([_left_of_start(arms, name) for arms in seeds])
    return found | {"high": min(found["high"], 100.0)}


def _left_of_start(arms: Arms, name: str) -> float:
    kept = sum(min(success(arms[name], task), success(arms[FROZEN], task)) for task in HALF_KNOWN)
    return 100 * kept / sum(success(arms[FROZEN], task) for task in HALF_KNOWN)


def goals_of(by_seed: Mapping[int, Arms]) -> list[Goal]:
    """What was expected; on fewer than two seeds with these arms nothing can be said, and no goal is reached."""
    whole = [arms for arms in by_seed.values() if {FROZEN, NARROW, PLAN} <= set(arms)]
    if len(whole) < 2:
        nothing = Interval(0.0, -100.0, 100.0, len(whole))
        return [Goal("narrow loses of the rehearsed tasks, points", nothing, f">= {LEAST_LOSS:g}", False)]
    losses, gains = differences(whole, FROZEN, NARROW), differences(whole, PLAN, NARROW)
    lost, gained = interval(losses), interval(gains)
    share = interval([gain / loss if loss > 0 else 0.0 for gain, loss in zip(gains, losses, strict=True)])
    new = interval(differences(whole, PLAN, NARROW, (NEW,)))
    return [
        Goal.at_least("narrow loses of the rehearsed tasks, points", lost, LEAST_LOSS),
        Goal.above_zero("plan less narrow on the rehearsed tasks, points", gained),
        Goal.at_least("share of the loss that the plan keeps", share, LEAST_KEPT),
        Goal.not_under("plan less narrow on the new task, points", new, -MOST_NEW_LOSS),
    ]


def table(by_seed: Mapping[int, Arms], arms: Sequence[str]) -> str:
    """Markdown: a line per arm, means over the seeds that have it, points."""
    tasks = GROUPS["all"]
    lines = ["| arm | seeds | " + " | ".join(tasks) + " |", "|---" * (len(tasks) + 2) + "|"]
    for arm in arms:
        own = [of_seed[arm] for of_seed in by_seed.values() if arm in of_seed]
        if own:
            cells = [f"{sum(success(row, task) for row in own) / len(own):.0f}" for task in tasks]
            lines.append(f"| {arm} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines)
