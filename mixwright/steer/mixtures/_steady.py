"""What mixtures share: raising shares to a floor, and moving weights seldom, because each change of a weight is logged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixwright.contracts import Scene


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


class Steady:
    """Weights that are moved at most every so many steps, and only when one of them would change enough.

    Args:
        shares: the weights to begin with.
        every: steps between two moves, at least.
        change: least relative change of some weight that is worth a move.
    """

    def __init__(self, shares: np.ndarray, every: int, change: float) -> None:
        self.shares, self.every, self.change = shares, every, change
        self.looked = 0

    def due(self, step: int) -> bool:
        """Whether it is time to look again; says yes once."""
        if step - self.looked < self.every:
            return False
        self.looked = step
        return True

    def move(self, proposed: np.ndarray) -> None:
        """Take the proposed weights over, unless they are nearly the same."""
        if np.any(np.abs(proposed - self.shares) > self.change * np.maximum(self.shares, 1e-9)):
            self.shares = proposed

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"shares": self.shares.tolist(), "looked": self.looked}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.shares, self.looked = np.array(state["shares"], dtype=float), int(state["looked"])
