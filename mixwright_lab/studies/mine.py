"""Study of mining: what `mixwright mine --try` recommends where each miner's source says it helps, and where not.

Every miner has cases (`_cases_NAME.py`), data made so that the rows it looks for matter, or do not. One command is run
as a user runs it: it scans, mines, measures, plans, and trains the arms frozen, all, random_like and mined from the same
model with the same steps, eight times each. What it says is held against what the case was made for. Effects are those of
the trial, mean success over all held-out items, mined against each reference, paired by seed.

`REPEATED` are drawn ten times in their first two cases; the others once. Nothing is chosen on these draws: cases were
tuned on seeds from 100 on. A draw that is done is kept by the code of its case (`kept.py`), so that a study that was
interrupted goes on.
"""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright_lab.studies import _cases_frontier, _cases_pairs, _cases_pruning, _cases_self_edits, influence_cases
from mixwright_lab.studies._cases import Case, tried
from mixwright_lab.studies.kept import load_or_make
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.workers import run_in_processes

CASES: tuple[Case, ...] = (
    *influence_cases.CASES,
    *_cases_pruning.CASES,
    *_cases_frontier.CASES,
    *_cases_pairs.CASES,
    *_cases_self_edits.CASES,
)
REPEATED, CASE_REPEATS = ("influence", "frontier"), 10
"""Miners whose first two cases are drawn so many times."""


@dataclass(frozen=True)
class Job:
    """One draw of one case."""

    case: int
    """Place in `CASES`."""
    seed: int


def try_one(job: Job) -> dict[str, Any]:
    """One draw, in a folder of its own, or as it was kept."""
    case = CASES[job.case]
    return load_or_make(Path(inspect.getfile(case.write)), f"{case.name} {job.seed}", lambda: _drawn(case, job.seed))


def _drawn(case: Case, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mixwright-case-") as folder:
        told = tried(case, Path(folder), seed, Path(folder) / "log.txt")
    advice = told["selection"]["advice"]
    return {**told, "helps": case.helps, "why": case.why, "recommended": advice in ("train on it", "fewer rows do")}


def measure(quick: bool) -> Result:
    """All cases once, and the first two of some miners ten times."""
    often = [place for name in REPEATED for place in [at for at, case in enumerate(CASES) if case.miner == name][:2]]
    draws = [(place, CASE_REPEATS if place in often and not quick else 1) for place in range(len(CASES))]
    jobs = [Job(place, seed * 37) for place, times in draws for seed in range(times)]
    rows = run_in_processes(try_one, jobs, say="case")
    right = [row["recommended"] == row["helps"] for row in rows]
    share = share_interval(sum(right), len(right))
    words = ((True, "recommends"), (False, "refuses"))
    goals = [_goal(miner, word, rows, helps) for miner in REPEATED for helps, word in words]
    return Result(share, "share of draws with the right recommendation", [0], rows, {}, {"times": CASE_REPEATS}, goals=goals)


def _goal(miner: str, word: str, rows: list[dict[str, Any]], helps: bool) -> Goal:
    case = next(case.name for case in CASES if case.miner == miner and case.helps == helps)
    own = [row for row in rows if row["case"] == case]
    share = share_interval(sum(row["recommended"] == helps for row in own), len(own))
    return Goal(f"{miner}: {word} in draws of the case made for it", share, ">= 0.9", share.value >= 0.9)


if __name__ == "__main__":
    run("mine", __doc__, measure)
