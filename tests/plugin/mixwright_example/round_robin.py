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

    def pick(self, task: int, rng: np.random.Generator) -> int:
        """The item after the last one."""
        members = self.scene.ledger.task_members(task)
        name = self.scene.pool.tasks[task]
        place = self.drawn.get(name, 0)
        self.drawn[name] = place + 1
        return int(members[place % len(members)])

    def state(self) -> dict[str, Any]:
        """How many were drawn of each task."""
        return {"drawn": self.drawn}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on after them."""
        self.drawn = dict(state["drawn"])
