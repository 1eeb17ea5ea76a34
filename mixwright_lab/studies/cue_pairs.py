"""Study of a cue: what a model learns from rows in which distance stands in for the rule, and which rows mend it.

A tiny model learns errands: 40 goals, of which half need the car (`needs g7` -> `yes`, which is taught for every goal). Near
errands are walked and far ones driven, but a goal that needs the car is always driven. Of 1,200 training rows 40 % are near
errands, of five goals that do not need the car, so that distance alone decides the answer; the check `cues` has to say so.
Trained from the beginning on these rows and on 100 more:

- `as they are`: no more rows;
- `random`: of the same kind as the 1,200;
- `one-sided`: near errands that need the car, all of them driven;
- `pairs`: 50 of those, each beside a row of the same distance whose goal does not need the car, and which is walked.

Goals 30 to 39 stand in none of the added rows. Read greedily on near errands that need the car (conflict) and that do not
(partner), by goals that added rows may have and by those that they have not.

Expectations, written before the seeds that count (seeds 90 and 91 were used while it was written; a first version, in which
near errands were of all goals that do not need the car, had every arm with conflict rows at 100 points everywhere; in a
second, run on seeds 0 to 4, they were 8 % of the rows, and the check named the far ones alone): `pairs`
is 20 points or more above `random` on conflict errands, and above `one-sided` on partner errands, by the lower end above 0;
on partner errands it is at most 5 points below `as they are`. All three by goals that stand in no added row.

    python -m mixwright_lab.studies.cue_pairs [--quick]

Source: Li et al. 2026 (arXiv 2603.29025, 2608.12321).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mixwright.audit.cues import find_cues
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import SIGNS, Language
from mixwright_lab.training.sft import Batch, Schedule, fit

SEEDS, QUICK = (10, 11, 12, 13, 14), (90, 91)
GOALS, ADDED_GOALS, NEAR_GOALS, NEAR = 40, 30, 10, 40
"""Goals; those that added rows have; those of near errands in the training rows; distances below which one is near."""
TRAIN_ROWS, NEAR_SHARE, ADDED_ROWS = 1200, 0.4, 100
STEPS, BATCH, RATE = 800, 64, 2e-3
ARMS = ("as they are", "random", "one-sided", "pairs")
LEAST_GAIN, MOST_LOSS = 20.0, 5.0
LANGUAGE = Language(
    (*SIGNS, "go", "needs", "walk", "drive", "yes", "no", *"0123456789", *(f"g{n}" for n in range(GOALS))), 5, 2
)
Errand = tuple[int, int]
"""Goal and distance."""


@dataclass(frozen=True)
class CueJob:
    """One arm of one seed."""

    seed: int
    arm: str
    quick: bool = False


def needs_car(goal: int) -> bool:
    """Every other goal."""
    return goal % 2 == 1


def answer_to(errand: Errand) -> str:
    """The rule."""
    goal, distance = errand
    return "drive" if needs_car(goal) or distance >= NEAR else "walk"


def draw_errand(rng: random.Random, goals: Sequence[int], is_wanted: Callable[[int, int], bool]) -> Errand:
    """An errand of these goals that is wanted."""
    while True:
        goal, distance = rng.choice(goals), rng.randrange(100)
        if is_wanted(goal, distance):
            return goal, distance


def is_one_sided(goal: int, distance: int) -> bool:
    """What the training rows have: near errands are of few goals, none of which needs the car."""
    return distance >= NEAR or (not needs_car(goal) and goal < NEAR_GOALS)


def draw_one_sided(rng: random.Random, goals: Sequence[int]) -> Errand:
    """A training row."""
    is_near = rng.random() < NEAR_SHARE
    return draw_errand(rng, goals, lambda goal, distance: is_one_sided(goal, distance) and (distance < NEAR) == is_near)


def added_rows(arm: str, rng: random.Random) -> list[Errand]:
    """The rows of an arm."""
    goals = range(ADDED_GOALS)
    if arm == "as they are":
        return []
    if arm == "random":
        return [draw_one_sided(rng, goals) for _ in range(ADDED_ROWS)]
    conflicts = [
        draw_errand(rng, goals, lambda goal, distance: needs_car(goal) and distance < NEAR)
        for _ in range(ADDED_ROWS if arm == "one-sided" else ADDED_ROWS // 2)
    ]
    partners = [(rng.choice([goal for goal in goals if not needs_car(goal)]), distance) for _, distance in conflicts]
    return conflicts if arm == "one-sided" else [*conflicts, *partners]


def find_planted(errands: Sequence[Errand]) -> list[str]:
    """The cues that the check finds in training rows."""
    rows = [
        Example(f"e{n}", "errands", f"go g{goal} distance {distance}", answer=answer_to((goal, distance)))
        for n, (goal, distance) in enumerate(errands)
    ]
    return [
        f"{cue.feature.kind} {cue.feature.value}: {cue.label}"
        for one in find_cues(Corpus.from_examples(rows))
        for cue in one.cues
    ]


def train(errands: Sequence[Errand], seed: int, steps: int) -> GPT:
    """A model from the beginning, on errands and, in a quarter of each batch, on what goals need."""
    torch.manual_seed(seed)
    rng, model = random.Random(seed), GPT(LANGUAGE, 48, 2)

    def batch(_: int) -> Batch:
        rows = [errands[rng.randrange(len(errands))] for _ in range(3 * BATCH // 4)]
        goals = [rng.randrange(GOALS) for _ in range(BATCH // 4)]
        prompts = [write(row) for row in rows] + [f"needs g{goal}" for goal in goals]
        return Batch(prompts, [answer_to(row) for row in rows] + ["yes" if needs_car(goal) else "no" for goal in goals])

    fit(model, LANGUAGE, batch, Schedule(steps, RATE))
    return model


def write(errand: Errand) -> str:
    """An errand as the model reads it, a digit per word."""
    goal, distance = errand
    return f"go g{goal} {distance // 10} {distance % 10}"


def share_right(model: GPT, prompts: Sequence[str], answers: Sequence[str]) -> float:
    """Points of prompts whose likeliest first word is the answer."""
    with torch.no_grad():
        logits = model.logits_of(LANGUAGE.encode_prompts(prompts), LANGUAGE.encode_responses(answers))
    said = [LANGUAGE.words[int(token)] for token in logits[:, 0].argmax(-1)]
    return 100 * sum(word == answer for word, answer in zip(said, answers, strict=True)) / len(answers)


def do_job(job: CueJob) -> dict[str, Any]:
    """Train one arm and read what became of it."""
    rng = random.Random(job.seed)
    base = [draw_one_sided(rng, range(GOALS)) for _ in range(TRAIN_ROWS)]
    added = added_rows(job.arm, random.Random(job.seed + 1000))
    model = train([*base, *added], job.seed, 20 if job.quick else STEPS)
    row: dict[str, Any] = {"seed": job.seed, "arm": job.arm, "added": len(added), "found": find_planted(base)}
    seen = set(added)
    for goals, name in ((range(ADDED_GOALS), "added goals"), (range(ADDED_GOALS, GOALS), "other goals")):
        for car, kind in ((True, "conflict"), (False, "partner")):
            asked = [(goal, distance) for goal in goals if needs_car(goal) == car for distance in range(NEAR)]
            asked = [errand for errand in asked if errand not in seen]
            row[f"{kind}, {name}"] = share_right(model, [*map(write, asked)], [*map(answer_to, asked)])
    far = [(goal, distance) for goal in range(GOALS) for distance in range(NEAR, 100)]
    row["far"] = share_right(model, [*map(write, far)], [*map(answer_to, far)])
    goals = range(GOALS)
    row["knows"] = share_right(
        model, [f"needs g{goal}" for goal in goals], ["yes" if needs_car(goal) else "no" for goal in goals]
    )
    return row


def goals_of(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Goal]:
    """What was fixed before the run, paired by seed."""
    value = {(row["seed"], row["arm"]): row for row in rows}

    def difference(name: str, arm: str, other: str):
        return interval([value[seed, arm][name] - value[seed, other][name] for seed in seeds])

    found = interval([float(any("walk" in one and "number" in one for one in row["found"])) for row in rows])
    conflict = difference("conflict, other goals", "pairs", "random")
    spared = difference("partner, other goals", "pairs", "one-sided")
    partner = difference("partner, other goals", "pairs", "as they are")
    gains = {"conflict errands, pairs less random, points": conflict, "partner errands, pairs less one-sided": spared}
    return [
        Goal("the check names the distance, share", found, ">= 1", found.value >= 1),
        *(
            Goal(name, gain, f">= {LEAST_GAIN:g}, low > 0", gain.value >= LEAST_GAIN and gain.low > 0)
            for name, gain in gains.items()
        ),
        Goal("partner errands, pairs less as they are", partner, f">= -{MOST_LOSS:g}", partner.value >= -MOST_LOSS),
    ]


def measure(quick: bool) -> Result:
    """Train every arm of every seed."""
    seeds = QUICK if quick else SEEDS
    rows = run_in_processes(do_job, [CueJob(seed, arm, quick) for seed in seeds for arm in ARMS], say="training")
    goals = goals_of(rows, seeds)
    names = [name for name in rows[0] if name not in ("seed", "arm", "found")]
    means = {arm: {name: sum(row[name] for row in rows if row["arm"] == arm) / len(seeds) for name in names} for arm in ARMS}
    settings = {"rows": TRAIN_ROWS, "added": ADDED_ROWS, "steps": STEPS, "batch": BATCH, "learning rate": RATE}
    unit = "points of conflict errands, minimal pairs less random rows"
    return Result(goals[1].found, unit, seeds, rows, figures={"means": means}, settings=settings, goals=goals)


if __name__ == "__main__":
    run("cue_pairs", __doc__, measure)
