"""Study of the gate on branches of SFT: it sees 100 items of each of four tasks, and up to 300 others say what is true.

The tasks are sums, and past tenses, plurals and companies of products; the last three are public and stand in no training
row. A branch is truly damaged where the interval of its mean change over the further items lies below -5 points,
and truly harmless where it lies above; a branch whose interval holds -5 is not scored. The gate is asked of the four tasks
as one group with a margin of 5 points, as `--protect` and `--margin 5` do.

Goals, fixed before the branches were trained: none that is truly damaged passes, none that is truly harmless is called
damaged. "Cannot tell" is counted, and no goal. Of the branches of `real_sft` none had learnt the new task and was truly
harmless. So those of two further seeds of `real_skill_sft` were made, with one more goal: of all that gained at least 20
points of the new task and are truly harmless, at least half pass. The rows come from those studies; no model is loaded.
Added after these rows were seen: the tasks that truly fell, the interval of their own change below -5 points. The gate says
"damaged" of a single task, too, and the truth of these goals is of the mean.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.real_branches [--quick]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.estimates.dependence import dependence
from mixwright.estimates.intervals import mean_interval, share_interval
from mixwright.estimates.outcome import ItemScores
from mixwright.graders import load_grader
from mixwright.records import Example, Interval
from mixwright.verdict.rules.gate import check_protected
from mixwright_lab.studies import real_sft, real_skill_sft
from mixwright_lab.studies.jobs import rows_by_seed
from mixwright_lab.studies.real_models import FROZEN, GRADERS, PROMPTED, TRUTH_TASKS, PublicPlace, RealModels
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.sft_study import NEW, success

MARGIN_POINTS, LEARNT_POINTS = 5.0, 20.0
"""What a loss is; gain of the new task from which on a branch has learnt it."""
SEEDS = (*real_sft.STUDY.gate_seeds, *real_skill_sft.STUDY.gate_seeds)
LEAST_PASSED = 0.5
"""Share of the branches that learnt the new task and are harmless."""


def judge(before: Mapping[str, Any], after: Mapping[str, Any], golds: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the gate says of the test items, and the change over the further items with its interval, in points.

    Args:
        before: row of `frozen`.
        after: row of the branch.
        golds: item -> its row, with prompt and answer.
    """
    sides = [[_scores(row, golds)] for row in (before, after)]
    cells = [(task, None) for task in TRUTH_TASKS]
    found = check_protected(sides[0], sides[1], cells, named_by_user=True, margin=MARGIN_POINTS / 100)
    by_task = true_changes(before, after)
    truth = mean_of(list(by_task.values()))
    word = "damaged" if truth.high < -MARGIN_POINTS else "harmless" if truth.low > -MARGIN_POINTS else "not scored"
    fell = [task for task, change in by_task.items() if change.high < -MARGIN_POINTS]
    return {
        "gate": found.outcome.replace("inconclusive", "cannot tell"),
        "truth": word,
        "change": [truth.value, truth.low, truth.high],
        "fell": fell,
    }


def true_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Interval]:
    """Change of each task over the further items, in points."""
    changes = {}
    for task in TRUTH_TASKS:
        old, new = ({item: score for t, item, score, *_ in row["answers"] if t == task} for row in (before, after))
        items = sorted(item for item in old.keys() & new.keys() if item.startswith("truth"))
        changes[task] = mean_interval(np.array([100 * (new[item] - old[item]) for item in items]))
    return changes


def mean_of(changes: Sequence[Interval]) -> Interval:
    """Each task counted alike."""
    value = float(np.mean([one.value for one in changes]))
    half = float(np.sqrt(sum((one.high - one.value) ** 2 for one in changes)) / len(changes))
    return Interval(value, value - half, value + half, sum(one.n for one in changes))


