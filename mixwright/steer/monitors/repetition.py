"""Monitor of answers: alarms when different prompts of a task end in one and the same answer more than at the start.

Per task the share of the commonest final answer among the completions of the last `window` groups (each group, that is
each prompt, counts the same). It is compared with what the groups of the same cells showed first, or with the cells'
chance level where that is larger (a constant answer's rate): an alarm is raised when it exceeds that by more than
`standard_errors` standard errors and `min_rise`. At most one alarm per task in `steps_between_alarms` steps.

False alarms (1,000 simulated runs of 100 steps of 8 groups of 8, 16 answers, success rising): in 0.0 % of runs. Power: a
share of 25 % of completions that suddenly all end in one answer is seen within 10 steps in 88 % of runs, 40 % in all.

Seen on chain arithmetic (benchmarks/monitors, 5 seeds a pool): on over-hard problems with an answer that can be guessed
it rang in 5 of 5 runs, when 37 % of the damage to easy problems was done (canaries every 20 steps: 65 %); without such an
answer in 4 of 10, late; with permuted rewards in 3 of 5; in none of 15 healthy runs.

Source: arXiv 2605.28388 (over-hard problems under RLVR: repeated answers).
Unit: share of completions, 0..1.
Cost: none beyond what the trainer shows; the answers of `window` groups per task; 0.15 ms per 64 completions.
Blind spot: answers as `mixwright.final_answer` reads them, which knows no task: lists and sentences may end alike. Gold
    answers that have one commonest answer at some level, where none are known, look like repetition once they are learnt.
    A cell first drawn late has a late start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from mixwright.contracts import Monitor, Scene
from mixwright.errors import check_range
from mixwright.records import Alarm, GroupOutcome, Outcome, PairOutcome, Signals
from mixwright.steer.monitors._windows import Windows, mean_and_error


class Repetition(Monitor):
    """Compares the commonest answer of recent groups with that of the first ones.

    Args:
        min_rise: rise of the share that must be exceeded, 0..1.
        standard_errors: standard errors of the share, groups as the unit, that must be exceeded.
        start_groups: groups of a cell that make its start.
        window: groups of a task that are compared.
        steps_between_alarms: steps between two alarms of one task.
    """

    def __init__(
        self,
        *,
        min_rise: float = 0.15,
        standard_errors: float = 3.0,
        start_groups: int = 8,
        window: int = 24,
        steps_between_alarms: int = 20,
    ) -> None:
        self.min_rise, self.standard_errors = min_rise, standard_errors
        check_range("monitors.repetition", vars(self), min_rise=(0, 1), standard_errors=(0, 1e9))
        self._windows = Windows(
            _commonest_share, start_groups=start_groups, size=window, steps_between_alarms=steps_between_alarms
        )
        self._chance: dict[tuple[str, float | None], float] = {}

    def begin(self, scene: Scene) -> None:
        """Learn the cells and their chance levels."""
        self._windows.learn_cells(scene)
        self._chance = {(cell.task, cell.level): cell.chance for cell in scene.pool.cells}

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Keep the answers of each group, and its cell's chance level."""
        for group in outcomes:
            if isinstance(group, GroupOutcome) and group.answers:
                size = len(group.answers)
                shares = {answer: count / size for answer, count in Counter(group.answers).items()}
                self._windows.add(group, [shares, self._chance.get((group.task, group.level), 0.0)])

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task whose prompts have come to be answered alike."""
        alarms = []
        for task, seen in self._windows.due_windows(signals.step):
            answer, share = _commonest([group.entry for group in seen])
            expected = fmean(max(group.start, group.entry[1]) for group in seen)
            if share <= expected + self.min_rise:  # the usual case, and cheap
                continue
            _, error = mean_and_error([shares.get(answer, 0.0) for shares, _ in (group.entry for group in seen)])
            threshold = expected + max(self.standard_errors * error, self.min_rise)
            if share > threshold:
                self._windows.record_alarm(task, signals.step)
                message = (
                    f"{task}: {share:.0%} of the completions of the last {len(seen)} prompts end in {answer[:20]!r}; "
                    f"the commonest answer had {expected:.0%} at the start (or by chance), beyond {threshold:.0%}"
                )
                alarms.append(Alarm("repetition", signals.step, task, share, threshold, message))
        return alarms

    def state(self) -> dict[str, Any]:
        """Starts, recent answers and last alarms."""
        return self._windows.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._windows.restore(state)


def _commonest(entries: Sequence[Any]) -> tuple[str, float]:
    """The answer with the largest share, mean over groups, and that share."""
    total: defaultdict[str, float] = defaultdict(float)
    for shares, _ in entries:
        for answer, share in shares.items():
            total[answer] += share
    answer = max(sorted(total), key=lambda each: total[each])
    return answer, total[answer] / len(entries)


def _commonest_share(entries: list[Any]) -> float:
    return _commonest(entries)[1]
