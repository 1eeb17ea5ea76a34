"""Tasks of two logs that can be judged, each with its metric and its scored pairs; and reasons of those that cannot."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixwright.corpus.levels import bin_levels
from mixwright.errors import join_some
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.exclusion import MEAN_LOSS_MARGIN
from mixwright.estimates.intervals import holm
from mixwright.estimates.judgement import SIGN_ALPHA
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.metrics import choose_metric, find_problem
from mixwright.logs.pairing import Item, PairedTask, collect_items, group_answers, pair_logs

MAX_LOST_SHARE = 0.02
"""Share of BEFORE's items that AFTER may lack or leave unscored: of more, the missing ones may be those that were lost, and
the gate has to exclude a mean loss of 5 points."""

UNPAIRED = {
    "no such item": "items of {side} without a partner in {other}",
    "the same prompt several times": "items of {side} that share their prompt with other items and whose id has no partner",
}
"""Reason why an item has no partner -> words, where they are about one side."""
INCOMPARABLE = "the logs cannot be compared"


@dataclass(frozen=True, slots=True)
class JudgedTask:
    """One task that can be judged."""

    name: str
    """Of the task."""
    metric: str
    """What its answers are judged by."""
    items: tuple[Item, ...]
    """Those that both logs have and that were scored in both, with these answers; of one log all that were scored. Their ids
    are unique over all tasks."""
    other_metrics: tuple[str, ...]
    """What else the logs have."""

    def scores(self, item: Item, side: int) -> list[float]:
        """Score of each answer to an item in one of the logs, 0..1: right or wrong, partial credit, or a mean of samples."""
        return [float(answer.scores[self.metric] or 0.0) for answer in item.answers[side]]


@dataclass(frozen=True, slots=True)
class Caveat:
    """What a reader has to know of a task: what of it is not compared, or how the rest is."""

    task: str
    """Name of the task, or of a file that may have one."""
    count: int
    """Items that it is about."""
    message: str
    """What was seen; one sentence without its point."""
    prevents_pass: bool
    """Whether nothing may be said to be safe because of it: what BEFORE could do here may be lost."""
    reason: str = INCOMPARABLE
    """Why nothing may be said then, in words that follow `where`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two logs, side by side."""

    judged: tuple[JudgedTask, ...]
    """What can be compared."""
    caveats: tuple[Caveat, ...]
    """What cannot, or only in part; and what has to be known of what can."""
    judged_before_alone: tuple[JudgedTask, ...]
    """Tasks of BEFORE that are not among `judged`, without a partner or not comparable with it, where its own scores alone
    can be judged."""
    sampled: bool
    """Whether answers were sampled, or there are several to an item."""


def judge_logs(
    before: EvaluationLog, after: EvaluationLog, metrics: Mapping[str, str], margin: float = MEAN_LOSS_MARGIN
) -> Comparison:
    """Everything that two logs say about the same items.

    Args:
        before: of the model before.
        after: of the model after.
        metrics: task -> metric that the user named.
        margin: mean loss that is to be excluded, a share.

    Raises:
        InputError: a log contradicts itself.
    """
    paired, judged, caveats = pair_logs(before, after), [], []
    for side, log in (("BEFORE", before), ("AFTER", after)):
        caveats += [
            # what AFTER alone has beside it cannot be lost; a task of BEFORE that it lacks is told by itself
            Caveat(name, count, f"{side} {message}", prevents_pass=side == "BEFORE" or name not in log.unread)
            for name, count, message in find_lacking(log)
        ]
    for name, task in paired.items():
        found, seen = _judge_task(name, task, (before.tasks[name], after.tasks[name]), metrics.get(name))
        caveats += seen
        if found is not None:
            binned, notes = _bin_levels(found)
            judged.append(binned)
            caveats += [Caveat(name, len(found.items), note, prevents_pass=False) for note in notes]
    caveats += _list_other_metrics(judged, metrics, margin)
    judged_names = {task.name for task in judged}
    for side, log, other in (("BEFORE", before, after), ("AFTER", after, before)):
        answers = group_answers(log)
        for name in sorted(log.tasks.keys() - other.tasks.keys()):
            count, message = len({answer.item for answer in answers[name]}), f"only {side} has this task"
            caveats.append(Caveat(name, count, message, prevents_pass=side == "BEFORE"))
    answers_before = group_answers(before)
    tried = [
        judge_one(name, before.tasks[name], answers_before[name], metrics.get(name))
        for name in sorted(before.tasks.keys() - judged_names)
    ]
    judged_before_alone = tuple(alone for alone in tried if isinstance(alone, JudgedTask))
    return Comparison(tuple(judged), tuple(caveats), judged_before_alone, is_sampled((before, after), judged))


def _list_other_metrics(judged: Sequence[JudgedTask], named: Mapping[str, str], margin: float) -> list[Caveat]:
    """Other metrics of the same answers that fell, with Holm's correction over all; or that could show a loss at all."""
    changes = [
        (task, metric, before, after, change)
        for task in judged
        for metric in task.other_metrics
        for before, after, change in _compare_by(task.items, metric)
    ]
    adjusted_p_values = holm([change.p for *_, change in changes])
    caveats = []
    for (task, metric, before, after, change), p in zip(changes, adjusted_p_values, strict=True):
        option = f"--grader {shlex.quote(f'{task.name}={metric}')} judges by it"
        success = np.mean([np.mean(task.scores(item, 0)) for item in task.items])
        if change.value < 0 and p < SIGN_ALPHA:
            message = (
                f"judged by {task.metric}; {metric} of the same answers fell from {before:.0%} to {after:.0%}; {option}"
            )
            reason, is_open = "another metric of the same answers fell", task.name not in named
            caveats.append(Caveat(task.name, change.items, message, prevents_pass=is_open, reason=reason))
        elif success < margin <= before:
            message = (
                f"{task.metric} is too low before ({success:.1%}) to show a loss; {metric} is not ({before:.0%}): {option}"
            )
            caveats.append(Caveat(task.name, change.items, message, prevents_pass=False))
    return caveats


