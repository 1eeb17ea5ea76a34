"""Draws a task more often while the run's own losses or rewards say that others overwrite it.

A task is starved when (1) its running loss (GRPO: its failures) is above its own best by `errors` standard errors and by a
tenth of its first, or (2) much of its first loss is left and its rows cost no less than when they were last seen, or (3) it
was not seen for `gap` steps. Its weight then grows by `rise`, at most to `most` times the stage's and not over an even share
of the run; it shrinks back the same way once it is not starved. Looks every `every` steps.

Source: loss of rare tasks between sightings, 2605.29548; signals and rule are ours.
Unit: share of draws.
Cost: none; reads what the step shows anyway.
Blind spot: a task that nothing can be learnt of (noise) looks starved by (2) and holds the most it may have. On tables
    (benchmarks/rare_task.py) rare accuracy was 0.92 against 0.60 without it, but a plain floor of 2 % gave 0.99: for runs in
    which nobody can say beforehand how much is enough. Not measured in GRPO. Off unless a plan names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.contracts import Mixture, Scene
from mixwright.errors import InputError
from mixwright.records import GroupOutcome, Outcome, PairOutcome
from mixwright.steer.mixtures._steady import Steady, stage_shares

FORGOTTEN = 0.1
"""Share of the first loss (or best success) by which a task must have lost, however sure that is."""
PARTS = ("seen", "rows", "level", "square", "first", "best", "drops", "drop", "drop_square", "factor")
"""What is kept per task: last step seen; rows, running mean and mean square of the loss, its first and best mean; the same
of the drops; the factor on the stage's weight."""


class Starved(Mixture):
    """Weights that rise for what is being lost.

    Args:
        most: largest factor on a task's weight.
        rise: factor of one move.
        errors: standard errors by which a loss must be above its best.
        left: share of the first loss that must be left for (2).
        memory: rows (groups) per task that running means go back.
        gap: steps without a sighting after which a task counts as starved.
        every: steps between two looks.
    """

    def __init__(
        self,
        *,
        most: float = 4.0,
        rise: float = 1.5,
        errors: float = 3.0,
        left: float = 0.5,
        memory: int = 64,
        gap: int = 100,
        every: int = 25,
    ) -> None:
        if not (most >= 1 and rise > 1 and memory >= 2 and every >= 1 and gap >= 1):
            got = f"most {most:g}, rise {rise:g}, memory {memory}, every {every}, gap {gap}"
            raise InputError(
                "most of 1 or more, rise over 1, positive memory, every and gap", got, "Correct mixtures.starved."
            )
        if not (most < math.inf and rise < math.inf and 0 <= errors < math.inf and 0 <= left < math.inf):
            got = f"most {most:g}, rise {rise:g}, errors {errors:g}, left {left:g}"
            raise InputError("finite most, rise, errors and left", got, "Correct mixtures.starved.")
        self.most, self.rise, self.errors, self.left = most, rise, errors, left
        self.memory, self.gap, self.every = memory, gap, every

    def begin(self, scene: Scene) -> None:
        """Start from the stage's weights; nothing is known."""
        self._tasks, self._base = scene.pool.tasks, stage_shares(scene)
        even = 1 / np.count_nonzero(self._base)
        self._limit = np.clip(even / np.maximum(self._base, 1e-12), 1.0, self.most)
        self._numbers = {task: number for number, task in enumerate(self._tasks)}
        self._steady = Steady(self._base, self.every, 0.0)
        self._of = {part: np.zeros(len(self._tasks)) for part in PARTS}
        self._of["factor"] += 1

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Take in losses, failures and drops."""
        for outcome in outcomes:
            task = self._numbers[outcome.task]
            self._of["seen"][task] = max(step, self._of["seen"][task])  # time does not go back
            if isinstance(outcome, GroupOutcome):
                self._learn(task, -sum(outcome.rewards) / len(outcome.rewards), None)
            elif outcome.loss is not None:
                self._learn(task, outcome.loss, outcome.drop if isinstance(outcome, Outcome) else None)

    def weights(self, step: int) -> dict[str, float]:
        """The weights now."""
        if self._steady.due(step):
            factor, starved = self._of["factor"], self._starved(step)
            moved = np.where(starved, np.minimum(factor * self.rise, self._limit), np.maximum(factor / self.rise, 1.0))
            self._of["factor"] = moved
            proposed = self._base * moved
            self._steady.move(proposed / proposed.sum())
        return dict(zip(self._tasks, self._steady.shares.tolist(), strict=True))

    def _learn(self, task: int, loss: float, drop: float | None) -> None:
        """One row: running means with a memory of `memory` rows, plain means before that; the best once they are full."""
        of = self._of
        for value, count, mean, square in ((loss, "rows", "level", "square"), (drop, "drops", "drop", "drop_square")):
            if value is None:
                continue
            of[count][task] += 1
            pace = 1 / min(of[count][task], self.memory)
            of[mean][task] += pace * (value - of[mean][task])
            of[square][task] += pace * (value**2 - of[square][task])
        if of["rows"][task] == self.memory:
            of["first"][task] = of["best"][task] = of["level"][task]
        of["best"][task] = min(of["best"][task], of["level"][task])

    def _starved(self, step: int) -> np.ndarray:
        """Which tasks are being lost, bool of shape (tasks,)."""
        of = self._of
        known, again = of["rows"] >= self.memory, of["drops"] >= self.memory
        # A running mean that forgets exponentially rests on about twice its memory of rows.
        error, drop_error = (
            np.sqrt(np.maximum(of[square] - of[mean] ** 2, 0) / (2 * self.memory))
            for mean, square in (("level", "square"), ("drop", "drop_square"))
        )
        least = FORGOTTEN * np.maximum(np.abs(of["first"]), np.abs(of["best"]))
        worse = known & (of["level"] - of["best"] > np.maximum(self.errors * error, np.maximum(least, 1e-9)))
        stuck = (
            again & (of["level"] > self.left * of["first"]) & (of["first"] > 0) & (of["drop"] <= self.errors * drop_error)
        )
        return worse | stuck | (step - of["seen"] > self.gap)

    def state(self) -> dict[str, Any]:
        """Running means, factors and weights."""
        return self._steady.state() | {part: values.tolist() for part, values in self._of.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._steady.restore(state)
        self._of = {part: np.array(state[part], dtype=float) for part in PARTS}
