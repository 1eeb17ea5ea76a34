"""Mixture that gives every task at least a share of the draws, however rare it is in the data.

Tasks under the floor are raised to it and the others scaled down alike. Where the tasks are so many that their floors would
take more than `most` of the run, the floor is lowered to `most` / tasks. Tasks that the stage leaves out stay out.

Source: up-weighting as the cheap alternative to scaling, 2605.29548.
Unit: share of draws.
Cost: none; the weights never move.
Blind spot: knows how rare a task is, not whether it needs more: simple tasks and mastered ones are raised alike. On tables
    (benchmarks/rare_task.py, 5 seeds) a floor of 2 % took the accuracy over all tasks 7.8 points over the data's own shares
    [5.4, 10.2]; equal weights did as much (0.8 points more [-0.4, 2.0]). Off unless a plan names it.
"""

from __future__ import annotations

import numpy as np

from mixwright.contracts import Mixture, Scene
from mixwright.errors import check_range


class Floor(Mixture):
    """Least shares.

    Args:
        share: least share of a task, at most 0.5: two tasks cannot have more each.
        most: share of the run that all floors may take together, above 0.
    """

    def __init__(self, *, share: float = 0.02, most: float = 0.5) -> None:
        self.share, self.most = share, most
        check_range("mixtures.floor", vars(self), share=(1e-9, 0.5), most=(1e-9, 1))

    def begin(self, scene: Scene) -> None:
        """Work the weights out, once."""
        shares = stage_shares(scene)
        floor = min(self.share, self.most / (shares > 0).sum())
        self._weights = dict(zip(scene.pool.tasks, raised(shares, floor).tolist(), strict=True))

    def weights(self, step: int) -> dict[str, float]:
        """The same at every step."""
        return self._weights


def stage_shares(scene: Scene) -> np.ndarray:
    """The stage's own weights in the order of the pool's tasks, summing to 1; 0 for a task that the stage leaves out."""
    weights = np.array([scene.stage.weights.get(task, 0.0) for task in scene.pool.tasks], dtype=float)
    return weights / weights.sum()


def raised(shares: np.ndarray, floor: float) -> np.ndarray:
    """Shares of at least `floor` each, the others scaled down alike; tasks of share 0 stay out.

    Args:
        shares: non-negative, summing to 1.
        floor: at most 1 / number of tasks that have a share.
    """
    low = np.zeros(len(shares), dtype=bool)
    while True:
        free = (shares > 0) & ~low
        scale = (1 - floor * low.sum()) / shares[free].sum() if free.any() else 1.0
        found = np.where(low, floor, shares * scale)
        under = free & (found < floor - 1e-12)
        if not under.any():
            return found / found.sum()
        low |= under
