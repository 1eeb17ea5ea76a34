"""Monitor of groups that all fail: alarms when they give ever fewer different answers while other groups succeed more.

Reward on prompts that can be solved sharpens the model on prompts that never earned any: what was never found becomes
undiscoverable. Of each group without a success the expected number of different final answers among `draws` completions is
taken (unbiased), divided by what failed groups of its cell had first. An alarm is raised when the mean of the last
`window` failed groups of a task is under `share` of the start, by `errors` standard errors under all of it, and success
of the whole run has risen by more than one. The message tells how the share of failed groups moved. At most one alarm per
task in `rest` steps.

False alarms (1,000 simulated runs of 100 steps of 8 groups of 8, half of the prompts never solved, success rising): in 0.0 %
of runs. Power: wrong answers that suddenly are a fifth as many are seen within 10 steps in 78 % of runs.

Off by default. Seen on chain arithmetic (benchmarks/monitors, 5 seeds a pool): it rang in 2 of 5 healthy runs on a wide
pool, where failed groups do lose different answers, and in 4 of 5 with an answer that can be guessed, late; in none of 25
others. It tells a price of learning, not damage: for those who want unsolved prompts solved later, to be written down.

Source: arXiv 2509.06941 (diversity lost on unsolved problems); D_k as 1 - C(m - n, k) / C(m, k), summed over answers.
Unit: ratio of different answers to the start, 0..
Cost: none beyond what the trainer shows; one number per failed group of a window; 0.1 ms per 64 completions.
Blind spot: different wrong answers help only where the right one is among them. Answers as `mixwright.final_answer` reads
    them. In a cell that is learnt the failed groups left are other prompts than the first ones. Groups with fewer
    completions than `draws` (or than the first group) are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean
from typing import Any

from mixwright.contracts import Monitor, Scene
from mixwright.errors import check_range
from mixwright.records import Alarm, GroupOutcome, Outcome, PairOutcome, Signals
from mixwright.steer.monitors._windows import Windows, change, mean_and_error


class Diversity(Monitor):
    """Compares different answers of failed groups with those of the first ones.

    Args:
        share: of the start's different answers under which it alarms, 0..1.
        draws: completions among which different answers are counted; at most the size of the first group.
        errors: standard errors, groups as the unit, by which diversity must have fallen.
        begin: failed groups of a cell that make its start; three times as many groups make that of its success.
        window: groups of a task that are compared.
        rest: steps between two alarms of one task.
    """

    def __init__(
        self, *, share: float = 0.6, draws: int = 8, errors: float = 3.0, begin: int = 8, window: int = 24, rest: int = 20
    ) -> None:
        self.share, self.draws, self.errors = share, draws, errors
        check_range("monitors.diversity", vars(self), share=(0, 1), draws=(2, 1e9), errors=(0, 1e9))
        self._failed = Windows(mean_and_error, begin=begin, size=window, rest=rest)
        self._all = Windows(_summary, begin=3 * begin, size=4 * window, rest=rest)  # success must be known well
        self._right, self._draws = 0.5, 0

    def begin(self, scene: Scene) -> None:
        """Learn the cells and what a right answer earns."""
        self._failed.know(scene)
        self._all.know(scene)
        self._right = sum(scene.stage.engine.reward_range) / 2

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Keep success of each group, and the different answers of each that failed."""
        for group in outcomes:
            if not isinstance(group, GroupOutcome) or not group.answers:
                continue
            self._draws = self._draws or min(self.draws, len(group.answers))
            right = sum(reward > self._right for reward in group.rewards)
            self._all.add(group, [right / len(group.rewards), float(not right)], "all")
            if not right and len(group.answers) >= self._draws:
                self._failed.add(group, distinct(group.answers, self._draws))

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task whose failed groups have lost their variety while the run succeeds more."""
        alarms = []
        for task, seen in self._failed.due(signals.step):
            ratio = fmean(group.entry for group in seen) / fmean(group.start[0] for group in seen)
            if ratio >= self.share:  # the usual case, and cheap
                continue
            fall, error = change(seen, [group.entry for group in seen], lambda group: group.start)
            every = self._all.now("all")
            if len(every) < self._failed.size:
                continue
            rise, noise = change(every, [group.entry[0] for group in every], lambda group: group.start["success"])
            if -fall <= self.errors * error or rise <= noise:
                continue
            self._failed.said(task, signals.step)
            before, now = fmean(group.start["failed"] for group in every), fmean(group.entry[1] for group in every)
            stays = "stays" if now >= 0.9 * before else "falls"
            message = (
                f"{task}: groups that fail give {ratio:.0%} of the different answers they gave at the start "
                f"(last {len(seen)}), while success rose by {rise:.2f}; the share of such groups {stays}: "
                f"{before:.0%} then, {now:.0%} now"
            )
            alarms.append(Alarm("diversity", signals.step, task, ratio, self.share, message))
        return alarms

    def state(self) -> dict[str, Any]:
        """Starts, recent groups and last alarms."""
        return {"failed": self._failed.state(), "all": self._all.state(), "draws": self._draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._failed.restore(state["failed"])
        self._all.restore(state["all"])
        self._draws = state["draws"]


def distinct(answers: Sequence[str], draws: int) -> float:
    """Expected number of different answers among `draws` of these completions, drawn without putting back."""
    many = comb(len(answers), draws)
    return sum(1 - comb(len(answers) - count, draws) / many for count in Counter(answers).values())


def _summary(entries: list[Any]) -> dict[str, Any]:
    """Success with its error, and the share of failed groups."""
    return {"success": mean_and_error([entry[0] for entry in entries]), "failed": fmean(entry[1] for entry in entries)}
