"""Monitor of DPO pairs: alarms when chosen answers lose probability while their margin over rejected ones still grows.

The sigmoid loss sees only the difference of two log-ratios: it falls as well when both completions lose probability and the
rejected one loses more; the probability then goes somewhere the data does not show. Per task the last `window` pairs are
kept. An alarm is raised when the mean log-probability of their chosen completions has fallen under the reference's by more
than `standard_errors` standard errors and `min_fall`, while their mean margin is above 0 (where it began) by as many
standard errors and the newer half's is not below the older half's. At most one alarm per task in `steps_between_alarms`
steps.

False alarms (2,000 simulated windows of 64 independent pairs, log-ratios with mean 0 and a standard deviation of 8 nats):
0.2 % when the rejected ones have fallen by 8 nats on the mean and the chosen ones have not moved. Power there: a mean fall
of the chosen ones by 2 nats is seen in 9 % of windows, by 4 nats in 43 %, by 6 in 49 %: the margin of the newer half must
not be the smaller one, which noise decides; the next windows get the same chance.

Source: arXiv 2410.08847 (Razin et al.): likelihood displacement, worst where chosen and rejected are much alike.
Unit: nats, summed over the tokens of a completion.
Cost: none beyond what the trainer shows; 2 numbers of each of the last `window` pairs per task.
Blind spot: it sees pairs as they are trained on, after the first epoch known ones; it cannot say where the probability went,
    and a little lost on many tokens sums to as much as one answer lost. A reference that is synced hides what came before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from mixwright.extend import (
    Alarm,
    Checkpointable,
    GroupOutcome,
    InputError,
    Monitor,
    PairOutcome,
    SFTOutcome,
    Signals,
    check_range,
)


@dataclass(kw_only=True, eq=False)
class Displacement(Checkpointable, Monitor):
    """Compares the chosen completions of recent pairs with the reference.

    Args:
        min_fall: fall of the chosen log-probability that must be exceeded, nats per completion.
        standard_errors: standard errors of the mean beyond which a fall or a margin counts.
        window: pairs per task that are kept.
        min_pairs: pairs per task under which nothing is said.
        steps_between_alarms: steps between two alarms of one task.
    """

    STATE_FIELDS = ("_pairs", "_last_alarm_step")

    min_fall: float = 1.0
    standard_errors: float = 3.0
    window: int = 64
    min_pairs: int = 16
    steps_between_alarms: int = 20

    def __post_init__(self) -> None:
        if not 2 <= self.min_pairs <= self.window:
            got = f"{self.min_pairs} and {self.window}"
            raise InputError("min_pairs of 2 to window", got, "Correct monitors.displacement.")
        limits = dict.fromkeys(("min_fall", "standard_errors", "steps_between_alarms"), (0, 1e9))
        check_range("monitors.displacement", vars(self), **limits)
        self._pairs: dict[str, list[list[float]]] = {}
        self._last_alarm_step: dict[str, int] = {}

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | SFTOutcome | PairOutcome]) -> None:
        """Keep chosen log-ratio and log-ratio difference (nats) of each pair; those that overflowed say nothing."""
        for pair in outcomes:
            if isinstance(pair, PairOutcome):
                pair_ratios = [pair.chosen_logratio, pair.chosen_logratio - pair.rejected_logratio]
                if all(map(math.isfinite, pair_ratios)):
                    self._pairs.setdefault(pair.task, []).append(pair_ratios)
                    del self._pairs[pair.task][: -self.window]

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task whose chosen answers have fallen while its margin grew."""
        alarms = []
        for task, ratios in sorted(self._pairs.items()):
            may_alarm = signals.step - self._last_alarm_step.get(task, -math.inf) >= self.steps_between_alarms
            if len(ratios) < self.min_pairs or not may_alarm:
                continue
            chosen, margins = zip(*ratios, strict=True)
            fall = -fmean(chosen)
            if fall <= self.min_fall:  # the usual case, and cheap: no standard errors
                continue
            threshold = max(self.standard_errors * _error(chosen), self.min_fall)
            margin, half = fmean(margins), len(margins) // 2
            grows = margin > self.standard_errors * _error(margins) and fmean(margins[half:]) >= fmean(margins[:half])
            if fall > threshold and grows:
                self._last_alarm_step[task] = signals.step
                message = (
                    f"{task}: chosen completions are {fall:.3g} nats less likely than under the reference model (last "
                    f"{len(ratios)} pairs, threshold {threshold:.3g}), while their margin over the rejected ones grew by "
                    f"{margin:.3g} nats"
                )
                alarms.append(Alarm("displacement", signals.step, task, fall, threshold, message))
        return alarms


def _error(values: Sequence[float]) -> float:
    """Standard error of the mean."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf
