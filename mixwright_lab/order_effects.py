"""Expected success of an order of tasks, from what short runs did: effects add up, and do not depend on what came before.

From runs on A, and on A and then B: own[j] is the success of j after its own run; later[i, j] is what a run on j changed in
the success of i, which was trained before it; earlier[i, j] is what a run on i, before, changed in the success of j.

Source: Li et al., Omni-Thinker, 2507.14783 (its assumptions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Effects:
    """What short runs did, with standard errors; K tasks."""

    own_success: Array
    """Success of each task after its own run, shape (K,)."""
    later: Array
    """[i, j]: change of i, trained first, by a run on j, shape (K, K); the diagonal is 0."""
    earlier: Array
    """[i, j]: change of j's success after its own run by a run on i before it, shape (K, K); the diagonal is 0."""
    errors: Array
    """Standard error of later[i, j] + earlier[i, j], shape (K, K)."""

    def gains(self) -> Array:
        """[i, j]: what i before j changes in the sum of both successes, shape (K, K)."""
        return self.later + self.earlier


def expected_success(effects: Effects, order: Sequence[int]) -> Array:
    """Success of each task after the tasks of `order`, which may be the beginning of an order, shape (K,); NaN elsewhere.

    Values are clipped to 0..1 after all effects were added.
    """
    success = np.full(len(effects.own_success), np.nan)
    for position, task in enumerate(order):
        before, after = list(order[:position]), list(order[position + 1 :])
        success[task] = effects.own_success[task] + effects.earlier[before, task].sum() + effects.later[task, after].sum()
    return np.clip(success, 0.0, 1.0)
