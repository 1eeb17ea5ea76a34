"""Repeats four arms of one seed of `real_sft` with fewer items and no public file, and compares answer by answer.

Half an hour on two cores. Each answer is compared with that of the committed row: the model, the rows and the items are
the same, so differences are those of rounding on another machine.

    python -m mixwright_lab.studies.real_repeat
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright_lab.studies.everyday import HALF_KNOWN
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.real_models import FROZEN, NARROW, PLAN, UNIFORM, RealModels
from mixwright_lab.studies.real_page import SFT_ARMS
from mixwright_lab.studies.real_sft import STUDY
from mixwright_lab.studies.sft_study import NEW

PLACE = Path("runs") / "real_repeat"
SEED, ITEMS = 173, (40, 20)
"""Seed of the study, and items of the new task and of each old one, the first ones of its test."""
ARMS = (NARROW, PLAN, UNIFORM, FROZEN)


@dataclass(frozen=True)
class RepeatJob:
    """One arm."""

    arm: str
    seed: int = SEED
    items: tuple[int, int] = ITEMS
    quick: bool = False


def do_job(job: RepeatJob) -> list[list[Any]]:
    """Answers of an arm's model, trained where it is not there."""
    place = PLACE / f"{job.seed}{'-quick' * job.quick}"
    return RealModels(place, job.seed, None, items=job.items, quick=job.quick).measure(job.arm)[0]


def by_task(answers: list[list[Any]]) -> dict[str, list[list[Any]]]:
    """Task -> its answers to test items, in the order of the items."""
    found: dict[str, list[list[Any]]] = {}
    for answer in sorted(answers, key=lambda answer: int(answer[1].rpartition("-")[2])):
        if answer[1].startswith("test"):
            found.setdefault(answer[0], []).append(answer)
    return found


def compare(arm: str, answers: list[list[Any]], kept: Mapping[str, Any]) -> dict[str, Any]:
    """Points of the new task and mean of the old ones, here and in the study on the same items, and equal answers."""
    here, there = by_task(answers), by_task(kept["answers"])
    there = {task: there[task][: len(rows)] for task, rows in here.items()}
    pairs = [pair for task in here for pair in zip(here[task], there[task], strict=True)]

    def points(rows: Mapping[str, list[list[Any]]], tasks: tuple[str, ...]) -> float:
        return sum(100 * sum(row[2] for row in rows[task]) / len(rows[task]) for task in tasks) / len(tasks)

    readings = {"new task": (NEW,), "four old tasks": tuple(HALF_KNOWN)}
    return {
        "arm": SFT_ARMS[arm],
        **{name: [points(side, tasks) for side in (here, there)] for name, tasks in readings.items()},
        "equal answers": [sum(one[3] == other[3] for one, other in pairs), len(pairs)],
    }


def main() -> None:
    """Run the arms, and print a line for each and one JSON object."""
    kept = {row["arm"]: row for row in STUDY.kept_rows((SEED,))}
    answers = run_in_processes(do_job, [RepeatJob(arm) for arm in ARMS], say="model")
    lines = [compare(arm, found, kept[arm]) for arm, found in zip(ARMS, answers, strict=True)]
    print(
        "| trained on | new task, here and in the study | four old tasks | equal answers |\n|---|---|---|---|",
        file=sys.stderr,
    )
    for line in reversed(lines):
        new, old = ([f"{value:.0f}" for value in line[name]] for name in ("new task", "four old tasks"))
        equal, count = line["equal answers"]
        print(f"| {line['arm']} | {' and '.join(new)} | {' and '.join(old)} | {equal} of {count} |", file=sys.stderr)
    print(json.dumps({"name": "real_repeat", "seed": SEED, "arms": lines}))


if __name__ == "__main__":
    main()
