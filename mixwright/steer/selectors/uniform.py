"""Selector that draws every example of a task equally often, in shuffled epochs, as a trainer without steering does.

Source: the reference arm of every trial; TRL's own sampler shuffles an epoch the same way, over all tasks together.
Unit: none.
Cost: one permutation of a task's examples per pass through them.
Blind spot: spends as much on what is mastered or out of reach as on what can be learnt now.
"""

from __future__ import annotations

import numpy as np

from mixwright.contracts import Scene, Selector
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.selectors._epochs import Epochs


class Uniform(Checkpointable, Selector):
    """Epochs over each task's examples in a fresh random order."""

    STATE_FIELDS = ("_epochs",)

    def begin(self, scene: Scene) -> None:
        """Start before the first pass of each task."""
        self._epochs = Epochs(len(scene.pool.tasks), scene.ledger.task_members)

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The next examples of each task's pass; a new pass takes its seed from `rng`."""
        return self._epochs.next(tasks, rng)
