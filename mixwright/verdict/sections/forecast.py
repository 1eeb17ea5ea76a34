"""Section of the plan's forecast per task against the outcome: written before the run and scored after.

Source: forecast of plan.yaml; sampled success before and after of the leading arm.
Unit: sampled success (pass@1) in percent, each cell counted once; the expected range holds 80 %.
Cost: reads the plan and the arm's measurements.
Blind spot: few tasks score a forecaster poorly; the count to expect is said beside the count that came.
"""

from __future__ import annotations

from statistics import fmean

from mixwright.contracts import Section
from mixwright.estimates.outcome import estimate_change, mean_score
from mixwright.estimates.readings import READINGS
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Forest, ForestRow, Paragraph, Table
from mixwright.verdict.page.text import format_change, percent
from mixwright.verdict.rules.claims import to_interval
from mixwright.verdict.rules.evidence import leading_sides, plan_of

SUCCESS_COLUMN = READINGS["sampled"].column
"""What forecasts are about."""
RANGE_COVERAGE = 0.8
"""Share of outcomes that a well calibrated 80 % range holds."""


class ForecastSection(Section):
    """The expected range and the outcome of each task."""

    ORDER = 45
    TITLE = "Forecast against outcome"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A chart and a table of the tasks that have both a forecast and an outcome; each cell counts the same."""
        plan, sides = plan_of(run), leading_sides(run)
        if plan is None or sides is None:
            return []
        bars, rows = [], []
        for forecast in (task_forecast for task_forecast in plan.forecast if task_forecast.name == SUCCESS_COLUMN):
            task_items = [item for item in sides[1][0].items if item[0] == forecast.task]
            change = estimate_change(*sides, outcome="sampled", weigh="cells", included=task_items)
            if change is None:
                continue
            after = fmean(mean_score(scores, SUCCESS_COLUMN, change.items, by="cells") for scores in sides[1])
            word = "below" if after < forecast.low else "above" if after > forecast.high else "inside"
            expected_range = f"{percent(forecast.expected)} ({percent(forecast.low)} to {percent(forecast.high)})"
            change_text = format_change(to_interval(change.estimate))
            bars.append(ForestRow(forecast.task, forecast.expected, forecast.low, forecast.high, (after,), word))
            rows.append((forecast.task, percent(forecast.before), expected_range, percent(after), change_text, word))
        if not rows:
            return []
        hits, expected = sum(bar.note == "inside" for bar in bars), RANGE_COVERAGE * len(bars)
        text = f"{hits} of {len(bars)} outcomes lie inside their 80 % range; {expected:.1f} were to be expected."
        chart = Forest("Expected range (bar) and outcome (dot)", text, "sampled success, %", tuple(bars), None, 100.0)
        columns = ("task", "before", "expected (80 % range)", "outcome", "change, points", "scored")
        return [Paragraph(text), chart, Table("Forecasts, scored", columns, rows, (1, 2, 3, 4))]
