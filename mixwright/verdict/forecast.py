"""What the plan expected of each task, against what came: predictions are written before and scored after.

Source: forecast of plan.yaml; before and after of the leading arm.
Unit: success in percent; the expected range holds 80 %.
Cost: reads two small files.
Blind spot: few tasks score a forecaster poorly; the count to expect is said beside the count that came.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import Claim, Forecast
from mixwright.runs import RunFolder
from mixwright.verdict._blocks import Block, Forest, ForestRow, Paragraph, Table
from mixwright.verdict._claims import claims_of
from mixwright.verdict._evidence import SUCCESS, plan_of
from mixwright.verdict._text import between, percent, points

INSIDE = 0.8
"""Share of outcomes that a well calibrated 80 % range holds."""


class ForecastSection(Section):
    """The expected range and the outcome of each task."""

    ORDER: ClassVar[int] = 45
    TITLE: ClassVar[str] = "Forecast against outcome"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A chart and a table of the tasks that have both a forecast and an outcome."""
        plan = plan_of(run)
        outcomes = _by_task(claims_of(run))
        both = [(f, outcomes[f.task]) for f in (plan.forecast if plan else ()) if f.name == SUCCESS and f.task in outcomes]
        if not both:
            return []
        hits = sum(_inside(forecast, claim) for forecast, claim in both)
        text = f"{hits} of {len(both)} outcomes lie inside their 80 % range; {INSIDE * len(both):.1f} were to be expected."
        rows = tuple(ForestRow(f.task, f.expected, f.low, f.high, (claim.after,), _word(f, claim)) for f, claim in both)
        chart = Forest("Expected range (bar) and outcome (dot)", text, "success, %", rows, None, 100.0)
        table = [
            (
                forecast.task,
                percent(forecast.before),
                f"{percent(forecast.expected)} ({percent(forecast.low)} to {percent(forecast.high)})",
                percent(claim.after),
                f"{points(claim.difference.value)} {between(claim.difference.low, claim.difference.high)}",
                _word(forecast, claim),
            )
            for forecast, claim in both
        ]
        columns = ("task", "before", "expected (80 % range)", "outcome", "change, points", "scored")
        return [Paragraph(text), chart, Table("Forecasts, scored", columns, table, (1, 2, 3, 4))]


def _by_task(claims: list[Claim]) -> dict[str, Claim]:
    """The claim about each whole task; like the forecast, its outcome counts every cell the same."""
    several = {claim.task for claim in claims if sum(other.task == claim.task for other in claims) > 1}
    found = {claim.task: claim for claim in claims if claim.level is None or claim.task not in several}
    for task in several & found.keys():
        own = [claim.after for claim in claims if claim.task == task and claim.level is not None]
        found[task] = replace(found[task], after=fmean(own))
    return found


def _inside(forecast: Forecast, claim: Claim) -> bool:
    return forecast.low <= claim.after <= forecast.high


def _word(forecast: Forecast, claim: Claim) -> str:
    if _inside(forecast, claim):
        return "inside"
    return "above" if claim.after > forecast.high else "below"
