"""Monitor of answer formats: alarms when one is being lost that is no less often right than the one that takes over.

The first `window` groups of a task are its start: formats with a share of `min_start_share` there are watched. An alarm is
raised when one of them has lost more than `lost_share` of its start share, and more than `standard_errors` standard errors
(groups are the unit), in the last `window` groups, while its completions earned no less than those of the format that leads
now, within the same groups of both windows, and were right at all. At most one alarm per task in `steps_between_alarms`
steps. Losing formats may be wanted (one format is easily read): leave the monitor out of the stage's monitors then, or set
`options.engine.on_alarm` to `log`.

False alarms (1,000 simulated runs of 40 steps of 4 groups of 8; shares 0.6, 0.3, 0.1 that do not move, all equally right):
3 % of runs; of 100 steps 7 %. Power (500 runs; the 0.3 format shrinks by a tenth per step), by its advantage in accuracy:
97 % at +0.1, 77 % at 0, 36 % at -0.1, 7 % at -0.2 (where it is rightly lost: these two are false alarms).

Off by default: tightening at its alarms was tried on 3 mixes x 5 seeds (the study `formats`). It kept some variety of forms
in one mix (from beta 0.04: entropy 0.52, against 0.23 of 1) and raised neither pass@1 nor pass@16 in any. Use it to know.

Source: one of several formats takes over under reinforcement learning, not always the best (2504.07912).
Unit: share of a task's completions.
Cost: none beyond what the trainer shows; two numbers per watched format and group of two windows.
Blind spot: formats are skeletons, and one that was under `min_start_share` at the start is not watched; where the question
    decides the form, other questions drawn look like a form that is lost.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from mixwright.contracts import Monitor
from mixwright.errors import check_range
from mixwright.plan.format_forecast import IN_USE_SHARE
from mixwright.records import Alarm, GroupOutcome, PairOutcome, SFTOutcome, Signals
from mixwright.steer.checkpointable import Checkpointable

GroupCounts = list[list[float]]
"""One group: (completions, summed rewards) of each watched format, last of all others. JSON-ready."""


@dataclass(kw_only=True, eq=False)
class Formats(Checkpointable, Monitor):
    """Compares recent groups of each task with its first ones.

    Args:
        min_start_share: share at the start from which a format is watched.
        lost_share: part of its start share that must be gone.
        standard_errors: standard errors of the fall (groups are the unit) that must be exceeded.
        slack: reward by which the format may be worse than the one that leads now, compared within groups.
        window: groups per task in each of the two windows.
        max_formats: formats watched per task, commonest first.
        steps_between_alarms: steps between two alarms of one task.
    """

    STATE_FIELDS = ("_first", "_watched", "_start", "_recent", "_last_alarm_step")

    min_start_share: float = 0.1
    lost_share: float = 0.5
    standard_errors: float = 3.0
    slack: float = 0.0
    window: int = 16
    max_formats: int = 6
    steps_between_alarms: int = 20

    def __post_init__(self) -> None:
        limits = {"min_start_share": (0, 1), "lost_share": (0, 1), "window": (2, 1e9), "max_formats": (1, 1e9)}
        limits |= dict.fromkeys(("standard_errors", "slack", "steps_between_alarms"), (0, 1e9))
        check_range("monitors.formats", vars(self), **limits)
        self._first: dict[str, list[list[Any]]] = {}  # formats and rewards of each group, until there are `window`
        self._watched: dict[str, list[str]] = {}
        self._start: dict[str, list[GroupCounts]] = {}
        self._recent: dict[str, list[GroupCounts]] = {}
        self._last_alarm_step: dict[str, int] = {}

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | SFTOutcome | PairOutcome]) -> None:
        """Keep counts and rewards per format; groups without formats or with rewards that overflowed say nothing."""
        for group in outcomes:
            if isinstance(group, GroupOutcome) and group.formats and all(map(math.isfinite, group.rewards)):
                if group.task in self._watched:
                    self._recent[group.task].append(count_group(group, self._watched[group.task]))
                    del self._recent[group.task][: -self.window]
                else:
                    self._begin(group)

    def _begin(self, group: GroupOutcome) -> None:
        """The first window of a task decides which of its formats are watched."""
        task, first_groups = group.task, self._first.setdefault(group.task, [])
        first_groups.append([list(group.formats), list(group.rewards)])
        if len(first_groups) == self.window:
            groups = [GroupOutcome("", task, None, 0, rewards, (), formats) for formats, rewards in self._first.pop(task)]
            watched = list(formats_in_use(groups, self.min_start_share).get(task, ()))[: self.max_formats]
            self._watched[task], self._recent[task] = watched, []
            self._start[task] = [count_group(watched_group, watched) for watched_group in groups]

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task, about the format that lost most of those that are no worse than the leading one."""
        alarms = []
        for task, watched in sorted(self._watched.items()):
            start, recent = self._start[task], self._recent[task]
            may_alarm = signals.step - self._last_alarm_step.get(task, -math.inf) >= self.steps_between_alarms
            if len(recent) < self.window or not may_alarm:
                continue
            shares_now = [fmean(shares) for shares in shares_of(recent)]
            leader_index = max(range(len(shares_now)), key=lambda format_index: shares_now[format_index])
            declines = [
                self._find_decline(start, recent, format_index, leader_index)
                for format_index in range(len(watched))
                if format_index != leader_index
            ]
            worst_decline = max((decline for decline in declines if decline), default=None)
            if worst_decline is not None:
                self._last_alarm_step[task] = signals.step
                fall, threshold, advantage, format_index = worst_decline
                name, leader_name = (
                    watched[format_index],
                    watched[leader_index] if leader_index < len(watched) else "other forms",
                )
                share = shares_now[format_index]
                message = (
                    f"{task}: share of {name!r} fell by {fall:.2f} to {share:.2f} (threshold {threshold:.2f}), though no "
                    f"worse than {leader_name!r}, which leads with {shares_now[leader_index]:.2f} ({advantage:+.2f} reward "
                    "in the same groups)"
                )
                alarms.append(Alarm("formats", signals.step, task, fall, threshold, message))
        return alarms

    def _find_decline(
        self, start: Sequence[GroupCounts], recent: Sequence[GroupCounts], format_index: int, leader_index: int
    ) -> tuple[float, float, float, int] | None:
        """(fall, threshold, advantage over the leader, place) of a format that is lost without being worse."""
        before, after = (shares_of(rows)[format_index] for rows in (start, recent))
        fall = fmean(before) - fmean(after)
        error = math.hypot(*(stdev(values) / math.sqrt(len(values)) for values in (before, after)))
        threshold = max(self.lost_share * fmean(before), self.standard_errors * error)
        if fall <= threshold:
            return None
        advantage = format_advantage([*start, *recent], format_index, leader_index)
        if advantage is None or advantage < -self.slack or not earned_above_least([*start, *recent], format_index):
            return None
        return fall, threshold, advantage, format_index


