"""Which task is drawn next: low-discrepancy, so that no task waits longer than it must.

Tijdeman's rule for the chairman assignment problem (Discrete Mathematics 32, 1980): after every draw each task's count lies
within 1 of its share of all draws, so two sightings of a task are at most 1 + 2 / share draws apart. Drawing tasks at random
gives gaps about log(draws) times longer.
"""

from __future__ import annotations

import numpy as np


class TaskOrder:
    """The next task, given weights that may change between draws.

    Args:
        tasks: number of tasks.
    """

    def __init__(self, tasks: int) -> None:
        self.credit = np.zeros(tasks)
        """Draws each task is owed; sums to 0 between draws, each within (-1, 1) while weights stay."""

    def next(self, weights: np.ndarray) -> int:
        """Index of the task to draw. Among tasks owed enough, the one whose deadline comes first.

        Args:
            weights: shares of shape (tasks,), non-negative, summing to 1; a task of weight 0 is never drawn.
        """
        live = np.flatnonzero(weights > 0)
        self.credit[live] += weights[live]
        if len(live) == 1:
            pick = live[0]
        else:
            slack = 1 / (2 * len(live) - 2)
            owed = live[self.credit[live] >= min(slack, self.credit[live].max()) - 1e-9]
            pick = owed[np.argmin((1 - slack - self.credit[owed]) / weights[owed])]
        self.credit[pick] -= 1
        return int(pick)
