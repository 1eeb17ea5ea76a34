"""Reserve of draws for rehearsal of what the model can do, whatever the selector and the weights say.

It is a fixed share of draws, even over the tasks that have something to offer. Its draws are extra leaves of the task order,
so they are spread as evenly as tasks are.

What a task can offer are its mastered cells (lasting evidence); where it has none, the cell of largest kappa that is
neither hopeless nor lucky. Within a cell the examples that were drawn longest ago are taken.
"""

from __future__ import annotations

import numpy as np

from mixwright.estimates.cell_states import LEAST_EVIDENCE, LUCKY, side
from mixwright.steer.scene import Scene

CANDIDATES = 8
"""Random examples of a cell looked at per draw."""


class Reserve:
    """The share of draws that is kept back.

    Args:
        scene: pool, evidence and band.
        anchor: rehearsal share, the share of draws for what can be done, 0..0.5.
    """

    def __init__(self, scene: Scene, anchor: float) -> None:
        self._pool, self._ledger, self._anchor = scene.pool, scene.ledger, anchor
        self._task_of = np.array([scene.pool.tasks.index(cell.task) for cell in scene.pool.cells])
        self._low, self._high = np.array([scene.stage.band_of(cell.task) for cell in scene.pool.cells]).T

    def cells(self) -> list[np.ndarray]:
        """Per task the numbers of the cells that can be done and drawn; empty where nothing is known to be."""
        ledger, everywhere = self._ledger, np.arange(len(self._task_of))
        evidence = ledger.lasting
        success = ledger.kappa(evidence.wins / np.maximum(evidence.tries, 1e-12), everywhere)
        known = (evidence.tries >= LEAST_EVIDENCE) & (ledger.sizes > 0)
        place = side(*evidence.effective(everywhere), self._low, self._high)
        skilled = (success > 0) & (ledger.answers.kappa_high() >= LUCKY)
        mastered, reachable = known & (place > 0), known & (place == 0) & skilled
        found = []
        for task in range(len(self._pool.tasks)):
            here = self._task_of == task
            best = np.flatnonzero(mastered & here)
            if not len(best) and (reachable & here).any():
                best = np.array([np.argmax(np.where(reachable & here, success, -np.inf))])
            found.append(best)
        return found

    def shares(self) -> np.ndarray:
        """Share of all draws kept back per task; sums to less than 1, to 0 where nothing can be done yet."""
        if not self._anchor:
            return np.zeros(len(self._pool.tasks))
        able = np.array([len(cells) > 0 for cells in self.cells()])
        return self._anchor * able / max(1, able.sum())

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For each draw an example of its task that can be done; int64. Cells of a task take turns at random."""
        found, cells = np.empty(len(tasks), dtype=np.int64), self.cells()
        chosen = np.array([rng.choice(cells[task]) for task in tasks], dtype=np.int64)
        for cell in np.unique(chosen):
            places = np.flatnonzero(chosen == cell)
            members = np.unique(self._ledger.random_members(np.array([cell]), CANDIDATES * len(places), rng)[0])
            members = rng.permutation(members)
            rested = members[np.argsort(self._ledger.drawn[members], kind="stable")]
            found[places] = np.resize(rested, len(places))
        return found
