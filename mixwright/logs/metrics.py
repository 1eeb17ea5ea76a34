"""Choice of the metric that a task is judged by: the first that says right or wrong of its answers, or the named one.

Source: metrics of a task in the order of its log, those that both logs have.
Unit: 0 or 1, a success, or the mean of those of several samples (avg@n, pass@1). Without one, the first graded score from 0
    to 1, whose mean is compared. Scores on another scale count as shares of it once the user names its ends. A metric of
    several answers together (pass@4, maj@8) is no success of one of them.
Cost: one pass over the values.
Blind spot: a metric of 0 and 1 that does not mean right and wrong, such as whether an answer was empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask

LEAST_COVERED = 0.98
"""Share of the answers that the metric with most of them has, from which on another one may be taken."""
_SAMPLES = re.compile(
    r"(?<![a-z])(?P<kind>pass|maj|majority|cons|consensus|best|any|avg|mean)(?:@|\^|_at_)(?:[kn]:)?(?:[kn]=)?(?P<count>\d+)",
    re.IGNORECASE,
)
"""Names of metrics of several samples: `pass@4`, `pass@k:k=4`, `exact_match,maj@8`, `pass_at_1`, `avg@n:n=4`."""
_NUMBER = r"-?\d+(?:\.\d+)?"
_DERIVED = re.compile(rf"(?P<metric>.+)(?:>=(?P<least>{_NUMBER})|:(?P<worst>{_NUMBER})\.\.(?P<best>{_NUMBER}))", re.DOTALL)
"""Name of a metric that is right from a value of another one on, or its share of a scale: `model_graded_qa>=0.5`,
`rating:1..10`, `ter:100..0`."""
_MEANS = ("avg", "mean")
"""Kinds of them that are the mean over samples."""


@dataclass(frozen=True, slots=True)
class MetricChoice:
    """What a task is judged by, or why it is not."""

    metric: str | None
    """Name; None where none can be judged."""
    why_none: str = ""
    """Why no metric can be judged, in words that follow the name of the task."""
    others: tuple[str, ...] = ()
    """Further metrics that could be judged, or that only one of the logs has."""


def choose_metric(
    logged: Sequence[LoggedTask], answers: Sequence[Sequence[LoggedAnswer]], wanted: str | None = None
) -> MetricChoice:
    """The metric of a task.

    Args:
        logged: the task in each log.
        answers: its answers in each log.
        wanted: name that the user gave, if any.
    """
    first, *rest = logged
    shared = [name for name in first.metrics if all(name in other.metrics for other in rest)]
    unshared = sorted({name for one in logged for name in one.metrics} - set(shared))
    if not shared:
        if not rest:
            return MetricChoice(None, "its answers have no scores; score them first")
        return MetricChoice(None, f"the logs share no metric ({', '.join(unshared) or 'there is none'})")
    if wanted is not None and wanted not in shared:
        return MetricChoice(None, f"no metric {wanted!r}{' in both logs' if rest else ''}; there are {', '.join(shared)}")
    names, problems, judged = shared if wanted is None else [wanted], dict[str, str | None](), list[str]()
    for graded in (True,) if wanted is not None else (False, True):  # right or wrong comes first
        problems = {name: find_problem(name, logged, answers, graded=graded) for name in names}
        judged = [name for name in names if problems[name] is None]
        if judged:
            break
    if wanted is None and judged:  # one that was given to few answers is about these alone
        known = {name: [sum(a.scores.get(name) is not None for a in side) for side in answers] for name in judged}
        most = [max(counts) for counts in zip(*known.values(), strict=True)]
        judged = [
            name
            for name in judged
            if all(count >= LEAST_COVERED * best for count, best in zip(known[name], most, strict=True))
        ] or judged
    if not judged:
        return MetricChoice(None, "; ".join(f"{name} {problems[name]}" for name in names[:4]))
    others = [name for name in shared if name != judged[0] and find_problem(name, logged, answers) is None]
    return MetricChoice(judged[0], others=(*others, *unshared))


def base_of(name: str) -> str:
    """Return the metric of the log that a named metric is made of."""
    derived = _DERIVED.fullmatch(name)
    return name if derived is None else derived["metric"]


def add_named(logs: Sequence[EvaluationLog], named: Mapping[str, str]) -> tuple[EvaluationLog, ...]:
    """Add to logs the named metrics that are thresholds on others, or shares of their scale.

    Args:
        logs: of the same tasks.
        named: task -> metric that the user named.

    Raises:
        InputError: both ends of a scale are the same, or a score is beyond them.
    """
    wanted = {task: derived for task, name in named.items() if (derived := _DERIVED.fullmatch(name))}
    return tuple(_with_derived(log, wanted) for log in logs) if wanted else tuple(logs)


def _with_derived(log: EvaluationLog, wanted: Mapping[str, re.Match[str]]) -> EvaluationLog:
    answers, tasks = [], dict(log.tasks)
    for answer in log.answers:
        if (derived := wanted.get(answer.task)) and (metric := derived["metric"]) in answer.scores:
            readings = {derived[0]: answer.readings[metric]} if metric in answer.readings else {}
            scores = {**answer.scores, derived[0]: _derive(derived, answer.scores[metric], answer)}
            answer = replace(answer, scores=scores, readings={**answer.readings, **readings})
        answers.append(answer)
    for name, derived in wanted.items():
        if name in tasks and derived["metric"] in tasks[name].metrics:
            tasks[name] = replace(tasks[name], metrics=(*tasks[name].metrics, derived[0]))
    return replace(log, answers=tuple(answers), tasks=tasks)


def _derive(derived: re.Match[str], value: float | None, answer: LoggedAnswer) -> float | None:
    """Return 0 or 1 of a threshold, or the share of a scale. Raises InputError for a score beyond its ends."""
    if value is None:
        return None
    if derived["least"] is not None:
        return float(value >= float(derived["least"]))
    worst, best = float(derived["worst"]), float(derived["best"])
    if worst == best or not min(worst, best) <= value <= max(worst, best):
        expected = f"two ends of a scale that holds all scores ({derived[0]})"
        raise answer.location.error(expected, f"{value:g}", "Name its worst and its best score: METRIC:WORST..BEST.")
    return (value - worst) / (best - worst)


def find_problem(
    name: str, logged: Iterable[LoggedTask], answers: Iterable[Sequence[LoggedAnswer]], *, graded: bool = False
) -> str | None:
    """Why a metric does not say right or wrong of every answer, or, if `graded`, give it from 0 to 1; None where it does."""
    for one in logged:
        if name in one.unread_value_by_metric:
            return f"has {one.unread_value_by_metric[name]} per answer, which is not success"
        if name in one.lower_is_better:
            return f"is better when lower; name its worst and best score, such as --grader TASK={name}:100..0"
    samples = _SAMPLES.search(name)
    is_mean = samples is not None and (samples["kind"].lower() in _MEANS or int(samples["count"]) == 1)
    if samples is not None and not is_mean:
        return "is about several answers to an item together, not about single answers; log the mean over samples (avg@n)"
    for side in answers:
        known = [(answer, value) for answer in side if (value := answer.scores.get(name)) is not None]
        if not known:
            return "is missing for all answers of one of the logs"
        for answer, value in known:
            if value not in (0.0, 1.0) and not ((is_mean or graded) and 0 <= value <= 1):
                found = f"is not from 0 to 1 ({value:g} for item {answer.item[:40]!r})"
                return f"{found}; name its worst and best score, such as --grader TASK={name}:0..100"
    return None
