"""Selector that draws every level of a task equally often, and the examples of a level in shuffled epochs.

Source: stratified sampling with equal allocation; what the reference arm `equal_shares` draws by.
Unit: none.
Cost: one permutation of a level's examples per pass through them.
Blind spot: small levels are repeated often, and mastered or hopeless ones get as much as those that can be learnt now.
"""

from __future__ import annotations

import numpy as np

from mixwright.contracts import Scene, Selector
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.selectors._epochs import Epochs


class EqualLevels(Checkpointable, Selector):
    """Epochs over each task's levels, and through each level's examples, in fresh random orders."""

    STATE_FIELDS = ("_cells", "_rows")

    def begin(self, scene: Scene) -> None:
        """Start before the first pass of each task and level."""
        pool, ledger = scene.pool, scene.ledger
        self._cells = Epochs(len(pool.tasks), ledger.task_cells)
        members = [ledger.task_members(task) for task in pool.task_of_cell]
        members = [rows[pool.cell_of[rows] == cell] for cell, rows in enumerate(members)]
        self._rows = Epochs(len(pool.cells), lambda cell: members[cell])

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The next level of each task's pass, and the next example of that level's; new passes take seeds from `rng`."""
        return self._rows.next(self._cells.next(tasks, rng), rng)
