"""Forecast of the answer format that takes over, from two numbers per format: its share and how often it is right.

Rewards push each format up in proportion to its accuracy above the mean: replicator dynamics, as Zhao et al. 2025
(arXiv 2504.07912) show them under reinforcement learning. The log-odds of two formats then move in a line, by `PUSH_NATS`
x the difference of their accuracies per step, and cross at step ln(share_j / share_i) / (PUSH_NATS x (accuracy_i -
accuracy_j)): a rare format wins if it is right more often and the run is long enough. Left out: accuracies that move, and
lengths.

Scored on 20 mixes of three formats (the study `formats`): 17 winners predicted, all of the 14 that it called decided;
chance is 1 in 3, share alone 13, accuracy alone 16, share x accuracy 17. So it is not shown to beat the two simple rules;
what it adds is a step, a range and "undecided". The 80 % ranges held 43 of 60 shares.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mixwright.records import Forecast, Measurement, Plan
from mixwright.skeleton import FORM_ACCURACY_NAME_PREFIX, FORM_SHARE_NAME_PREFIX, OTHER_FORMS

PUSH_NATS = 0.25
"""Nats by which the log-odds of two formats move per optimiser step and unit of difference in accuracy. It goes with the
learning rate; this one was fitted at 5e-4 with Adam on tiny models, and its score says how well it transfers."""
PUSH_ERROR_SHARE = 0.3
"""Standard error of `PUSH_NATS`, as a share of it; fitted with it."""
WANDER_NATS = 0.1
"""Nats by which the log-odds of equally good formats wander in a step (times the root of steps); fitted with `PUSH_NATS`."""
IN_USE_SHARE = 0.02
"""Share from which a format is in use: rarer ones are hardly ever sampled, so they are hardly ever rewarded."""
COVERED_SHARE = 0.8
"""Formats are a choice of formats where the commonest cover this share; else forms are content, and nothing is forecast."""
CONTENT_SHARE = 0.05
"""Share of gold answers from which a form is one that questions ask for. Where they ask for several (numbers with and
without a sign), the question decides, and nothing is forecast either."""
LOW_ACCURACY = 0.1
"""Accuracy of a task below which a gold form that is not in use is worth a word."""
Z80 = 1.2816
"""Half-width of an 80 % range in standard errors."""


@dataclass(frozen=True)
class FormatShare:
    """Share and accuracy of one answer format, measured before the run."""

    form: str
    """Its skeleton."""
    share: float
    """Of the sampled completions, above 0."""
    accuracy: float
    """Mean success of its completions, 0..1."""
    share_error: float = 0.0
    """Standard error of the share."""
    accuracy_error: float = 0.0
    """Standard error of the accuracy."""


def projected_shares(shares: Sequence[float], accuracies: Sequence[float], pushed: float) -> list[float]:
    """Shares after `pushed` (`PUSH_NATS` x steps) nats per unit of accuracy: share x exp(pushed x accuracy), scaled to 1."""
    weights = [math.log(s) + pushed * a if s > 0 else -math.inf for s, a in zip(shares, accuracies, strict=True)]
    max_weight = max(weights)
    weights_relative = [math.exp(weight - max_weight) for weight in weights]
    return [relative_weight / math.fsum(weights_relative) for relative_weight in weights_relative]


def steps_to_cross(rarer: FormatShare, commonest: FormatShare, push: float = PUSH_NATS) -> float:
    """Steps until `rarer` is as common as `commonest`: 0 when it is already, infinite when it is not gaining."""
    gap_nats, gain_nats = math.log(commonest.share / rarer.share), push * (rarer.accuracy - commonest.accuracy)
    return 0.0 if gap_nats <= 0 else gap_nats / gain_nats if gain_nats > 0 else math.inf


def forecast_formats(task: str, choices: Sequence[FormatShare], steps: int, push: float = PUSH_NATS) -> list[Forecast]:
    """Share of each format after `steps`, commonest first, with an 80 % range.

    The range counts the errors of a format's share and accuracy, those of its strongest rival, and the rule's own.

    Raises:
        ValueError: no formats.
    """
    pushed = push * steps
    final_shares = projected_shares([r.share for r in choices], [r.accuracy for r in choices], pushed)
    errors = [math.hypot(r.share_error / r.share, pushed * r.accuracy_error) for r in choices]
    forecasts = []
    for position, (choice, final_share) in enumerate(zip(choices, final_shares, strict=True)):
        rival = max(
            (other_position for other_position in range(len(choices)) if other_position != position),
            key=lambda other_position: final_shares[other_position],
            default=position,
        )
        accuracy_lead = choice.accuracy - choices[rival].accuracy
        rule_error = math.hypot(PUSH_ERROR_SHARE * pushed * accuracy_lead, WANDER_NATS * math.sqrt(steps))
        error = Z80 * math.hypot(errors[position], errors[rival], rule_error)
        low, high = (_shift_log_odds(final_share, nats) for nats in (-error, error))
        numbers = (round(number, 4) for number in (choice.share, final_share, low, high))
        forecasts.append(Forecast(task, FORM_SHARE_NAME_PREFIX + choice.form, *numbers))
    return sorted(forecasts, key=lambda forecast: (-forecast.expected, forecast.name))


def _shift_log_odds(share: float, nats: float) -> float:
    """A share after its log-odds against all others moved."""
    return 1.0 if share >= 1 else 1 / (1 + (1 - share) / share * math.exp(-nats)) if share > 0 else 0.0


def predict_winner(forecasts: Iterable[Forecast]) -> str | None:
    """The format that one task's forecasts say will be the commonest; None (undecided) where the best two ranges overlap."""
    likeliest, *other_forecasts = sorted(forecasts, key=lambda forecast: -forecast.expected)
    undecided = likeliest.name == FORM_SHARE_NAME_PREFIX + OTHER_FORMS or any(
        likeliest.low <= other_forecast.high for other_forecast in other_forecasts
    )
    return None if undecided else likeliest.name.removeprefix(FORM_SHARE_NAME_PREFIX)


