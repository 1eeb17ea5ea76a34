"""Draws what the model can just do: success above luck inside the band, by Thompson sampling, without extra rollouts.

A cell of the task is chosen by one draw from each posterior: weight 4u(1 - u)(1 - a) when the drawn success above luck u
lies in the band, a being how alike the rollouts of a prompt are (a cell of always right and always wrong prompts has no
signal), `anchor` above it, `below` under it (a lucky cell has u near 0 and lands there). Then, of `candidates` random
examples of the cell not drawn a moment ago, the one whose own posterior draw lies nearest the middle of the band. A share
`explore` ignores all this, so that nothing starves.

Source: MoPPS 2507.04632 (Beta posterior, Thompson), LILO 2502.12272 (learnability u(1 - u)); luck and cells are ours.
Unit: success above luck, 0..1.
Cost: O(cells of the task + candidates) arithmetic per draw, a whole batch at once; no rollouts.
Blind spot: follows evidence that is one generation batch old; two examples of a cell look alike until each was tried.
"""

from __future__ import annotations

import numpy as np

from mixwright.contracts import Scene, Selector

FEW = 64
"""Examples at which a cell counts half: fewer would be drawn again and again."""
POSTERIORS = 256
"""Samples from the posteriors of a task's cells in one batch, at most."""
TIRED = 1e3
"""Added to the distance of a candidate that was drawn a moment ago."""


class Difficulty(Selector):
    """Thompson draw towards the band.

    Args:
        candidates: examples compared per draw.
        explore: share of draws that take any example of the task.
        anchor: weight of a cell above the band, against 1 for a cell in its middle.
        below: weight of a cell under the band.
        rest: draws for which a drawn example is passed over, as long as other candidates are there.
    """

    def __init__(
        self, *, candidates: int = 8, explore: float = 0.05, anchor: float = 0.05, below: float = 0.005, rest: int = 64
    ) -> None:
        self.candidates, self.explore, self.anchor, self.below, self.rest = candidates, explore, anchor, below, rest

    def begin(self, scene: Scene) -> None:
        """Note each task's cells; small cells count less, so that a handful of examples is not drilled."""
        self._ledger, self._band = scene.ledger, scene.stage.band
        cells = [scene.ledger.task_cells(task) for task in range(len(scene.pool.tasks))]
        self._cells = np.zeros((len(cells), max(map(len, cells))), dtype=np.int64)
        for task, found in enumerate(cells):
            self._cells[task, : len(found)] = found
        there = np.arange(self._cells.shape[1]) < np.array([[len(found)] for found in cells])
        sizes = np.where(there, scene.ledger.sizes[self._cells], 0)
        self._sizes = sizes / (sizes + FEW)

    def worth(self, above: np.ndarray, alike: np.ndarray) -> np.ndarray:
        """Weight of a cell by its success above luck and by how alike the rollouts of its prompts are, both 0..1."""
        low, high = self._band
        inside = np.maximum(4 * above * (1 - above) * (1 - alike), self.below)
        return np.where(above < low, self.below, np.where(above > high, self.anchor, inside))

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Examples of the tasks. A batch draws no example twice while its candidates allow."""
        found = self._choose_examples(self._choose_cells(tasks, rng), rng)
        explored = rng.random(len(tasks)) < self.explore
        for task in np.unique(tasks[explored]):
            places = np.flatnonzero(explored & (tasks == task))
            found[places] = rng.choice(self._ledger.task_members(task), len(places))
        return found

    def _choose_cells(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A cell per draw; in a large batch draws share samples from the posteriors of the cells."""
        ledger, cells, draws = self._ledger, self._cells[tasks], np.arange(len(tasks))
        wins, losses = ledger.recent.beta(np.arange(len(ledger.luck)))
        if len(tasks) <= POSTERIORS:
            success = rng.beta(wins[cells], losses[cells])
        else:
            success = rng.beta(wins, losses, (POSTERIORS, len(wins)))[draws[:, None] % POSTERIORS, cells]
        alike = ledger.lasting.alike(np.arange(len(ledger.luck)))
        weights = np.cumsum(self.worth(ledger.above(success, cells), alike[cells]) * self._sizes[tasks], axis=1)
        place = (weights <= rng.random((len(tasks), 1)) * weights[:, -1:]).sum(axis=1)
        return cells[draws, np.minimum(place, cells.shape[1] - 1)]

    def _choose_examples(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Of random candidates the one whose posterior draw lies nearest the middle of the band, rested ones first."""
        ledger, draws = self._ledger, np.arange(len(cells))
        found = ledger.random_members(cells, self.candidates, rng)
        # Candidates without evidence have the same posterior: any order of them is as likely, so theirs will do.
        far = np.tile(np.linspace(0, 1, self.candidates), (len(cells), 1))
        drawn = ledger.drawn[found]
        known = (drawn >= 0).any(axis=1)
        above = ledger.above(rng.beta(*ledger.beta(found[known])), cells[known, None])
        far[known] = np.abs(above - sum(self._band) / 2)
        far[drawn >= max(ledger.draws - self.rest, 0)] += TIRED
        best = far.argmin(axis=1)
        for _ in range(self.candidates if self.rest else 0):
            again = _repeats(found[draws, best])
            if not len(again):
                break
            far[again, best[again]] += TIRED
            best[again] = far[again].argmin(axis=1)
        return found[draws, best].astype(np.int64)


def _repeats(numbers: np.ndarray) -> np.ndarray:
    """Places of numbers that stand earlier in the array too."""
    keys = np.sort((numbers.astype(np.int64) << 32) + np.arange(len(numbers)))  # a full sort: the same on every machine
    return keys[1:][keys[1:] >> 32 == keys[:-1] >> 32] & (2**32 - 1)
