"""Section of the answer format that the plan expected to take over, and of the one that did.

Source: forecasts of `share:<form>` in plan.yaml; the same rows after the run, of every seed of the leading arm.
Unit: share of sampled completions in percent; the expected range holds 80 %.
Cost: reads a few small files.
Blind spot: forms that were not among the commonest before the run are not in the forecast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

from mixwright.contracts import Section
from mixwright.plan.format_forecast import predict_winner, warnings_of
from mixwright.records import Forecast
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.skeleton import FORM_SHARE_NAME_PREFIX, OTHER_FORMS
from mixwright.verdict.page.blocks import Block, Paragraph, Table
from mixwright.verdict.page.text import format_count, percent
from mixwright.verdict.rules.evidence import leading_folders, plan_of

Shares = dict[str, dict[str, float]]
"""Task -> form -> share of its completions."""


class FormatsSection(Section):
    """Shares of answer formats: expected and seen, warnings first."""

    ORDER = 46
    TITLE = "Answer formats: which was expected to take over, and which did"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A sentence, warnings and a table; nothing where no task had a choice of formats."""
        plan, path = plan_of(run), run.measurements("before")
        if plan is None:
            return []
        expected: dict[str, list[Forecast]] = defaultdict(list)
        for forecast in plan.forecast:
            if forecast.name.startswith(FORM_SHARE_NAME_PREFIX):
                expected[forecast.task].append(forecast)
        measured = read_measurements(path) if path.is_file() else []
        warnings = [Paragraph(text, "caution") for text in warnings_of(measured, plan)]
        if not expected:
            return [*warnings]
        shares_by_seed = _read_shares_after(run)
        rows, undecided, hits, runs, expected_by_guess = [], 0, 0, 0, 0.0
        for task, forecasts_of_task in sorted(expected.items()):
            winner, shares = (
                predict_winner(forecasts_of_task),
                [seed_shares[task] for seed_shares in shares_by_seed if task in seed_shares],
            )
            wins = Counter(_find_winner(forms) for forms in shares if forms.keys() - {OTHER_FORMS})
            undecided += winner is None
            if winner is not None:  # a guess is right as often as there are formats in the forecast
                hits, runs, expected_by_guess = (
                    hits + wins[winner],
                    runs + wins.total(),
                    expected_by_guess + wins.total() / len(forecasts_of_task),
                )
            rows += [_form_row(forecast, winner, wins, shares) for forecast in forecasts_of_task]
        text = f"{format_count(len(expected), 'task')} had a choice of formats; undecided before the run: {undecided}."
        if runs:
            text += f" The predicted format became the commonest in {hits} of {runs} runs; "
            text += f"a guess would be right in {expected_by_guess:.1f}."
        columns = ("task", "format", "before", "expected (80 % range)", "after", "winner")
        return [Paragraph(text), *warnings, Table("Shares of answer formats", columns, rows, (2, 3, 4))]


def _read_shares_after(run: RunFolder) -> list[Shares]:
    """Shares after the run, per seed."""
    shares_by_seed = []
    for path in [folder / "after.parquet" for folder in leading_folders(run)] or [run.measurements("after")]:
        shares: Shares = defaultdict(dict)
        for row in read_measurements(path) if path.is_file() else ():
            if row.name.startswith(FORM_SHARE_NAME_PREFIX) and row.example is None:
                shares[row.task][row.name.removeprefix(FORM_SHARE_NAME_PREFIX)] = row.value
        shares_by_seed.append(dict(shares))
    return shares_by_seed


def _find_winner(shares: dict[str, float]) -> str:
    """The commonest of the forms that have names."""
    return max((form for form in shares if form != OTHER_FORMS), key=lambda form: (shares[form], form))


def _form_row(
    forecast: Forecast, winner: str | None, wins: Counter[str], shares_by_seed: Sequence[dict[str, float]]
) -> tuple[str, ...]:
    form = forecast.name.removeprefix(FORM_SHARE_NAME_PREFIX)
    after = percent(fmean(shares.get(form, 0.0) for shares in shares_by_seed)) if shares_by_seed else "not measured"
    words = ["predicted"] if form == winner else []
    words += [f"won {wins[form]} of {wins.total()}"] if wins[form] else []
    expected_range = f"{percent(forecast.expected)} ({percent(forecast.low)} to {percent(forecast.high)})"
    return forecast.task, form, percent(forecast.before), expected_range, after, ", ".join(words)