def _scores(row: Mapping[str, Any], golds: Mapping[str, Mapping[str, Any]]) -> ItemScores:
    """Success, success of the answer on other prompts, and chance, of the test items."""
    columns: dict[str, dict[tuple[str, float | None, str], float]] = {"greedy": {}, "greedy.swapped": {}, "chance": {}}
    for task in TRUTH_TASKS:
        own = [answer for answer in row["answers"] if answer[0] == task and answer[1].startswith("test")]
        grader = load_grader(GRADERS.get(task, "includes"))
        examples = [_example(answer[1], golds[answer[1]]) for answer in own]
        grades = np.array([[grader.grade(example, answer[3]) for example in examples] for answer in own])
        np.fill_diagonal(grades, [answer[2] for answer in own])
        for answer, swapped in zip(own, dependence(grades).items, strict=True):
            item = (task, None, answer[1])
            columns["greedy"][item], columns["greedy.swapped"][item] = float(answer[2]), float(swapped)
            columns["chance"][item] = 0.0
    return ItemScores.of(columns)


def _example(name: str, row: Mapping[str, Any]) -> Example:
    return Example(name, row["task"], row["prompt"], answer=row["answer"])


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was fixed before."""
    damaged = [row for row in rows if row["truth"] == "damaged"]
    harmless = [row for row in rows if row["truth"] == "harmless"]
    passes = share_interval(sum(row["gate"] == "passed" for row in damaged), max(len(damaged), 1))
    alarms = share_interval(sum(row["gate"] == "damaged" for row in harmless), max(len(harmless), 1))
    useful = [row for row in harmless if row["gain"] >= LEARNT_POINTS]
    passed = share_interval(sum(row["gate"] == "passed" for row in useful), max(len(useful), 1))
    reached = bool(useful) and passed.value >= LEAST_PASSED
    return [
        Goal(f"truly damaged ({len(damaged)}): passes", passes, "0", bool(damaged) and passes.value == 0),
        Goal(f"truly harmless ({len(harmless)}): called damaged", alarms, "0", bool(harmless) and alarms.value == 0),
        Goal(f"learnt and harmless ({len(useful)}): passes", passed, f">= {LEAST_PASSED:g}", reached),
    ]


def branches(seed: int, public: PublicPlace) -> list[dict[str, Any]]:
    """What the gate says, what is true, and the gain of the new task in points, of each model of a seed."""
    of_skill = seed in real_skill_sft.STUDY.gate_seeds
    study = real_skill_sft.STUDY if of_skill else real_sft.STUDY
    arms = rows_by_seed(study.kept_rows((seed,))).get(seed, {})
    if FROZEN not in arms:
        return []
    asked = RealModels(study.place / "branches", seed, public, truth=True, task=study.task).rows
    golds = {row["id"]: row for row in (*asked["test"], *asked["truth"])}
    known, start = {"seed": seed, "taught": "skill" if of_skill else "tool calls"}, success(arms[FROZEN], NEW)
    return [
        known | {"arm": arm, "gain": success(row, NEW) - start} | judge(arms[FROZEN], row, golds)
        for arm, row in arms.items()
        if arm not in (FROZEN, PROMPTED)
    ]


def measure(quick: bool) -> Result:
    """Every branch of the seeds that have further items; quick takes the first seed."""
    public = PublicPlace.from_environment()
    rows = [row for seed in (SEEDS[:1] if quick else SEEDS) for row in branches(seed, public)]
    goals = goals_of(rows)
    counts = {
        f"{taught}, {truth}, {gate}": sum(
            (row["taught"], row["truth"], row["gate"]) == (taught, truth, gate) for row in rows
        )
        for taught in ("tool calls", "skill")
        for truth in ("damaged", "harmless", "not scored")
        for gate in ("passed", "damaged", "cannot tell")
    }
    counts |= {
        f"{gate}, a single task fell" if fell else f"{gate}, no task fell": sum(
            (row["gate"], bool(row["fell"])) == (gate, fell) for row in rows
        )
        for gate in ("passed", "damaged", "cannot tell")
        for fell in (True, False)
    }
    unit = "share of truly damaged branches that the gate passes"
    return Result(goals[0].found, unit, SEEDS, rows, figures=counts, settings={"tasks": TRUTH_TASKS}, goals=goals)


if __name__ == "__main__":
    run("real_branches", __doc__, measure)
