"""Monitor of right answers: alarms when ever more of them take far fewer tokens than right answers took at the start.

A success is short when it has less than `short` of the median length that successes of its cell had first. Per task the
share of short ones among the successes of the last `window` groups with a success is compared with the share at the start:
an alarm is raised when it has risen by more than `standard_errors` standard errors and `min_rise`. At most one alarm per
task in `steps_between_alarms` steps.

False alarms (1,000 simulated runs of 100 steps of 8 groups of 8, a fifth of answers short): in 0.4 % of runs. Power: a share
of short ones that suddenly is 80 % is seen within 10 steps in 94 % of runs, 60 % in 72 %, 40 % in 18 %.

Off by default. Seen on chain arithmetic (benchmarks/monitors, 5 seeds a pool): it rang in 3 of 15 over-hard runs, never
first; in 5 of 5 with permuted rewards, from step 30 to 44 of 80, once before canaries; in none of 15 healthy runs.

Source: arXiv 2605.28388 (rare successes on over-hard problems skip the computation, and normalisation rewards them most).
Unit: share of successes, 0..1.
Cost: none beyond what the trainer shows; the successes' lengths of `window` groups per task; 0.1 ms per 64 completions.
Blind spot: a shortcut as long as the work. Where half of the successes are short already at the start, they are the
    start. Shorter can be better: it cannot know which tokens were needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from mixwright.contracts import Monitor, Scene
from mixwright.errors import check_range
from mixwright.records import Alarm, GroupOutcome, Outcome, PairOutcome, Signals
from mixwright.steer.monitors._windows import Windows, mean_and_error, mean_change


class SkippedWork(Monitor):
    """Compares lengths of recent successes with those of the first ones.

    Args:
        short: share of the start's median length under which a success is short, 0..1.
        min_rise: rise of the share of short ones that must be exceeded, 0..1.
        standard_errors: standard errors of the share, groups as the unit, that must be exceeded.
        start_groups: groups of a cell with a success that make its start.
        window: groups of a task with a success that are compared.
        steps_between_alarms: steps between two alarms of one task.
    """

    def __init__(
        self,
        *,
        short: float = 0.5,
        min_rise: float = 0.25,
        standard_errors: float = 3.0,
        start_groups: int = 24,
        window: int = 32,
        steps_between_alarms: int = 20,
    ) -> None:
        self.short, self.min_rise, self.standard_errors = short, min_rise, standard_errors
        check_range("monitors.skipped_work", vars(self), short=(0, 1), min_rise=(0, 1), standard_errors=(0, 1e9))
        self._windows = Windows(
            self._summary, start_groups=start_groups, size=window, steps_between_alarms=steps_between_alarms
        )
        self._right = 0.5

    def begin(self, scene: Scene) -> None:
        """Learn the cells and what a right answer earns."""
        self._windows.learn_cells(scene)
        self._right = sum(scene.stage.engine.reward_range) / 2

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Keep the lengths of each group's successes."""
        for group in outcomes:
            if isinstance(group, GroupOutcome) and group.lengths and max(group.rewards) > self._right:
                columns = zip(group.lengths, group.rewards, strict=True)
                self._windows.add(group, [length for length, reward in columns if reward > self._right])

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task whose successes have become short."""
        alarms = []
        for task, seen in self._windows.due_windows(signals.step):
            shares = [self._share(group.entry, group.start["median"]) for group in seen]
            rise, error = mean_change(seen, shares, lambda group: group.start["short"])
            threshold = max(self.standard_errors * error, self.min_rise)
            if rise > threshold:
                self._windows.record_alarm(task, signals.step)
                share = fmean(shares)
                message = (
                    f"{task}: {share:.0%} of the right answers of the last {len(seen)} groups that have one take less than "
                    f"{self.short:.0%} of the tokens that right answers took at the start, when {share - rise:.0%} did"
                )
                alarms.append(Alarm("skipped_work", signals.step, task, share, share - rise + threshold, message))
        return alarms

    def _share(self, lengths: Sequence[int], usual: float) -> float:
        """Share of short ones."""
        return sum(length < self.short * usual for length in lengths) / len(lengths)

    def _summary(self, entries: list[Any]) -> dict[str, Any]:
        """Median length of successes, and the share of short ones with its error."""
        usual = float(median(length for lengths in entries for length in lengths))
        return {"median": usual, "short": mean_and_error([self._share(lengths, usual) for lengths in entries])}

    def state(self) -> dict[str, Any]:
        """Starts, recent successes and last alarms."""
        return self._windows.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._windows.restore(state)
