"""Looks at the same items, again and again while a model trains: has it lost something?

Items change their answer for no reason, too, and then as often from wrong to right as from right to wrong. So under the
null of no loss each item's changes, over all looks together, may as well have the other sign. What a mean loss would
have to reach is found by turning these signs at random, the same way at each look, and by spending the allowed error
over the planned looks: after a share s of them the square root of s is spent, because most of a loss comes early in a
run. Looks that see nearly the same answers share one chance of an error, and that is used: the boundary then falls from
look to look.

Source: sign flips jointly over dependent tests as Westfall and Young (1993) have it; error spent over looks after Lan and
DeMets (1983).
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

FALSE_STOP_RATE = 0.05
"""Share of runs without a loss that may be stopped at any of their looks."""
PASS_Z = 1.6449
"""Of the one-sided 95 % lower end by which a look passes."""
SIGN_DRAWS = 10_000


@dataclass(frozen=True)
class LookResult:
    """What one look showed; shares, after minus before, each task counted once."""

    change: float
    """Mean change."""
    lower: float
    """Its one-sided 95 % lower end, for this look alone."""
    loss_is_shown: bool
    """Whether a loss is shown, with all looks so far taken into account."""


class RepeatedLooks:
    """Tests at each of so many planned looks.

    Args:
        tasks: task of each item.
        planned_looks: at most so many are made; those beyond never show a loss.
        seed: of the signs.
    """

    def __init__(self, tasks: Sequence[str], planned_looks: int, *, seed: int = 0) -> None:
        names, self._task_of = np.unique(np.asarray(tasks), return_inverse=True)
        self.items_by_task = np.bincount(self._task_of)
        self.weights: Float[np.ndarray, " items"] = 1.0 / (len(names) * self.items_by_task[self._task_of])
        self.planned_looks = planned_looks
        signs = np.random.default_rng(seed).integers(0, 2, (SIGN_DRAWS, len(tasks)), dtype=np.int8)
        self._signs = (2 * signs - 1).astype(np.float32)
        self._alive = np.ones(SIGN_DRAWS, dtype=bool)
        self.looks = 0

    def look(self, changes: Float[np.ndarray, " items"]) -> LookResult:
        """The next look.

        Args:
            changes: of each item's score since before training, in the order of `tasks`, -1 to 1.
        """
        self.looks += 1
        parts = self.weights * np.asarray(changes, float)
        mean, size = float(parts.sum()), math.sqrt(float((parts**2).sum()))
        lower = mean - PASS_Z * self._standard_error(np.asarray(changes, float))
        return LookResult(mean, lower, size > 0 and self._crosses(-parts / size))

    def _crosses(self, parts: Float[np.ndarray, " items"]) -> bool:
        """Whether the standardised loss lies beyond what the error left for this look allows."""
        if self.looks > self.planned_looks:
            return False
        by_sign = self._signs @ parts.astype(np.float32)
        allowed = math.floor(FALSE_STOP_RATE * SIGN_DRAWS * math.sqrt(self.looks / self.planned_looks))
        free = allowed - int((~self._alive).sum())
        alive = np.sort(by_sign[self._alive])
        # the largest value that at most `free` of the draws that have crossed nowhere exceed
        boundary = float(alive[len(alive) - 1 - free]) if 0 <= free < len(alive) else math.inf
        self._alive &= by_sign <= boundary
        return float(parts.sum()) > boundary + 1e-6

    def _standard_error(self, changes: Float[np.ndarray, " items"]) -> float:
        """Of the mean over tasks; a task of one item adds what the largest change would."""
        total = 0.0
        for task, count in enumerate(self.items_by_task):
            own = changes[self._task_of == task]
            total += (float(own.var(ddof=1)) if count > 1 else 1.0) / count
        return math.sqrt(total) / len(self.items_by_task)
