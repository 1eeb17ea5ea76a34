"""Scores of what the plan foresaw for its arms, against what came. Pure but for reading the run folder.

What came is sampled success after the run against `frozen` in the same trial, or against the arm's own start where frozen
did not run, each cell counted the same, with its interval over seeds and items.

- starved is right when a gain of 2 points is excluded, wrong when a gain is shown.
- at risk is right when a loss is shown, wrong when a loss of 2 points is excluded.
- as forecast is right when the outcome lies in its 80 % range, else wrong.
- What is neither right nor wrong cannot be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from mixwright.estimates.outcome import Item, ItemScores, change
from mixwright.estimates.readings import READINGS
from mixwright.plan.forecast import MARGIN
from mixwright.records import Foreseen, Interval
from mixwright.runs import RunFolder
from mixwright.verdict.claims import interval
from mixwright.verdict.evidence import Sides, comparisons, ends, plan_of

SUCCESS = READINGS["sampled"].column
"""What forecasts are about."""
FROZEN = "frozen"
"""The arm that is not trained."""
ScoreWord = Literal["right", "wrong", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Scored:
    """One thing foreseen, and what came of it."""

    foreseen: Foreseen
    """As the plan has it."""
    after: float
    """Sampled success after, mean over cells and seeds, 0..1."""
    change: Interval
    """Against `against`, in sampled success."""
    against: str
    """`frozen`, or `its start` where frozen did not run."""
    word: ScoreWord
    """Whether it came as foreseen; see the module."""


def score_of(said: Foreseen, after: float, change: Interval) -> ScoreWord:
    """Whether it came as foreseen; see the module.

    Args:
        said: before the run.
        after: success after it.
        change: of success, with its interval.
    """
    if said.word == "as forecast":
        return "right" if said.low <= after <= said.high else "wrong"
    if said.word == "starved":
        return "right" if change.high < MARGIN else "wrong" if change.low > 0 else "cannot tell"
    return "right" if change.high < 0 else "wrong" if change.low > -MARGIN else "cannot tell"


def scored(run: RunFolder) -> list[Scored]:
    """Everything foreseen of arms that ran, in the plan's order; empty for plans of earlier versions."""
    plan, found = plan_of(run), []
    if plan is None or not plan.foreseen:
        return []
    own = comparisons(run)
    both = {arm: ends(run, arm, FROZEN) for arm in dict.fromkeys(said.arm for said in plan.foreseen)}
    for said in plan.foreseen:
        sides = both[said.arm] or own.get(said.arm)
        if sides is not None and (came := _came(said, sides, FROZEN if both[said.arm] else "its start")):
            found.append(came)
    return found


def _came(said: Foreseen, sides: Sides, against: str) -> Scored | None:
    items = [item for item in sides[1][0].items if item[0] == said.task]
    moved = change(*sides, decoding="sampled", weigh="cells", only=items)
    if moved is None:
        return None
    after, found = fmean(over_cells(scores, moved.items) for scores in sides[1]), interval(moved.success)
    return Scored(said, after, found, against, score_of(said, after, found))


def over_cells(scores: ItemScores, items: tuple[Item, ...]) -> float:
    """Sampled success over items, each cell counted the same."""
    cells: dict[float | None, list[float]] = {}
    for item, value in zip(items, scores.column(SUCCESS, items).tolist(), strict=True):
        cells.setdefault(item[1], []).append(value)
    return fmean(fmean(values) for values in cells.values())
