"""Section of the plan's forecast per task against the outcome: written before the run and scored after.

Source: forecast of plan.yaml; sampled success before and after of the leading arm.
Unit: sampled success (pass@1) in percent, each cell counted once; the expected range holds 80 %.
Cost: reads the plan and the arm's measurements.
Blind spot: few tasks score a forecaster poorly; the count to expect is said beside the count that came.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.outcome import Item, ItemScores, estimate_change
from mixwright.estimates.readings import READINGS
from mixwright.records import Forecast, Interval
from mixwright.runs import RunFolder
from mixwright.verdict.arm_words import format_change
from mixwright.verdict.blocks import Block, Forest, ForestRow, Paragraph, Table
from mixwright.verdict.claims import interval
from mixwright.verdict.evidence import Sides, comparisons, headline_arm, plan_of
from mixwright.verdict.text import percent

SUCCESS_COLUMN = READINGS["sampled"].column
"""What forecasts are about."""
RANGE_COVERAGE = 0.8
"""Share of outcomes that a well calibrated 80 % range holds."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    forecast: Forecast
    after: float
    change: Interval

    @property
    def word(self) -> str:
        if self.forecast.low <= self.after <= self.forecast.high:
            return "inside"
        return "above" if self.after > self.forecast.high else "below"


class ForecastSection(Section):
    """The expected range and the outcome of each task."""

    ORDER: ClassVar[int] = 45
    TITLE: ClassVar[str] = "Forecast against outcome"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A chart and a table of the tasks that have both a forecast and an outcome."""
        plan, sides = plan_of(run), comparisons(run).get(headline_arm(run))
        if plan is None or sides is None:
            return []
        found = [came for said in plan.forecast if said.name == SUCCESS_COLUMN and (came := _outcome(said, sides))]
        if not found:
            return []
        hits = sum(came.word == "inside" for came in found)
        expected = RANGE_COVERAGE * len(found)
        text = f"{hits} of {len(found)} outcomes lie inside their 80 % range; {expected:.1f} were to be expected."
        rows = tuple(
            ForestRow(
                came.forecast.task, came.forecast.expected, came.forecast.low, came.forecast.high, (came.after,), came.word
            )
            for came in found
        )
        chart = Forest("Expected range (bar) and outcome (dot)", text, "sampled success, %", rows, None, 100.0)
        columns = ("task", "before", "expected (80 % range)", "outcome", "change, points", "scored")
        return [Paragraph(text), chart, Table("Forecasts, scored", columns, [_row(came) for came in found], (1, 2, 3, 4))]


def _row(came: _Outcome) -> tuple[str, ...]:
    said = came.forecast
    span = f"{percent(said.expected)} ({percent(said.low)} to {percent(said.high)})"
    return (said.task, percent(said.before), span, percent(came.after), format_change(came.change), came.word)


def _outcome(forecast: Forecast, sides: Sides) -> _Outcome | None:
    """Like the forecast, the outcome counts every cell the same."""
    own = [item for item in sides[1][0].items if item[0] == forecast.task]
    found = estimate_change(*sides, decoding="sampled", weigh="cells", only=own)
    if found is None:
        return None
    return _Outcome(forecast, fmean(over_cells(scores, found.items) for scores in sides[1]), interval(found.success))


def over_cells(scores: ItemScores, items: tuple[Item, ...]) -> float:
    """Sampled success over items, each cell counted the same."""
    cells: dict[float | None, list[float]] = {}
    for item, value in zip(items, scores.column(SUCCESS_COLUMN, items).tolist(), strict=True):
        cells.setdefault(item[1], []).append(value)
    return fmean(fmean(values) for values in cells.values())