def _compare_by(items: Sequence[Item], metric: str) -> Iterator[tuple[float, float, Estimate]]:
    """Mean before and after, and the change, by another metric; nothing where too few items have it in both logs."""
    scores = [
        [[score for answer in side if (score := answer.scores.get(metric)) is not None] for side in item.answers]
        for item in items
    ]
    means = np.array([[sum(side) / len(side) for side in item] for item in scores if all(item)]).reshape(-1, 2)
    if len(means) >= MIN_ITEMS:
        before, after = means.T
        yield before.mean(), after.mean(), estimate_crossed(after - before, np.zeros(len(means), dtype=int))


def find_lacking(log: EvaluationLog) -> list[tuple[str, int, str]]:
    """(Task or file, items, words) where a log has fewer items than its harness counted, or none, or was not read."""
    found = [(name, 0, words) for name, words in log.unread.items()]
    for name, answers in group_answers(log).items():
        here, counted = len({answer.item for answer in answers}), log.tasks[name].counted
        if counted is not None and here < counted:
            found.append((name, counted - here, f"has {here:,} of the {counted:,} items that the harness counted"))
        elif not here:
            found.append((name, 0, "has no answers for this task"))
    return found


def judge_one(name: str, logged: LoggedTask, answers: Sequence[LoggedAnswer], wanted: str | None) -> JudgedTask | str:
    """One task of one log; in words where it cannot be judged. Raises InputError for a log that contradicts itself."""
    items = collect_items(answers)
    choice = choose_metric([logged], [answers], wanted)
    if choice.metric is None:
        return choice.why_none
    found = [_keep_scored(item, choice.metric) for item in items.values()]
    scored = tuple(item for item in found if all(item.answers))
    # some answer was scored, else there is no metric
    return _bin_levels(JudgedTask(name, choice.metric, scored, choice.others))[0]


def _bin_levels(task: JudgedTask) -> tuple[JudgedTask, list[str]]:
    """The task with many-valued levels in bins, as rows of a corpus have them, and a note on it."""
    levels = np.array([np.nan if item.level is None else item.level for item in task.items])
    binned, notes = bin_levels(np.full(len(levels), task.name, dtype=object), levels)
    if not notes:
        return task, []
    items = [
        replace(item, level=None if np.isnan(level) else float(level))
        for item, level in zip(task.items, binned, strict=True)
    ]
    return replace(task, items=tuple(items)), [note.removeprefix(f"{task.name}: ") for note in notes]


def is_sampled(logs: Sequence[EvaluationLog], judged: Sequence[JudgedTask]) -> bool:
    """Whether answers of a judged task were drawn at random, or an item has several."""
    return any(
        any(log.tasks[task.name].sampled for log in logs)
        or any(len(answers) > 1 for item in task.items for answers in item.answers)
        for task in judged
    )


def _judge_task(
    name: str, task: PairedTask, logged: tuple[LoggedTask, LoggedTask], wanted: str | None
) -> tuple[JudgedTask | None, list[Caveat]]:
    """The task as far as it can be judged, and what has to be known of it."""
    count = len(task.pairs) + len(task.before_alone)
    if differences := _list_differences(*(one.settings for one in logged)):
        return None, [Caveat(name, count, f"the two runs differ: {'; '.join(differences)}", prevents_pass=True)]
    caveats = _list_unpaired(name, task)
    if not task.pairs:
        return None, caveats
    sides = [[answer for pair in task.pairs for answer in pair.answers[side]] for side in (0, 1)]
    choice = choose_metric(logged, sides, wanted)
    if choice.metric is None:
        return None, [*caveats, Caveat(name, count, f"cannot be judged: {choice.why_none}", prevents_pass=True)]
    items = [_keep_scored(pair, choice.metric) for pair in task.pairs]
    scored = tuple(item for item in items if all(item.answers))
    caveats += _list_unscored(name, task, items, choice.metric)
    alone = choose_metric(logged[:1], sides[:1], wanted)
    if alone.metric not in (None, choice.metric):
        why = find_problem(alone.metric, logged, sides) or "is not in AFTER, or has too few answers there"
        message = f"BEFORE alone would be judged by {alone.metric}, which {why}; judged by {choice.metric} instead"
        caveats.append(Caveat(name, count, message, prevents_pass=True))
    if choice.metric != wanted and find_problem(choice.metric, logged, sides):
        counts = [sum(0 < (answer.scores.get(choice.metric) or 0.0) < 1 for answer in side) for side in sides]
        message = (
            f"partial credit counts as its share: {counts[0]:,} answers before and {counts[1]:,} after; "
            f"--grader {shlex.quote(f'{name}={choice.metric}>=1')} counts it as wrong"
        )
        caveats.append(Caveat(name, sum(counts), message, prevents_pass=False))
    if task.by_id:
        message = f"items paired by id only, because they have no distinct prompts: {task.by_id:,}"
        caveats.append(Caveat(name, task.by_id, message, prevents_pass=False))
    if unknown := sorted(logged[0].settings.keys() ^ logged[1].settings.keys()):
        message = f"stated in only one of the logs, so not compared: {join_some(unknown)}"
        caveats.append(Caveat(name, len(scored), message, prevents_pass=False))
    lost = len(task.before_alone) + sum(bool(item.answers[0]) and not item.answers[1] for item in items)
    if not scored or lost > MAX_LOST_SHARE * count:
        message = f"items of BEFORE that could not be compared: {lost:,} of {count:,}, which may hide a loss"
        caveats.append(Caveat(name, lost, message, prevents_pass=True))
    return (JudgedTask(name, choice.metric, scored, choice.others) if scored else None), caveats


def _list_differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What both logs say of a task, each something else: `few-shot examples: 5 before, 0 after`."""
    return [
        f"{name}: {before[name]} before, {after[name]} after"
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]


def _keep_scored(item: Item, metric: str) -> Item:
    """The item with the answers that have a score, under an id that is unique over all tasks."""
    scored = tuple(tuple(answer for answer in own if answer.scores.get(metric) is not None) for own in item.answers)
    return replace(item, id=f"{item.task}/{item.id}", answers=scored)


def _list_unpaired(task_name: str, task: PairedTask) -> list[Caveat]:
    """Items without a partner, by reason; where none has a partner, nothing says what became of the task."""
    caveats = []
    for side, other, alone in (("BEFORE", "AFTER", task.before_alone), ("AFTER", "BEFORE", task.after_alone)):
        for reason, count in sorted(Counter(alone.values()).items()):
            if reason not in UNPAIRED and side == "AFTER":
                continue  # the same items, told once
            names = join_some([name for name, why in alone.items() if why == reason][:3])
            words = UNPAIRED.get(reason, f"items with {reason} in AFTER").format(side=side, other=other)
            blocks = not task.pairs and side == "BEFORE"
            caveats.append(Caveat(task_name, count, f"{words}: {count:,} ({names})", prevents_pass=blocks))
    return caveats


def _list_unscored(name: str, task: PairedTask, items: Sequence[Item], metric: str) -> list[Caveat]:
    """Items that one side did not score, such as those whose run ended in an error; and answers without a score beside
    scored ones of their item: those that failed may be the wrong ones.
    """
    caveats = []
    # items that BEFORE did not score and that are wrong after may be those that were lost
    scores = [[answer.scores[metric] or 0.0 for answer in item.answers[1]] for item in items if not item.answers[0]]
    wrong_after = sum(bool(own) and sum(own) < len(own) / 2 for own in scores)
    for side, when in enumerate(("before", "after")):
        if names := [item.id for item in items if not item.answers[side]]:
            message = f"items without {metric} {when}: {len(names):,} ({join_some(names[:3])})"
            hides = side == 0 and wrong_after > MAX_LOST_SHARE * len(items)
            caveats.append(Caveat(name, len(names), message, prevents_pass=hides))
        total = sum(len(pair.answers[side]) for pair, item in zip(task.pairs, items, strict=True) if item.answers[side])
        if missing := total - sum(len(item.answers[side]) for item in items):
            message = (
                f"answers without {metric} {when}: {missing:,} of {total:,}, although other answers to "
                "the same items have it"
            )
            lost = side == 1 and missing > MAX_LOST_SHARE * total
            caveats.append(Caveat(name, missing, message, prevents_pass=lost))
    return caveats