def formats_of(rows: Sequence[Measurement]) -> dict[str, list[FormatShare]]:
    """Task -> its formats in use, commonest first, from the rows of the probe; only tasks that have a choice of formats."""
    row_by_name = {(row.task, row.name): row for row in rows if row.example is None and row.probe == "formats"}
    gold_form_counts: Counter[str] = Counter()
    formats_by_task: dict[str, list[FormatShare]] = {}
    for (task, name), row in row_by_name.items():
        if not name.startswith(FORM_SHARE_NAME_PREFIX):
            continue
        gold_form_counts[task] += (row.null or 0.0) >= CONTENT_SHARE
        form = name.removeprefix(FORM_SHARE_NAME_PREFIX)
        accuracy_row = row_by_name.get((task, FORM_ACCURACY_NAME_PREFIX + form))
        if accuracy_row is not None and row.value >= IN_USE_SHARE:
            format_share = FormatShare(
                form, row.value, accuracy_row.value, _standard_error(row), _standard_error(accuracy_row)
            )
            formats_by_task.setdefault(task, []).append(format_share)
    choices = {
        task: task_formats
        for task, task_formats in formats_by_task.items()
        if len(task_formats) > 1 and gold_form_counts[task] < 2
    }
    covered_tasks = {
        task
        for task, task_formats in choices.items()
        if sum(r.share for r in task_formats if r.form != OTHER_FORMS) >= COVERED_SHARE
    }
    return {task: sorted(choices[task], key=lambda r: (-r.share, r.form)) for task in choices if task in covered_tasks}


def _standard_error(row: Measurement) -> float:
    return (row.high - row.low) / 2 / 1.96


def with_format_forecasts(plan: Plan, rows: Sequence[Measurement]) -> Plan:
    """The plan with a forecast and its reason for each format of each task that has a choice of formats. Pure.

    Args:
        plan: its GRPO steps are those that a forecast is for; without any it stays as it is.
        rows: measurements before the run.
    """
    steps = _rewarded_steps(plan)
    forecasts, why = list(plan.forecast), dict(plan.why)
    for task, choices in sorted(formats_of(rows).items()) if steps else ():
        expected = forecast_formats(task, choices, steps)
        for forecast in expected:
            why[f"forecast.{len(forecasts)}.expected"] = _explain_forecast(forecast, choices, expected, steps)
            forecasts.append(forecast)
    return replace(plan, forecast=tuple(forecasts), why=why)


