"""Draws what the model can just do: success above luck inside the band, by Thompson sampling, without extra rollouts.

A cell of the task is chosen by one draw from each posterior: weight 4u(1 - u)(1 - a) when the drawn success above luck u
lies in the band, a being how alike the rollouts of a prompt are (a cell of always right and always wrong prompts has no
signal), `anchor` above it, `below` under it (a lucky cell has u near 0 and lands there). Then, of `candidates` random
examples of the cell not drawn a moment ago, the one whose own posterior draw lies nearest the middle of the band. A share
`explore` ignores all this, so that nothing starves.

Source: MoPPS 2507.04632 (Beta posterior, Thompson), LILO 2502.12272 (learnability u(1 - u)); luck and cells are ours.
Unit: success above luck, 0..1.
Cost: O(cells of the task + candidates) arithmetic per draw; no rollouts.
Blind spot: follows evidence that is one generation batch old; two examples of a cell look alike until each was tried.
"""

from __future__ import annotations

import numpy as np

from mixwright.contracts import Scene, Selector

FEW = 64
"""Examples at which a cell counts half: fewer would be drawn again and again."""


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
        self._cells = [scene.ledger.task_cells(task) for task in range(len(scene.pool.tasks))]
        counts = [np.array([len(scene.ledger.members(int(cell))) for cell in cells], dtype=float) for cells in self._cells]
        self._sizes = [count / (count + FEW) for count in counts]

    def worth(self, above: np.ndarray, alike: np.ndarray) -> np.ndarray:
        """Weight of a cell by its success above luck and by how alike the rollouts of its prompts are, both 0..1."""
        low, high = self._band
        inside = np.maximum(4 * above * (1 - above) * (1 - alike), self.below)
        return np.where(above < low, self.below, np.where(above > high, self.anchor, inside))

    def pick(self, task: int, rng: np.random.Generator) -> int:
        """One example of the task."""
        ledger = self._ledger
        if rng.random() < self.explore:
            return int(rng.choice(ledger.task_members(task)))
        cells = self._cells[task]
        above = ledger.above(rng.beta(*ledger.recent.beta(cells)), cells)
        weights = np.cumsum(self.worth(above, ledger.lasting.alike(cells)) * self._sizes[task])
        cell = int(cells[min(np.searchsorted(weights, rng.random() * weights[-1], side="right"), len(cells) - 1)])
        members = ledger.members(cell)
        found = members[rng.integers(len(members), size=self.candidates)]
        rested = found[(ledger.drawn[found] < 0) | (ledger.drawn[found] < ledger.draws - self.rest)]
        found = rested if len(rested) else found
        above = ledger.above(rng.beta(*ledger.beta(found)), cell)
        return int(found[np.argmin(np.abs(above - sum(self._band) / 2))])