def formats_in_use(groups: Iterable[GroupOutcome], min_share: float = IN_USE_SHARE) -> dict[str, dict[str, float]]:
    """Task -> format -> share of its completions, commonest first; formats rarer than `min_share` are left out. Pure.

    Tasks are sorted; groups without formats (a trainer that does not tell them) say nothing.

    Args:
        groups: of the first batch, or of several.
        min_share: share from which a format counts, 0..1.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for group in groups:
        counts[group.task].update(group.formats)
    shares_by_task: dict[str, dict[str, float]] = {}
    for task, format_counts in sorted(counts.items()):
        total = format_counts.total()
        ranked = sorted(format_counts, key=lambda name: (-format_counts[name], name))
        if shares := {name: format_counts[name] / total for name in ranked if format_counts[name] >= min_share * total}:
            shares_by_task[task] = shares
    return shares_by_task


def count_group(group: GroupOutcome, watched: Sequence[str]) -> GroupCounts:
    """Counts and rewards of one group."""
    index_by_format = {name: format_index for format_index, name in enumerate(watched)}
    row: GroupCounts = [[0, 0.0] for _ in range(len(watched) + 1)]
    for name, reward in zip(group.formats, group.rewards, strict=True):
        count_and_reward = row[index_by_format.get(name, len(watched))]
        count_and_reward[0] += 1
        count_and_reward[1] += reward
    return row


def shares_of(rows: Sequence[GroupCounts]) -> list[list[float]]:
    """Per format its share of each group."""
    totals = [sum(count_and_reward[0] for count_and_reward in row) for row in rows]
    return [
        [count_and_reward[0] / total for count_and_reward, total in zip(column, totals, strict=True)]
        for column in zip(*rows, strict=True)
    ]


def format_advantage(rows: Sequence[GroupCounts], format_index: int, leader_index: int) -> float | None:
    """Mean reward of one format above another's within groups that hold both; None where there are none.

    Each group weighs n x m / (n + m): the least variance (Mantel and Haenszel 1959).
    """
    total = weights = 0.0
    for row in rows:
        (n, reward), (m, leader_reward) = row[format_index], row[leader_index]
        if n and m:
            weight = n * m / (n + m)
            total, weights = total + weight * (reward / n - leader_reward / m), weights + weight
    return total / weights if weights else None


def earned_above_least(rows: Sequence[GroupCounts], format_index: int) -> bool:
    """Whether completions of one format earned more than the least that any format earned on the mean in a group."""
    means = [[reward / count for count, reward in column if count] for column in zip(*rows, strict=True)]
    least_mean = min(mean for column in means for mean in column)
    return any(mean > least_mean + 1e-9 for mean in means[format_index])
