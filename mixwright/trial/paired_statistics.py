"""Ratio of rollouts to a target when some runs miss it: restricted means, with a jackknife interval over seeds.

A run that missed the target is no missing value: it took at least the whole budget. So every run counts as min(T, budget),
which is known for all of them, and arms are compared by the ratio of the means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mixwright.estimates.intervals import jackknife
from mixwright.records import Interval


def restricted_ratio(arm: Sequence[float | None], reference: Sequence[float | None], budget: float) -> Interval | None:
    """Mean of min(T, budget) of the arm over that of the reference; below 1 the arm was sooner.

    The 95 % interval is a jackknife t interval over pairs on the logarithm of the ratio.

    Args:
        arm: T per seed, above 0; None for a run that missed the target.
        reference: of the same seeds, in the same order.
        budget: that every run was watched for.

    Returns:
        None for fewer than two seeds, and where no run of either side arrived within the budget: there is nothing to see.
    """
    times = np.array([[math.inf if t is None else t for t in side] for side in (arm, reference)], dtype=float).T
    if len(times) < 2 or (times >= budget).all():
        return None
    found = jackknife(np.minimum(times, budget), lambda total: math.log(total[0] / total[1]))
    return Interval(math.exp(found.value), math.exp(found.low), math.exp(found.high), found.n) if found is not None else None
