"""Every item of a task once, in order, then again.

Source: none; an example of state that has to survive a resume.
Unit: draws.
Cost: one number per task.
Blind spot: everything that happens during the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixwright.contracts import Scene, Selector


class RoundRobin(Selector):
    """Counts its draws per task; needs no randomness."""

    def __init__(self) -> None:
        self.drawn: dict[str, int] = {}

    def begin(self, scene: Scene) -> None:
        """Learn what may be drawn."""
        self.scene = scene

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For each draw the item after the last one of its task."""
        found = np.empty(len(tasks), dtype=np.int64)
        for task in np.unique(tasks):
            places = np.flatnonzero(tasks == task)
            members, name = self.scene.ledger.task_members(task), self.scene.pool.tasks[task]
            first = self.drawn.get(name, 0)
            self.drawn[name] = first + len(places)
            found[places] = members[np.arange(first, first + len(places)) % len(members)]
        return found

    def state(self) -> dict[str, Any]:
        """How many were drawn of each task."""
        return {"drawn": self.drawn}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on after them."""
        self.drawn = dict(state["drawn"])
