"""Every example of a task equally often: shuffled passes without replacement, as a trainer without steering does.

Source: the reference arm of every trial; TRL's own sampler shuffles an epoch the same way, over all tasks together.
Unit: none.
Cost: one permutation of a task's examples per pass through them.
Blind spot: spends as much on what is mastered or out of reach as on what can be learnt now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixwright.contracts import Scene, Selector


class Uniform(Selector):
    """Passes through each task's examples in a fresh random order."""

    def begin(self, scene: Scene) -> None:
        """Start before the first pass of each task."""
        self._ledger = scene.ledger
        self._seeds = [0] * len(scene.pool.tasks)
        self._places = [-1] * len(scene.pool.tasks)
        self._orders: dict[int, np.ndarray] = {}

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The next examples of each task's pass; a new pass takes its seed from `rng`."""
        found = np.empty(len(tasks), dtype=np.int64)
        for task in np.unique(tasks):
            places = np.flatnonzero(tasks == task)
            while len(places):
                ahead = self._pass(task, rng)[: len(places)]
                found[places[: len(ahead)]] = ahead
                self._places[task] += len(ahead)
                places = places[len(ahead) :]
        return found

    def _pass(self, task: int, rng: np.random.Generator) -> np.ndarray:
        """What is left of the task's pass, or a whole new one."""
        members = self._ledger.task_members(task)
        if self._places[task] in (-1, len(members)):
            self._seeds[task], self._places[task] = int(rng.integers(2**53)), 0
            self._orders.pop(task, None)
        if task not in self._orders:
            self._orders[task] = np.random.default_rng(self._seeds[task]).permutation(members)
        return self._orders[task][self._places[task] :]

    def state(self) -> dict[str, Any]:
        """Seed and place of each task's pass."""
        return {"seeds": list(self._seeds), "places": list(self._places)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue the passes."""
        self._seeds, self._places = list(state["seeds"]), list(state["places"])
        self._orders = {}
