"""Monitor of lengths: alarms when a task's completions become far shorter or longer than at the start, or hit one limit.

Each group's median length is divided by the median that groups of its cell had first. Over the last `window` groups of a
task an alarm is raised when the median of these ratios is under 1 - `fall` or over 1 + `growth` and their mean logarithm is
`standard_errors` standard errors from 0; and when at least `share_at_limit` of the completions have one and the same largest
length, though at most half as many had at the start, and lengths have grown. The message tells what success did meanwhile:
shorter can be better. At most one alarm per task in `steps_between_alarms` steps.

False alarms (1,000 simulated runs of 100 steps of 8 groups of 8, lengths spread by 40 %, a fifth of answers short): in 0.8 %
of runs. Power: lengths that suddenly halve are seen within 10 steps in 91 % of runs, a fall to 70 % in 28 %.

Seen on chain arithmetic (benchmarks/monitors, 5 seeds a pool): it rang in 12 of 15 over-hard runs, when 81 % of the damage
to easy problems was done (canaries every 20 steps: 15 of 15, 63 %), in 3 of 5 with permuted rewards, and in none of 15
healthy runs: a check that costs nothing, not an early one.

Source: arXiv 2605.28388 (over-hard problems: computation is skipped); lengths fell before accuracy did in a run whose
    verifier took a bare answer.
Unit: ratio to the start; share of completions for the limit.
Cost: none beyond what the trainer shows; 4 numbers of each of the last `window` groups per task; 0.1 ms per 64 completions.
Blind spot: it knows tokens and not what they say. Where answers have one length by nature it sees nothing grow. A cell first
    drawn late has a late start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from mixwright.contracts import Monitor, Scene
from mixwright.errors import check_range
from mixwright.records import Alarm, GroupOutcome, Outcome, PairOutcome, Signals
from mixwright.steer.monitors._windows import Seen, Windows, mean_and_error, mean_change


class Length(Monitor):
    """Compares lengths of recent groups with those of the first ones.

    Args:
        fall: fall of the median that must be exceeded, share of the start.
        growth: its growth that must be exceeded, share of the start.
        share_at_limit: share of completions of the same, largest length from which they are said to run into a limit.
        standard_errors: standard errors of the mean logarithm, groups as the unit, that must be exceeded.
        start_groups: groups of a cell that make its start.
        window: groups of a task that are compared.
        steps_between_alarms: steps between two alarms of one task.
    """

    def __init__(
        self,
        *,
        fall: float = 0.4,
        growth: float = 1.0,
        share_at_limit: float = 0.5,
        standard_errors: float = 3.0,
        start_groups: int = 8,
        window: int = 24,
        steps_between_alarms: int = 20,
    ) -> None:
        self.fall, self.growth, self.share_at_limit, self.standard_errors = fall, growth, share_at_limit, standard_errors
        check_range(
            "monitors.length", vars(self), fall=(0, 1), growth=(0, 1e9), share_at_limit=(0, 1), standard_errors=(0, 1e9)
        )
        self._windows = Windows(_summary, start_groups=start_groups, size=window, steps_between_alarms=steps_between_alarms)

    def begin(self, scene: Scene) -> None:
        """Learn the cells."""
        self._windows.learn_cells(scene)

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Keep median, largest length, share at the largest, and mean reward of each group."""
        for group in outcomes:
            if isinstance(group, GroupOutcome) and group.lengths and math.isfinite(sum(group.rewards)):
                longest, size = max(group.lengths), len(group.lengths)
                middle = max(1.0, float(sorted(group.lengths)[size // 2]))
                reward = sum(group.rewards) / len(group.rewards)
                self._windows.add(group, [middle, longest, group.lengths.count(longest) / size, reward])

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task whose lengths have left their start."""
        alarms = []
        for task, seen in self._windows.due_windows(signals.step):
            ratio = median(group.entry[0] / group.start["median"] for group in seen)
            told = self._leaving(seen, ratio) or (self._limit(seen) if ratio > 1 else None)
            if told is not None:
                self._windows.record_alarm(task, signals.step)
                value, threshold, sentence = told
                before = fmean(group.start["reward"] for group in seen)
                now = fmean(group.entry[3] for group in seen)
                message = f"{task}: {sentence} (last {len(seen)} groups); mean reward went from {before:.2f} to {now:.2f}"
                alarms.append(Alarm("length", signals.step, task, value, threshold, message))
        return alarms

    def _leaving(self, seen: list[Seen], ratio: float) -> tuple[float, float, str] | None:
        """Value, threshold and sentence when lengths are far from the start."""
        threshold = 1 - self.fall if ratio < 1 else 1 + self.growth
        if 1 - self.fall <= ratio <= 1 + self.growth:  # the usual case, and cheap
            return None
        mean, error = mean_change(seen, [math.log(group.entry[0]) for group in seen], lambda group: group.start["logs"])
        if abs(mean) <= self.standard_errors * error:
            return None
        word = "shorter" if ratio < 1 else "longer"
        return ratio, threshold, f"completions are {word}, {ratio:.2f} of their length at the start"

    def _limit(self, seen: list[Seen]) -> tuple[float, float, str] | None:
        """The same when many completions stop at one length."""
        now, start = _at_limit([group.entry for group in seen]), fmean(group.start["limit"] for group in seen)
        if now < self.share_at_limit or 2 * start > now:
            return None
        return now, self.share_at_limit, f"{now:.0%} of the completions stop at one length, {start:.0%} did at the start"

    def state(self) -> dict[str, Any]:
        """Starts, recent lengths and last alarms."""
        return self._windows.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._windows.restore(state)


def _at_limit(entries: Sequence[Any]) -> float:
    """Share of completions whose length is the largest of all."""
    longest = max(entry[1] for entry in entries)
    return sum(entry[2] for entry in entries if entry[1] == longest) / len(entries)


def _summary(entries: list[Any]) -> dict[str, Any]:
    """What later groups of a cell are compared with."""
    return {
        "median": median(entry[0] for entry in entries),
        "logs": mean_and_error([math.log(entry[0]) for entry in entries]),
        "limit": _at_limit(entries),
        "reward": fmean(entry[3] for entry in entries),
    }
