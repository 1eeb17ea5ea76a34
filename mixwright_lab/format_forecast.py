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
from dataclasses import dataclass

from mixwright.records import Measurement
from mixwright_lab.format_shares import FORM_ACCURACY_NAME_PREFIX, FORM_SHARE_NAME_PREFIX, IN_USE_SHARE, OTHER_FORMS

PUSH_NATS = 0.25
"""Nats by which the log-odds of two formats move per optimiser step and unit of difference in accuracy. It goes with the
learning rate; this one was fitted at 5e-4 with Adam on tiny models, and its score says how well it transfers."""
PUSH_ERROR_SHARE = 0.3
"""Standard error of `PUSH_NATS`, as a share of it; fitted with it."""
WANDER_NATS = 0.1
"""Nats by which the log-odds of equally good formats wander in a step (times the root of steps); fitted with `PUSH_NATS`."""
COVERED_SHARE = 0.8
"""Formats are a choice of formats where the commonest cover this share; else forms are content, and nothing is forecast."""
CONTENT_SHARE = 0.05
"""Share of gold answers from which a form is one that questions ask for. Where they ask for several (numbers with and
without a sign), the question decides, and nothing is forecast either."""
Z80 = 1.2816
"""Half-width of an 80 % range in standard errors."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected share of one answer format after a run."""

    task: str
    """Task name."""
    name: str
    """Measurement, `share:<form>`."""
    before: float
    """Share before."""
    expected: float
    """Expected share after."""
    low: float
    """Lower end of the 80 % range."""
    high: float
    """Upper end of the 80 % range."""


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
    row_by_name = {(row.task, row.name): row for row in rows if row.probe == "formats"}
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
