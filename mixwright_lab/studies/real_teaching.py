"""Study of `plan --minutes` on a real model: what rows of nine everyday tasks teach SmolLM2, and whom they cost.

The short trainings of `plan --minutes`, at its own sizes: each of nine tasks and tool calls is trained on five times, on
true rows and on rows with answers dealt out. Then each is trained on for long (four times the steps, a sixth of the rate, 64
rows, another seed), and what the other tasks lost is compared with what short trainings foretold. Other tasks are read if a
fifth of their items was right before: nothing else can fall. The long rate was chosen on seed 12, where at a sixth and at
half of the short rate the same tasks fell, by 8 to 42 points, and one did not.

What is known before: capitals and opposites are facts, least common multiples are not learnt (.01 after 80 steps of 16 rows
in `real_skills`), sums, two-digit sums and Roman numerals are skills (.91 and .77 there). Goals, fixed before the first
training: no fact and no least common multiple is called a skill; the word is "skill" for two of these three skills; area
under the ROC curve of harmed tasks (by 10 points or more; five or less is none) .85, and above that of prompts with the same
words. Intervals of areas are of 2,000 draws of the tasks that are trained on. A null was added after the run: what was right
before, since only that can be lost.

Source: one-task trainings and their effect on other tasks, 2507.14783; dealt-out answers are ours.
Unit: one task; one pair of tasks.
Cost: 180 CPU minutes, of 110 trainings.
Blind spot: one model, LoRA, one draw of the rows.

    python -m mixwright_lab.studies.real_teaching [--quick] [--report]
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.plan.bursts import BurstSizes, deal_out, read_success, split_groups, train_copy
from mixwright.plan.teaching import Part, judge_teaching
from mixwright.records import Example, Interval, plain
from mixwright_extras.mining.relevance import bm25
from mixwright_lab.studies.competition import areas_of
from mixwright_lab.studies.everyday import HALF_KNOWN, SKILLS, tool_calls
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

MODEL, SEEDS, LONG_SEED = "smollm2", (0, 1, 2, 3, 4), 11
SHORT, LONG = BurstSizes(items=24), BurstSizes(steps=96, rows=64, items=24, learning_rate=2.5e-4)
NO_SKILLS, TRUE_SKILLS = ("capitals", "opposites", "least_common_multiples"), ("sums", "two_digit_sums", "roman_numerals")
LEAST_BEFORE, LEAST_AREA, LEAST_SKILLS, ROWS, DRAWS = 0.2, 0.85, 2, 160, 2000
CONFIG = MeasureConfig(max_new_tokens=16, samples=0, decoding="greedy")
ROWS_FILE, PLACE = RESULTS / "real_teaching.rows.jsonl", Path("runs") / "real_teaching"


@dataclass(frozen=True)
class Burst:
    """One training, and what is read after it; that of no task is no training."""

    task: str
    seed: int
    dealt: bool = False
    long: bool = False
    quick: bool = False


@cache
def parts() -> dict[Part, Sequence[Example]]:
    """Rows to train on, those of long trainings first, and items of each task."""
    rng = random.Random(7)
    pairs = {task: make() for task, make in HALF_KNOWN.items()}
    pairs |= {task: make(rng, ROWS) for task, make in SKILLS.items()} | {"calls": tool_calls(rng)[0]}
    rows = [
        Example(f"{task}-{place}", task, ({"role": "user", "content": prompt},), answer=answer, target=answer)
        for task, own in pairs.items()
        for place, (prompt, answer) in enumerate(rng.sample(own, min(ROWS, len(own))))
    ]
    return split_groups(rows, LONG)[0]


def do_burst(job: Burst) -> None:
    """Train, read, and append a row: success of each item by task and part."""
    from mixwright.learner.load import load_learner

    learner, sizes = load_learner(MODEL), BurstSizes(steps=2) if job.quick else LONG if job.long else SHORT
    read: dict[Part, Sequence[Example]] = {name: rows[: 4 if job.quick else SHORT.rows] for name, rows in parts().items()}
    model = learner.model
    if job.task:
        own = parts()[job.task, "trained"][: sizes.rows]
        rows = deal_out(own, np.random.default_rng(job.seed)) if job.dealt else own
        model = train_copy(learner, rows, sizes, job.seed)
        others = () if job.dealt else can_fall()
        read = {name: rows for name, rows in read.items() if name[0] == job.task or name in others}
    graders = {task: "exact" if task == "calls" else "includes" for task, _ in read}
    corpus = Corpus.from_examples([row for rows in read.values() for row in rows], graders)
    found = read_success(learner, model, corpus, read, CONFIG)
    row = {"task": job.task, "seed": job.seed, "dealt": job.dealt, "long": job.long}
    row["right"] = [[*name, values.astype(int).tolist()] for name, values in found.items()]
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row)


def can_fall() -> set[Part]:
    """Items of the tasks of which enough was right before; read from the row of no training."""
    (before,) = [row for row in read_rows(ROWS_FILE) if not row["task"]]
    return {(task, part) for task, part, right in before["right"] if part == "unseen" and np.mean(right) >= LEAST_BEFORE}


def jobs() -> list[Burst]:
    """All trainings, each task once before the second seed, and the long ones."""
    tasks = [task for task, part in parts() if part == "trained"]
    short = [Burst(task, seed, dealt) for seed in SEEDS for task in tasks for dealt in (False, True)]
    return [*short, *(Burst(task, LONG_SEED, long=True) for task in tasks)]


def draw_areas(pairs: Sequence[Mapping[str, Any]]) -> tuple[Interval, Interval]:
    """Area under the ROC curve of what was foretold, and how much more it is than that of alike prompts.

    Intervals say what drawing the trained tasks anew makes of them; without harmed and unharmed pairs they exclude nothing.
    """
    tasks, signs = list(dict.fromkeys(pair["trained"] for pair in pairs)), {"short": -1, "alike": 1}
    if not (own := areas_of(pairs, signs)):
        return Interval(0.5, 0.0, 1.0, 0), Interval(0.0, -1.0, 1.0, 0)
    rng, drawn = np.random.default_rng(0), list[dict[str, float]]()
    for _ in range(DRAWS):
        taken = [tasks[place] for place in rng.integers(0, len(tasks), len(tasks))]
        drawn.append(areas_of([pair for task in taken for pair in pairs if pair["trained"] == task], signs))
    found = []
    for less in (0.0, 1.0):
        value, *values = [one["short"] - less * one["alike"] for one in (own, *filter(None, drawn))]
        low, high = np.quantile(values, [0.025, 0.975])
        found.append(Interval(value, float(low), float(high), len(tasks)))
    return found[0], found[1]


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the trainings that are left, and judge words and pairs."""
    kept = {Burst(row["task"], row["seed"], row["dealt"], row["long"]): row for row in read_rows(ROWS_FILE)}
    if begin:
        PLACE.mkdir(parents=True, exist_ok=True)
        quicks = [Burst(task, 0, task == "calls", quick=True) for task in ("", "calls")]
        if not quick and Burst("", 0) not in kept:
            do_burst(Burst("", 0))
        run_in_processes(do_burst, quicks if quick else [job for job in jobs() if job not in kept], say="training")
        kept = {Burst(row["task"], row["seed"], row["dealt"], row["long"]): row for row in read_rows(ROWS_FILE)}
    read = {job: {(task, part): np.array(right, float) for task, part, right in row["right"]} for job, row in kept.items()}
    runs = defaultdict[tuple[str, bool], list[Any]](list)
    for job in jobs():
        if job in read and not job.long:
            runs[job.task, job.dealt].append(read[job])
    before = read.get(Burst("", 0), {})
    teaching = judge_teaching(before, runs, {task: SHORT.rows for task, _ in runs}, steps=SHORT.steps, batch=SHORT.batch)
    words = {one.group: one.word for one in teaching.taught}
    foretold = {(pull.trained_on, pull.read_on): pull.change.value for pull in teaching.pulls}
    texts = {name: [plain(row.prompt).split() for row in rows] for name, rows in parts().items()}
    pairs = []
    for job in read:
        for (other, part), was in before.items() if job.long else ():
            if part == "unseen" and other != job.task and (other, part) in read[job]:
                change = float(read[job][other, part].mean() - was.mean())
                alike = float(bm25(texts[job.task, "trained"], texts[other, "unseen"]).max(0).mean())
                pair = {
                    "trained": job.task,
                    "read": other,
                    "before": round(float(was.mean()), 3),
                    "change": round(change, 3),
                }
                pairs.append(pair | {"short": foretold.get((job.task, other), 0.0), "alike": alike})
    found = draw_areas(pairs)
    wrong = share_interval(sum(words.get(task) == "skill" for task in NO_SKILLS), len(NO_SKILLS))
    right = share_interval(sum(words.get(task) == "skill" for task in TRUE_SKILLS), len(TRUE_SKILLS))
    goals = [
        Goal.at_most("called a skill, of facts and what is not learnt", wrong, 0.0),
        Goal.at_least("called a skill, of three skills", right, LEAST_SKILLS / len(TRUE_SKILLS)),
        Goal.at_least("area under ROC of harmed tasks", found[0], LEAST_AREA),
        Goal.above_zero("the same less that of prompts with the same words", found[1]),
    ]
    figures: dict[str, Any] = {"words": words, "pairs": pairs}
    figures["area by success before"] = areas_of(pairs, {"before": 1})
    figures["success before"] = {task: float(right.mean()) for (task, part), right in before.items() if part == "unseen"}
    return Result(goals[1].found, goals[1].name, SEEDS, [], figures, {"rows": ROWS_FILE.name}, goals=goals)


if __name__ == "__main__":
    run("real_teaching", __doc__, measure, kept=True)
