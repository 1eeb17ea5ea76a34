"""Monitor of fixed items that the model could do: alarms when they are lost beyond what chance explains.

The first result of each item is its start. Per task, the fall is the mean of start minus now over the same items; an
alarm is raised when it exceeds `standard_errors` standard errors of that mean, and `min_fall`. Pairing by item takes the
difficulty of the items out of the error.

False alarms (20,000 simulated passes of 16 items, each right with the same probability at the start and now): 0.4 % per
task and pass at probability 0.95, 1.4 % at 0.9, 3 % at 0.8. Power: a fall from 0.95 to 0.6 is seen in 75 % of passes, to
0.75 in 37 %, to 0.85 in 11 %.

Measured (the study `overhard`, passes every 5 steps, greedy success over everything held out): doubling beta on its
alarms, from 0.01, ends 15 points under not training (6 to 22) where beta alone ends 31 under it (16 to 45). That was
with items that had been measured as mastered; chosen without a measurement, among rows most of
which the model cannot do, they raised no alarm in 20 of 20 runs that lost 52 points. So unmeasured items are off by default:
they are watched where a plan names this monitor, or `canary_every` is given without a plan.

Source: backward transfer measured while it can still be stopped; our first runs lost most
    within 40 steps.
Unit: success, 0..1, greedy answers.
Cost: 16 greedy rollouts per mastered task and pass (default), none between passes; the items are never trained on.
Blind spot: sees only what it holds; a skill without a canary can be lost unseen, and greedy answers hide a lost variety.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, stdev

from mixwright.contracts import Monitor
from mixwright.errors import check_range
from mixwright.records import Alarm, Signals
from mixwright.steer.checkpointable import Checkpointable


@dataclass(kw_only=True, eq=False)
class Canary(Checkpointable, Monitor):
    """Compares each fresh canary pass with the first.

    Args:
        standard_errors: standard errors of the mean fall beyond which it alarms.
        min_fall: fall that must also be exceeded, 0..1.
    """

    STATE_FIELDS = ("_start",)

    standard_errors: float = 2.0
    min_fall: float = 0.05

    def __post_init__(self) -> None:
        check_range("monitors.canary", vars(self), standard_errors=(0, 1e9), min_fall=(0, 1))
        self._start: dict[str, float] = {}

    def inspect(self, signals: Signals) -> list[Alarm]:
        """One alarm per task that lost something; none in steps without fresh canaries."""
        falls: dict[str, list[float]] = defaultdict(list)
        for canary in signals.canaries:
            falls[canary.task].append(self._start.setdefault(canary.example, canary.success) - canary.success)
        alarms = []
        for task, task_falls in sorted(falls.items()):
            mean = fmean(task_falls)
            error = stdev(task_falls) / math.sqrt(len(task_falls)) if len(task_falls) > 1 else 1.0
            threshold = max(self.standard_errors * error, self.min_fall)
            if mean > threshold:
                fell = f"fell by {mean:.2f} since the start (threshold {threshold:.2f})"
                message = f"{task}: success on {len(task_falls)} fixed items {fell}"
                alarms.append(Alarm("canary", signals.step, task, mean, threshold, message))
        return alarms
