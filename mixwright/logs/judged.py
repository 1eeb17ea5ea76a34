"""Tasks of two logs that can be judged, each with its metric and its scored pairs; and reasons of those that cannot."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
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
from mixwright.estimates.loss_limits import Z_CELL, cell_loss_limits, excludes_cell_loss
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.metrics import choose_metric, find_problem
from mixwright.logs.pairing import Item, PairedTask, collect_items, find_unknown_settings, group_answers, pair_logs

MAX_LOST_SHARE = 0.02
"""Share of BEFORE's items that AFTER may lack or leave unscored: of more, the missing ones may be those that were lost, and
the gate has to exclude a mean loss of 5 points."""

INCOMPARABLE = "the logs cannot be compared"


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """One item with the answers that were scored, of one log or of two."""

    id: str
    """Unique over all tasks."""
    task: str
    """Name of the task."""
    level: float | None
    """Difficulty."""
    prompt: str | None
    """What was asked."""
    gold: str | None
    """The right answer."""
    options: tuple[str, ...]
    """Texts of the options, where there are any."""
    answers: tuple[tuple[LoggedAnswer, ...], ...]
    """Scored answers of each log, in the order of the logs."""


@dataclass(frozen=True, slots=True)
class JudgedTask:
    """One task that can be judged."""

    name: str
    """Of the task."""
    metric: str
    """What its answers are judged by."""
    items: tuple[JudgedItem, ...]
    """Those that both logs have and that were scored in both; of one log all that were scored."""
    other_metrics: tuple[str, ...]
    """What else the logs have."""

    def scores(self, item: JudgedItem, side: int) -> list[float]:
        """0 or 1 of each answer to an item in one of the logs, or the mean of samples that stand as one answer."""
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
    paired, judged, caveats, judged_before_alone = pair_logs(before, after), [], [], []
    for side, log in (("BEFORE", before), ("AFTER", after)):
        caveats += [
            # what AFTER alone has beside it cannot be lost; a task of BEFORE that it lacks is told by itself
            Caveat(name, count, f"{side} {message}", prevents_pass=side == "BEFORE" or name not in log.unread)
            for name, count, message in find_lacking(log)
        ]
    for name, task in paired.items():
        found, seen = _judge_task(task, (before.tasks[name], after.tasks[name]), metrics.get(name))
        caveats += seen
        if found is not None:
            binned, notes = _bin_levels(found)
            judged.append(binned)
            caveats += [Caveat(name, len(found.items), note, prevents_pass=False) for note in notes]
            caveats += _list_lost_levels(found) if notes else []
    caveats += _list_other_metrics(judged, metrics, margin)
    judged_names = {task.name for task in judged}
    answers_by_task = group_answers(before)
    for name in sorted(before.tasks.keys() - judged_names):
        answers = answers_by_task[name]
        if name not in after.tasks:
            count = len({answer.item for answer in answers})
            caveats.append(Caveat(name, count, "only BEFORE has this task", prevents_pass=True))
        alone = judge_one(name, before.tasks[name], answers, metrics.get(name))
        if isinstance(alone, JudgedTask):
            judged_before_alone.append(alone)
    answers_by_task = group_answers(after)
    for name in sorted(after.tasks.keys() - before.tasks.keys()):
        count = len({answer.item for answer in answers_by_task[name]})
        caveats.append(Caveat(name, count, "only AFTER has this task", prevents_pass=False))
    return Comparison(tuple(judged), tuple(caveats), tuple(judged_before_alone), is_sampled((before, after), judged))


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


def _compare_by(items: Sequence[JudgedItem], metric: str) -> Iterator[tuple[float, float, Estimate]]:
    """Mean before and after, and the change, by another metric; nothing where too few items have it in both logs."""
    scores = [
        [[score for answer in side if (score := answer.scores.get(metric)) is not None] for side in item.answers]
        for item in items
    ]
    means = np.array([[sum(side) / len(side) for side in item] for item in scores if all(item)]).reshape(-1, 2)
    if len(means) >= MIN_ITEMS:
        before, after = means.T
        yield before.mean(), after.mean(), estimate_crossed(after - before, np.zeros(len(means), dtype=int))


def _list_lost_levels(task: JudgedTask) -> list[Caveat]:
    """Levels that were put into bins, and whose own items do not exclude the loss that cells of their size have to."""
    items_by_level: dict[float, list[JudgedItem]] = defaultdict(list)
    for item in task.items:
        if item.level is not None:
            items_by_level[item.level].append(item)
    large = {level: items for level, items in items_by_level.items() if len(items) >= MIN_ITEMS}
    limits = cell_loss_limits(tuple(sorted(map(len, large.values()))))
    lost = []
    for level, items in sorted(large.items()):
        changes = np.array([np.mean(task.scores(item, 1)) - np.mean(task.scores(item, 0)) for item in items], dtype=float)
        change = estimate_crossed(changes, np.zeros(len(items), dtype=int), pseudo_quantile=Z_CELL)
        limit = limits.get(len(items))
        if limit is not None and not excludes_cell_loss(change, limit):
            lost.append(f"{level:g} ({change.value:+.0%})")
    if not lost:
        return []
    message = f"levels that may have lost {min(limits.values()):.0%} or more: {len(lost)} of {len(large)}, {join_some(lost)}"
    return [Caveat(task.name, len(lost), message, prevents_pass=True, reason="single levels may be lost")]


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
    found = [_make_item(name, item.id, [item], choice.metric) for item in items.values()]
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
    task: PairedTask, logged: tuple[LoggedTask, LoggedTask], wanted: str | None
) -> tuple[JudgedTask | None, list[Caveat]]:
    """The task as far as it can be judged, and what has to be known of it."""
    count = len(task.pairs) + len(task.before_alone)
    if task.differences:
        return None, [Caveat(task.name, count, f"the two runs differ: {'; '.join(task.differences)}", prevents_pass=True)]
    caveats = _list_unpaired(task)
    if not task.pairs:
        return None, caveats
    sides = [
        [answer for pair in task.pairs for answer in pair.before.answers],
        [answer for pair in task.pairs for answer in pair.after.answers],
    ]
    choice = choose_metric(logged, sides, wanted)
    if choice.metric is None:
        return None, [*caveats, Caveat(task.name, count, f"cannot be judged: {choice.why_none}", prevents_pass=True)]
    items = [_make_item(task.name, pair.id, [pair.before, pair.after], choice.metric) for pair in task.pairs]
    scored = tuple(item for item in items if all(item.answers))
    caveats += _list_unscored(task, items, choice.metric)
    caveats += _list_unscored_answers(task, items, choice.metric)
    alone = choose_metric(logged[:1], sides[:1], wanted)
    if alone.metric not in (None, choice.metric):
        why = find_problem(alone.metric, logged, sides) or "is not in AFTER, or has too few answers there"
        message = f"BEFORE alone would be judged by {alone.metric}, which {why}; judged by {choice.metric} instead"
        caveats.append(Caveat(task.name, count, message, prevents_pass=True))
    if task.by_id:
        message = f"items paired by id only, because they have no distinct prompts: {task.by_id:,}"
        caveats.append(Caveat(task.name, task.by_id, message, prevents_pass=False))
    if unknown := find_unknown_settings(*logged):
        message = f"stated in only one of the logs, so not compared: {join_some(unknown)}"
        caveats.append(Caveat(task.name, len(scored), message, prevents_pass=False))
    lost = len(task.before_alone) + sum(bool(item.answers[0]) and not item.answers[1] for item in items)
    if not scored or lost > MAX_LOST_SHARE * count:
        message = f"items of BEFORE that could not be compared: {lost:,} of {count:,}, which may hide a loss"
        caveats.append(Caveat(task.name, lost, message, prevents_pass=True))
    return (JudgedTask(task.name, choice.metric, scored, choice.others) if scored else None), caveats


def _make_item(task: str, name: str, items: Sequence[Item], metric: str) -> JudgedItem:
    answers = tuple(tuple(answer for answer in item.answers if answer.scores.get(metric) is not None) for item in items)
    prompt, gold = (next((value for value in values if value is not None), None) for values in _texts(items))
    options = next((answer.options for item in items for answer in item.answers if answer.options), ())
    return JudgedItem(f"{task}/{name}", task, items[0].level, prompt, gold, options, answers)


def _texts(items: Sequence[Item]) -> tuple[list[str | None], list[str | None]]:
    return [item.prompt for item in items], [item.gold for item in items]


def _list_unpaired(task: PairedTask) -> list[Caveat]:
    """Items without a partner, by reason; where none has a partner, nothing says what became of the task."""
    caveats = []
    for side, alone in (("BEFORE", task.before_alone), ("AFTER", task.after_alone)):
        for reason, count in sorted(Counter(alone.values()).items()):
            names = join_some([name for name, why in alone.items() if why == reason][:3])
            if reason == "no such item":
                other = "AFTER" if side == "BEFORE" else "BEFORE"
                message = f"items of {side} without a partner in {other}: {count:,} ({names})"
            elif reason == "the same prompt several times":
                message = (
                    f"items of {side} that share their prompt with other items and whose id has no partner: "
                    f"{count:,} ({names})"
                )
            elif side == "BEFORE":
                message = f"items with {reason} in AFTER: {count:,} ({names})"
            else:
                continue  # the same items, told once
            caveats.append(Caveat(task.name, count, message, prevents_pass=not task.pairs and side == "BEFORE"))
    return caveats


def _list_unscored_answers(task: PairedTask, items: Sequence[JudgedItem], metric: str) -> list[Caveat]:
    """Answers without a score beside scored ones of their item, by side: those that failed may be the wrong ones."""
    caveats = []
    for side, when in enumerate(("before", "after")):
        pairs = [
            (len((pair.before, pair.after)[side].answers), len(item.answers[side]))
            for pair, item in zip(task.pairs, items, strict=True)
            if item.answers[side]
        ]
        total, scored = sum(count for count, _ in pairs), sum(count for _, count in pairs)
        if scored < total:
            message = (
                f"answers without {metric} {when}: {total - scored:,} of {total:,}, although other answers to "
                "the same items have it"
            )
            lost = side == 1 and total - scored > MAX_LOST_SHARE * total
            caveats.append(Caveat(task.name, total - scored, message, prevents_pass=lost))
    return caveats


def find_unscored(task: JudgedTask, answers: Sequence[LoggedAnswer]) -> tuple[int, int]:
    """Items of one log without a score, and answers without one beside scored ones of their item."""
    scored = {item.id: len(item.answers[0]) for item in task.items}
    total = {f"{task.name}/{item.id}": len(item.answers) for item in collect_items(answers).values()}
    without = sum(name not in scored for name in total)
    return without, sum(count - scored[name] for name, count in total.items() if name in scored)


def _count_wrong_after(items: Sequence[JudgedItem], metric: str) -> int:
    """Items that BEFORE did not score and that are wrong after: they may be those that were lost."""
    scores = [[answer.scores[metric] or 0.0 for answer in item.answers[1]] for item in items if not item.answers[0]]
    return sum(bool(own) and sum(own) < len(own) / 2 for own in scores)


def _list_unscored(task: PairedTask, items: Sequence[JudgedItem], metric: str) -> list[Caveat]:
    """Items that one side did not score, such as those whose run ended in an error."""
    caveats = []
    for side, when in enumerate(("before", "after")):
        names = [item.id for item in items if not item.answers[side]]
        if names:
            message = f"items without {metric} {when}: {len(names):,} ({join_some(names[:3])})"
            hides = side == 0 and _count_wrong_after(items, metric) > MAX_LOST_SHARE * len(items)
            caveats.append(Caveat(task.name, len(names), message, prevents_pass=hides))
    return caveats
