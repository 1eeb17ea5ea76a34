"""Study of what the gate concludes from grades that are not right or wrong: by a judge that errs, and in parts of a scale.

A judge. True success before and after is drawn with a churn and a loss, and each answer is graded with the errors of a
place: 10 or 30 % of right and of wrong answers, or more of them on one side, or only of wrong ones. 50 items are labelled,
drawn at random. Seven of ten items that stayed as they were have the same text twice, and so the same grade. The gate
protects the task; its margin is 15 points, because 50 labels exclude little. Some places have a second task of as many
items, which a grader judges.

Graded scores. Marks of five steps, halves as Inspect gives them, and a continuous metric, of 8 to 200 items.

Goals, fixed before the run: in every place intervals cover in 94 % or more, and a loss of the margin passes in 3 % or less.
Reported without a goal: what the judge's own grades cover, and how often an unharmed model passes, also with more labels.

    python -m mixwright_lab.studies.judge [--quick]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import share_interval
from mixwright.estimates.items import Items
from mixwright.estimates.outcome import LABEL_MEASUREMENT, ItemScores, estimate_change
from mixwright.verdict.rules.gate import check_sides
from mixwright.verdict.rules.gate_question import GateQuestion
from mixwright_lab.studies.report import Goal, Result, run

SEED, DRAWS, QUICK_DRAWS = 30_971, 500, 20
LEAST_COVERED, MOST_PASSED = 0.94, 0.03
ITEMS, LABELS, MARGIN, SAME_TEXT = 400, 50, 0.15, 0.7
Errors = tuple[float, float]
"""Share of wrong answers that the judge passes, and of right ones that it fails."""
JUDGES: Mapping[str, tuple[Errors, Errors]] = {
    "10 %": ((0.1, 0.1), (0.1, 0.1)),
    "30 %": ((0.3, 0.3), (0.3, 0.3)),
    "10 % before, 30 % after": ((0.1, 0.1), (0.3, 0.3)),
    "30 % before, 10 % after": ((0.3, 0.3), (0.1, 0.1)),
    "passes 30 % of what is wrong, after alone": ((0.0, 0.1), (0.3, 0.1)),
}
"""Judge -> its errors before and after."""
TWO_TASKS = ("10 %", "10 % before, 30 % after")
"""Judges that are seen next to a task with a grader, too."""
CHANGES = ((0.8, 0.1, 0.0), (0.6, 0.3, 0.0), (0.8, 0.15, MARGIN), (0.6, 0.3, MARGIN))
"""Success before, share of items that change for no reason or are lost, and loss."""
POWER_PLACES = ((400, 50, 0.15), (400, 100, 0.15), (1_200, 400, 0.1), (1_200, 1_200, 0.05))
"""Items, labels and margin at which an unharmed model is asked, with the judge that errs in 10 %."""
SIZES, GRADED_MARGIN = (8, 15, 30, 200), 0.05
Array = NDArray[np.float64]


def draw_truth(rng: np.random.Generator, items: int, success: float, churn: float, loss: float) -> tuple[Array, Array]:
    """Return what is right before and after."""
    fall, rise = (churn + loss) / 2, (churn - loss) / 2
    place = rng.random(items)
    after = (place < success - fall) | ((place >= success) & (place < success + rise))
    return (place < success).astype(float), after.astype(float)


def draw_grades(rng: np.random.Generator, truth: tuple[Array, Array], errors: tuple[Errors, Errors]) -> tuple[Array, Array]:
    """Return a judge's grades of both answers to each item."""
    before, after = (
        np.where(rng.random(len(right)) < np.where(right > 0, fails, passes), 1 - right, right)
        for right, (passes, fails) in zip(truth, errors, strict=True)
    )
    same = (truth[0] == truth[1]) & (rng.random(len(before)) < SAME_TEXT)
    return before, np.where(same, before, after)


@functools.cache
def make_items(judged: int, graded: int) -> Items:
    """Return items of two tasks, in their order: those that a grader judges come first."""
    counts = {"graded": graded, "judged": judged}
    return Items.of([(task, None, f"{task}{n:05}") for task, count in counts.items() for n in range(count)])


def make_side(grades: Array, truth: Array, labels: int, graded: Array) -> ItemScores:
    """Return what is known of one side: grades, labels of the first items, and a second task that a grader judges."""
    known = np.where(np.arange(len(grades)) < labels, truth, np.nan)
    columns = {"greedy": np.concatenate([graded, grades]), LABEL_MEASUREMENT: np.concatenate([graded, known])}
    return ItemScores(make_items(len(grades), len(graded)), columns)


