"""Section of the answer format that the plan expected to take over, and of the one that did.

Source: forecasts of `share:<form>` in plan.yaml; the same rows after the run, of every seed of the leading arm.
Unit: share of sampled completions in percent; the expected range holds 80 %.
Cost: reads a few small files.
Blind spot: forms that were not among the commonest before the run are not in the forecast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.plan.format_forecast import predict_winner, warnings_of
from mixwright.records import Forecast
from mixwright.runs import RunFolder, read_measurements
from mixwright.skeleton import FORM_SHARE_NAME_PREFIX, OTHER_FORMS
from mixwright.verdict.blocks import Block, Paragraph, Table
from mixwright.verdict.evidence import arm_branches, headline_arm, plan_of
from mixwright.verdict.text import count, percent

Shares = dict[str, dict[str, float]]
"""Task -> form -> share of its completions."""


class FormatsSection(Section):
    """Shares of answer formats: expected and seen, warnings first."""

    ORDER: ClassVar[int] = 46
    TITLE: ClassVar[str] = "Answer formats: which was expected to take over, and which did"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A sentence, warnings and a table; nothing where no task had a choice of formats."""
        plan = plan_of(run)
        expected: dict[str, list[Forecast]] = defaultdict(list)
        for forecast in plan.forecast if plan else ():
            if forecast.name.startswith(FORM_SHARE_NAME_PREFIX):
                expected[forecast.task].append(forecast)
        path = run.measurements("before")
        before = read_measurements(path) if path.is_file() else []
        warned: list[Block] = [Paragraph(text, "caution") for text in warnings_of(before, plan.forecast if plan else ())]
        if not expected:
            return warned
        seen = _after(run)
        rows = [row for task, own in sorted(expected.items()) for row in _rows(task, own, [s for s in seen if task in s])]
        columns = ("task", "format", "before", "expected (80 % range)", "after", "winner")
        return [Paragraph(_score(expected, seen)), *warned, Table("Shares of answer formats", columns, rows, (2, 3, 4))]


def _after(run: RunFolder) -> list[Shares]:
    """Shares after the run, per seed."""
    folders = [folder / "after.parquet" for _, folder in arm_branches(run).get(headline_arm(run), [])] or [
        run.measurements("after")
    ]
    found = []
    for path in folders:
        shares: Shares = defaultdict(dict)
        for row in read_measurements(path) if path.is_file() else ():
            if row.name.startswith(FORM_SHARE_NAME_PREFIX) and row.example is None:
                shares[row.task][row.name.removeprefix(FORM_SHARE_NAME_PREFIX)] = row.value
        found.append(dict(shares))
    return found


def _winners(task: str, seen: list[Shares]) -> Counter[str]:
    """How many seeds each form won: the commonest of the forms that have names."""
    named = [{form: share for form, share in shares.get(task, {}).items() if form != OTHER_FORMS} for shares in seen]
    return Counter(max(shares, key=lambda form: (shares[form], form)) for shares in named if shares)


def _score(expected: dict[str, list[Forecast]], seen: list[Shares]) -> str:
    """How many winners were predicted; chance is one over the number of formats in the forecast."""
    said = {task: predict_winner(own) for task, own in expected.items()}
    open_ = sum(name is None for name in said.values())
    hits = runs = 0
    luck = 0.0
    for task, name in said.items():
        won = _winners(task, seen)
        if name is not None and won:
            hits, runs, luck = hits + won[name], runs + won.total(), luck + won.total() / len(expected[task])
    text = f"{count(len(said), 'task')} had a choice of formats; undecided before the run: {open_}."
    if runs:
        text += f" The predicted format became the commonest in {hits} of {runs} runs; a guess would be right in {luck:.1f}."
    return text


def _rows(task: str, own: list[Forecast], seen: list[Shares]) -> list[tuple[str, ...]]:
    said, won = predict_winner(own), _winners(task, seen)
    rows = []
    for forecast in own:
        form = forecast.name.removeprefix(FORM_SHARE_NAME_PREFIX)
        after = percent(fmean(shares[task].get(form, 0.0) for shares in seen)) if seen else "not measured"
        words = ["predicted"] if form == said else []
        words += [f"won {won[form]} of {won.total()}"] if won[form] else []
        span = f"{percent(forecast.expected)} ({percent(forecast.low)} to {percent(forecast.high)})"
        rows.append((task, form, percent(forecast.before), span, after, ", ".join(words)))
    return rows
