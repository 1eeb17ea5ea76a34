"""Rule with perfect knowledge: draws by the true pass rate of each level now, measured outside the charge.

Every `STEPS_BETWEEN_READINGS` steps each cell's success is measured on fresh samples that nobody pays for; a cell whose
success u above its chance level lies in the band is drawn in proportion to u(1 - u), any other never.

Source: LILO 2502.12272 (learnability), with the truth in place of an estimate.
Unit: none.
Cost: none charged.
Blind spot: knows cells, not single problems; the truth is up to `STEPS_BETWEEN_READINGS` steps old.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.contracts import Pool
from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule

STEPS_BETWEEN_READINGS = 5
"""Steps between two measurements."""
PROBLEMS_PER_CELL, SAMPLES_PER_PROBLEM = 24, 8
"""Of a cell, in one measurement."""


class Oracle(Rule):
    """Draws by truth.

    Args:
        pool: of the arena's examples, in their order; its cells know their chance levels.
        band: success above the chance level to aim for.
        seed: of its draws.
    """

    def __init__(self, pool: Pool, band: Sequence[float], seed: int) -> None:
        super().__init__()
        self._rng, self._band = np.random.default_rng((seed, 5)), tuple(band)
        self._members = [np.flatnonzero(pool.cell_of == cell) for cell in range(len(pool.cells))]
        self._chance = np.array([cell.chance for cell in pool.cells])
        self._weights = np.full(len(pool.cells), 1 / len(pool.cells))

    def step(self, arena: Arena) -> Learnt:
        """Measure when it is time, then draw cells by weight and problems at random."""
        if arena.steps % STEPS_BETWEEN_READINGS == 0:
            self._measure(arena)
        cells = self._rng.choice(len(self._weights), arena.settings.prompts, p=self._weights)
        rollouts = arena.roll([int(self._rng.choice(self._members[cell])) for cell in cells], arena.settings.group)
        self.record_update(rollouts)
        return arena.learn(rollouts)

    def _measure(self, arena: Arena) -> None:
        chosen = [
            self._rng.choice(members, min(PROBLEMS_PER_CELL, len(members)), replace=False) for members in self._members
        ]
        seen = arena.look([arena.examples[index] for part in chosen for index in part], SAMPLES_PER_PROBLEM).rewards.mean(1)
        ends = np.cumsum([len(part) for part in chosen])[:-1]
        success = np.array([part.mean() for part in np.split(seen, ends)])
        above = np.clip((success - self._chance) / (1 - self._chance), 0, 1)
        low, high = self._band
        worth = np.where((above >= low) & (above <= high), above * (1 - above), 0.0)
        if not worth.any():  # nothing is in the band: the nearest to its middle
            worth[np.abs(above - (low + high) / 2).argmin()] = 1.0
        self._weights = worth / worth.sum()