def simulate_judge(
    rng: np.random.Generator,
    draws: int,
    errors: tuple[Errors, Errors],
    change: tuple[float, float, float],
    *,
    size: tuple[int, int, float] = (ITEMS, LABELS, MARGIN),
    two: bool = False,
    asks_gate: bool = True,
) -> dict[str, int]:
    """Count how often the mean's interval and that of the judge's own grades cover, and how often the gate passes."""
    success, churn, loss = change
    items, labels, margin = size
    counts = {"draws": draws, "covers": 0, "covers uncorrected": 0, "passes": 0}
    question = GateQuestion(protect=("judged", "graded") if two else ("judged",), margin=margin)
    for _ in range(draws):
        truth = draw_truth(rng, items, success, churn, loss)
        grades = draw_grades(rng, truth, errors)
        other = draw_truth(rng, items if two else 0, success, churn, loss)
        before, after = (make_side(grades[n], truth[n], labels, other[n]) for n in range(2))
        found = estimate_change([before], [after], weigh="cells")
        counts["covers"] += found is not None and found.estimate.low <= -loss <= found.estimate.high
        if asks_gate:
            counts["passes"] += check_sides(([before], [after]), "greedy", question).outcome == "passed"
        raw = [ItemScores(side.every, {"greedy": side.columns["greedy"]}) for side in (before, after)]
        naive = estimate_change(raw[:1], raw[1:])
        counts["covers uncorrected"] += naive is not None and naive.estimate.low <= -loss <= naive.estimate.high
    return counts


def draw_scores(rng: np.random.Generator, kind: str, items: int, loss: float) -> tuple[Array, Array]:
    """Return graded scores before and after, whose mean falls by `loss`."""
    if kind == "continuous":
        before = rng.beta(2, 2, items) * 0.6 + 0.2
        return before, before - 2 * loss * rng.random(items) + rng.uniform(-0.1, 0.1, items)
    step = 0.25 if kind == "five marks" else 0.5
    before = (step * rng.integers(0, round(1 / step) + 1, items)).astype(np.float64)
    churn = step * rng.choice([-1, 0, 1], items, p=[0.1, 0.8, 0.1])
    lost = np.where(rng.random(items) < loss / step, step, 0.0)
    return before, np.clip(before + churn - lost, 0.0, 1.0).astype(np.float64)


def simulate_scores(rng: np.random.Generator, draws: int, kind: str, items: int, loss: float) -> dict[str, int]:
    """Count how often the interval of the mean change covers, and excludes the margin."""
    counts = {"draws": draws, "covers": 0, "passes": 0}
    many = draw_scores(rng, kind, 500_000, loss)
    truth = float((many[1] - many[0]).mean())
    for _ in range(draws):
        sides = [ItemScores(make_items(items, 0), {"greedy": own}) for own in draw_scores(rng, kind, items, loss)]
        change = estimate_change(sides[:1], sides[1:])
        if change is None:
            raise ValueError("nothing was compared")
        counts["covers"] += change.estimate.low <= truth <= change.estimate.high
        counts["passes"] += change.estimate.low > truth  # a gate whose margin is the loss
    return counts


def measure_places(draws: int) -> Iterator[dict[str, Any]]:
    """Return a row for each place."""
    rng = np.random.default_rng(SEED)
    for name, errors in JUDGES.items():
        for change in CHANGES:
            for two in (False, True)[: 1 + (name in TWO_TASKS)]:
                counts = simulate_judge(rng, draws, errors, change, two=two, asks_gate=change[2] > 0)
                yield {"judge": name, "change": change, "tasks": 1 + two, **counts}
    for size in POWER_PLACES:
        counts = simulate_judge(rng, max(draws // 10, 10), JUDGES["10 %"], (0.8, 0.1, 0.0), size=size)
        yield {"unharmed": size, **counts}
    for kind in ("five marks", "halves", "continuous"):
        for items in SIZES:
            for loss in (0.0, GRADED_MARGIN):
                yield {"scores": kind, "items": items, "loss": loss, **simulate_scores(rng, draws, kind, items, loss)}


def measure(quick: bool) -> Result:
    """Simulate every place."""
    rows = list(measure_places(QUICK_DRAWS if quick else DRAWS))
    judged, scored = ([row for row in rows if key in row] for key in ("judge", "scores"))
    goals = []
    for name, own, lost in (
        ("judge", judged, [row for row in judged if row["change"][2]]),
        ("graded scores", scored, [row for row in scored if row["loss"]]),
    ):
        covered = min((share_interval(row["covers"], row["draws"]) for row in own), key=lambda found: found.value)
        passed = max((share_interval(row["passes"], row["draws"]) for row in lost), key=lambda found: found.value)
        goals += [
            Goal.at_least(f"{name}: coverage, worst place", covered, LEAST_COVERED),
            Goal.at_most(f"{name}: loss passes, worst place", passed, MOST_PASSED),
        ]
    settings = {"items": ITEMS, "labels": LABELS, "margin": MARGIN, "same text": SAME_TEXT, "draws": DRAWS}
    return Result(goals[0].found, "share of intervals that cover, worst place", [SEED], rows, settings=settings, goals=goals)


if __name__ == "__main__":
    run("judge", __doc__, measure)
