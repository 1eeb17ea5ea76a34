"""Choice of the metric that a task is judged by: the first that says right or wrong of its answers, or the named one.

Source: metrics of a task in the order of its log, those that both logs have.
Unit: 0 or 1, a success, or the mean of those of several samples (avg@n, pass@1). Graded scores, perplexities,
    log-likelihoods and lists are named and not judged: the rules of the gate know success and held-out loss, and partial
    credit is neither. Nor is a metric of several answers together (pass@4, maj@8) a success of one of them.
Cost: one pass over the values.
Blind spot: a metric of 0 and 1 that does not mean right and wrong, such as whether an answer was empty.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mixwright.errors import InputError
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask

LEAST_COVERED = 0.98
"""Share of the answers that the metric with most of them has, from which on another one may be taken."""
_SAMPLES = re.compile(
    r"(?<![a-z])(?P<kind>pass|maj|majority|cons|consensus|best|any|avg|mean)(?:@|\^|_at_)(?:[kn]:)?(?:[kn]=)?(?P<count>\d+)",
    re.IGNORECASE,
)
"""Names of metrics of several samples: `pass@4`, `pass@k:k=4`, `exact_match,maj@8`, `pass_at_1`, `avg@n:n=4`."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
"""Threshold in the name of a metric that is right from a value of another one on: `model_graded_qa>=0.5`."""
WHOLE = ">=1"
"""End of the name of a metric that counts partial credit as wrong."""
_MEANS = ("avg", "mean")
"""Kinds of them that are the mean over samples."""
PARTIAL_CREDIT = "partial credit is neither right nor wrong"
"""What a message says of a metric with values between 0 and 1."""


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
    problems = {name: find_problem(name, logged, answers) for name in shared}
    judged = [name for name in ([wanted] if wanted is not None else shared) if problems[name] is None]
    if wanted is None and judged:  # one that was given to few answers is about these alone
        known = {name: [sum(a.scores.get(name) is not None for a in side) for side in answers] for name in judged}
        most = [max(counts) for counts in zip(*known.values(), strict=True)]
        judged = [
            name
            for name in judged
            if all(count >= LEAST_COVERED * best for count, best in zip(known[name], most, strict=True))
        ] or judged
    if not judged:
        names = [wanted] if wanted is not None else shared
        return MetricChoice(None, "; ".join(f"{name} {problems[name]}" for name in names[:4]))
    others = [name for name in shared if name != judged[0] and problems[name] is None]
    return MetricChoice(judged[0], others=(*others, *unshared))


def add_thresholds(logs: Sequence[EvaluationLog], named: Mapping[str, str]) -> tuple[EvaluationLog, ...]:
    """Add to logs the metrics that are thresholds on others.

    Args:
        logs: of the same tasks.
        named: task -> metric that the user named, perhaps with a threshold. Where none is named, a metric whose answers are
            wrong, right or, fewer than half of them, of one value between gets the threshold 1.
    """
    counts: dict[tuple[str, str], Counter[float]] = defaultdict(Counter)
    for answer in (answer for log in logs for answer in log.answers):
        for name, value in answer.scores.items():
            if value is not None:
                counts[answer.task, name][value] += 1
    wanted: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    for (task, name), count in counts.items():
        between = [value for value in count if value not in (0.0, 1.0)]
        is_half = len(between) == 1 and 0 < between[0] < 1 and 2 * count[between[0]] < count.total()
        is_half = is_half and _SAMPLES.search(name) is None
        if is_half and ">=" not in named.get(task, ""):
            wanted[task][f"{name}{WHOLE}"] = (name, 1.0)
    for task, name in named.items():
        metric, mark, least = name.rpartition(">=")
        if mark and not _NUMBER.fullmatch(least):
            raise InputError("a number behind >= (--grader)", repr(name), f"Write for example {task}={metric}>=0.5.")
        if mark:
            wanted[task][name] = (metric, float(least))
    return tuple(_with_thresholds(log, wanted) for log in logs) if wanted else tuple(logs)


def _with_thresholds(log: EvaluationLog, wanted: Mapping[str, Mapping[str, tuple[str, float]]]) -> EvaluationLog:
    answers = []
    for answer in log.answers:
        scores, readings = dict(answer.scores), dict(answer.readings)
        for name, (metric, least) in wanted.get(answer.task, {}).items():
            value = answer.scores.get(metric)
            scores[name] = None if value is None else float(value >= least)
            readings |= {name: answer.readings[metric]} if metric in answer.readings else {}
        answers.append(replace(answer, scores=scores, readings=readings))
    tasks = {
        name: replace(
            task, metrics=(*task.metrics, *(new for new, (old, _) in wanted.get(name, {}).items() if old in task.metrics))
        )
        for name, task in log.tasks.items()
    }
    return replace(log, answers=tuple(answers), tasks=tasks)


def find_problem(name: str, logged: Iterable[LoggedTask], answers: Iterable[Sequence[LoggedAnswer]]) -> str | None:
    """Why a metric does not say right or wrong of every answer; None where it does."""
    for one in logged:
        if name in one.unread_value_by_metric:
            return f"has {one.unread_value_by_metric[name]} per answer, which is not success"
        if name in one.lower_is_better:
            return "is better when lower, which is not success"
    samples = _SAMPLES.search(name)
    is_mean = samples is not None and (samples["kind"].lower() in _MEANS or int(samples["count"]) == 1)
    if samples is not None and not is_mean:
        return "is about several answers to an item together, not about single answers; log the mean over samples (avg@n)"
    some = False
    for side in answers:
        scored = [(answer, answer.scores.get(name)) for answer in side]
        known = [(answer, value) for answer, value in scored if value is not None]
        if not known:
            return "is missing for all answers of one of the logs"
        for answer, value in known:
            if value not in (0.0, 1.0) and not (is_mean and 0 <= value <= 1):
                found = f"is graded ({value:g} for item {answer.item[:40]!r})"
                return f"{found}, and {PARTIAL_CREDIT}; name a threshold, such as --grader TASK={name}>=0.5"
        some = True
    return None if some else "is missing for all answers"
