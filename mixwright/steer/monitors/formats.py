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

Off by default: tightening at its alarms was tried on 3 mixes x 5 seeds (`benchmarks.formats`). It kept some variety of forms
in one mix (from beta 0.04: entropy 0.52, against 0.23 of 1) and raised neither pass@1 nor pass@16 in any. Use it to know.

Source: one of several formats takes over under reinforcement learning, not always the best (2504.07912).
Unit: share of a task's completions.
Cost: none beyond what the trainer shows; two numbers per watched format and group of two windows.
Blind spot: formats are skeletons, and one that was under `min_start_share` at the start is not watched; where the question
    decides the form, other questions drawn look like a form that is lost.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from mixwright.contracts import Monitor
from mixwright.errors import check_range
from mixwright.records import Alarm, GroupOutcome, Outcome, PairOutcome, Signals
from mixwright.steer.format_counts import (
    Row,
    count_group,
    earned_above_least,
    format_advantage,
    formats_in_use,
    shares_of,
    standard_error,
)

OPTION_LIMITS = {"min_start_share": (0, 1), "lost_share": (0, 1), "window": (2, 1e9), "max_formats": (1, 1e9)}
OPTION_LIMITS |= dict.fromkeys(("standard_errors", "slack", "steps_between_alarms"), (0, 1e9))


class Formats(Monitor):
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

    def __init__(
        self,
        *,
        min_start_share: float = 0.1,
        lost_share: float = 0.5,
        standard_errors: float = 3.0,
        slack: float = 0.0,
        window: int = 16,
        max_formats: int = 6,
        steps_between_alarms: int = 20,
    ) -> None:
        self.min_start_share, self.lost_share, self.standard_errors, self.slack = (
            min_start_share,
            lost_share,
            standard_errors,
            slack,
        )
        self.window, self.max_formats, self.steps_between_alarms = window, max_formats, steps_between_alarms
        check_range("monitors.formats", vars(self), **OPTION_LIMITS)
        self._first: dict[str, list[GroupOutcome]] = {}
        self._watched: dict[str, list[str]] = {}
        self._start: dict[str, list[Row]] = {}
        self._recent: dict[str, deque[Row]] = {}
        self._said: dict[str, int] = {}

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Keep counts and rewards per format; groups without formats or with rewards that overflowed say nothing."""
        for group in outcomes:
            if isinstance(group, GroupOutcome) and group.formats and all(map(math.isfinite, group.rewards)):
                if group.task in self._watched:
                    self._recent[group.task].append(count_group(group, self._watched[group.task]))
                else:
                    self._begin(group)

    def _begin(self, group: GroupOutcome) -> None:
        """The first window of a task decides which of its formats are watched."""
        first = self._first.setdefault(group.task, [])
        first.append(group)
        if len(first) == self.window:
            watched = list(formats_in_use(first, self.min_start_share).get(group.task, ()))[: self.max_formats]
            self._watched[group.task] = watched
            self._start[group.task] = [count_group(one, watched) for one in first]
            self._recent[group.task] = deque(maxlen=self.window)
            del self._first[group.task]

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task, about the format that lost most of those that are no worse than the leading one."""
        alarms = []
        for task, watched in sorted(self._watched.items()):
            start, recent = self._start[task], self._recent[task]
            said = self._said.get(task)
            if len(recent) < self.window or (said is not None and signals.step - said < self.steps_between_alarms):
                continue
            now = [fmean(shares) for shares in shares_of(recent)]
            leader = max(range(len(now)), key=lambda place: now[place])
            found = [self._lost(start, recent, place, leader) for place in range(len(watched)) if place != leader]
            worst = max((one for one in found if one), default=None)
            if worst is not None:
                self._said[task] = signals.step
                fall, threshold, better, place = worst
                name, ahead = watched[place], watched[leader] if leader < len(watched) else "other forms"
                message = (
                    f"{task}: share of {name!r} fell by {fall:.2f} to {now[place]:.2f} (threshold {threshold:.2f}), though "
                    f"no worse than {ahead!r}, which leads with {now[leader]:.2f} ({better:+.2f} reward in the same groups)"
                )
                alarms.append(Alarm("formats", signals.step, task, fall, threshold, message))
        return alarms

    def _lost(
        self, start: Sequence[Row], recent: Sequence[Row], place: int, leader: int
    ) -> tuple[float, float, float, int] | None:
        """(fall, threshold, advantage over the leader, place) of a format that is lost without being worse."""
        before, after = (shares_of(rows)[place] for rows in (start, recent))
        fall = fmean(before) - fmean(after)
        threshold = max(
            self.lost_share * fmean(before), self.standard_errors * math.hypot(standard_error(before), standard_error(after))
        )
        if fall <= threshold:
            return None
        better = format_advantage([*start, *recent], place, leader)
        if better is None or better < -self.slack or not earned_above_least([*start, *recent], place):
            return None
        return fall, threshold, better, place

    def state(self) -> dict[str, Any]:
        """Both windows and last alarms."""
        first = {task: [[list(g.formats), list(g.rewards)] for g in groups] for task, groups in self._first.items()}
        recent = {task: list(rows) for task, rows in self._recent.items()}
        kept = {
            name: dict(value) for name, value in (("watched", self._watched), ("start", self._start), ("said", self._said))
        }
        return {"first": first, "recent": recent, **kept}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._first = {
            task: [GroupOutcome("", task, None, 0, tuple(rewards), (), tuple(formats)) for formats, rewards in groups]
            for task, groups in state["first"].items()
        }
        self._watched, self._start, self._said = (dict(state[name]) for name in ("watched", "start", "said"))
        self._recent = {task: deque(rows, maxlen=self.window) for task, rows in state["recent"].items()}