def _rewarded_steps(plan: Plan) -> int:
    return sum(stage.steps for stage in plan.stages if stage.objective == "grpo")


def _explain_forecast(forecast: Forecast, choices: Sequence[FormatShare], expected: Sequence[Forecast], steps: int) -> str:
    """How one format's forecast came about; `choices` are of its task, commonest first."""
    own_format = next(r for r in choices if FORM_SHARE_NAME_PREFIX + r.form == forecast.name)
    winner = predict_winner(expected)
    crossing_step = steps_to_cross(own_format, choices[0])
    crossing_note = f"; as common as {choices[0].form!r} at step {crossing_step:.0f}" if 0 < crossing_step <= steps else ""
    ending = (
        f"{winner!r} is expected to be the commonest" if winner is not None else "none leads for sure: the ranges overlap"
    )
    pace = f"log-odds move by {PUSH_NATS:g} nats per step and unit of accuracy"
    numbers = f"share {own_format.share:.0%}, right {own_format.accuracy:.0%}"
    return f"{numbers}, {pace}{crossing_note}; of {len(choices)} formats {ending}"


def warnings_of(rows: Sequence[Measurement], plan: Plan | None) -> list[str]:
    """One sentence per task whose predicted winner is not its most accurate format, and per gold form that is not in use.

    Args:
        rows: measurements before the run.
        plan: with its forecasts; nothing is said without one, or where it has no steps that are rewarded.
    """
    if plan is None or not _rewarded_steps(plan):
        return []
    expected: dict[str, list[Forecast]] = {}
    for forecast in plan.forecast:
        if forecast.name.startswith(FORM_SHARE_NAME_PREFIX):
            expected.setdefault(forecast.task, []).append(forecast)
    warnings, formats = [], formats_of(rows)
    for task, task_forecasts in sorted(expected.items()):
        winner, choices = predict_winner(task_forecasts), {choice.form: choice for choice in formats.get(task, ())}
        if winner is None or winner not in choices:
            continue
        winning, best = choices[winner], max(choices.values(), key=lambda choice: choice.accuracy)
        if best.accuracy - winning.accuracy > Z80 * math.hypot(winning.accuracy_error, best.accuracy_error):
            warnings.append(
                f"{task}: format {winner!r} (right {winning.accuracy:.0%}) is expected to crowd out {best.form!r} "
                f"(right {best.accuracy:.0%}, share {best.share:.0%}). To keep that, start with beta > 0 or train it by SFT."
            )
    return warnings + _warn_of_unused_forms(rows)


def _warn_of_unused_forms(rows: Sequence[Measurement]) -> list[str]:
    """Gold forms that the model hardly writes, in tasks in which hardly anything is right, sampled or greedy."""
    task_rows = [row for row in rows if row.null is not None and row.example is None]
    accuracy_by_task = {row.task: row.null or 0.0 for row in task_rows if row.name.startswith(FORM_ACCURACY_NAME_PREFIX)}
    greedy = [row for row in task_rows if (row.probe, row.name) == ("competence", "greedy")]
    tasks_in_reach = {task for task, share in accuracy_by_task.items() if share >= LOW_ACCURACY}
    tasks_in_reach |= {row.task for row in greedy if row.value >= LOW_ACCURACY}
    warnings = []
    for row in task_rows:
        form = row.name.removeprefix(FORM_SHARE_NAME_PREFIX)
        if form in (row.name, OTHER_FORMS) or row.task in tasks_in_reach:
            continue
        if (row.null or 0.0) >= 0.5 and row.value < IN_USE_SHARE:
            accuracy = accuracy_by_task.get(row.task, 0.0)
            finding = f"{row.task}: {accuracy:.0%} of samples are right; gold answers look like {form!r}"
            remedy = "If that is wanted, rewards will hardly ever reach it: train it by SFT first."
            warnings.append(f"{finding}, {row.value:.1%} of samples do. {remedy}")
    return warnings
