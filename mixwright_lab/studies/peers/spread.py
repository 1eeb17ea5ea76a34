"""Rule that draws by p(1 - p) of raw success: the spread of rewards, whatever it comes from.

Each cell's success is an exponential mean over its groups; cells are drawn in proportion to p(1 - p), problems at random,
and a small share of draws goes anywhere.

Source: LILO 2502.12272 (learnability), as it is used where nobody asks what luck gives.
Unit: none.
Cost: none beyond the rollouts learnt from.
Blind spot: rewards that are right by luck half the time have the largest spread of all, and no skill behind them.
"""

from __future__ import annotations

import numpy as np

from mixwright.contracts import Pool
from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule

NEW_GROUP_WEIGHT = 0.3
"""Weight of a new group in the mean of its cell."""
ANYWHERE_SHARE = 0.02
"""Share of draws that take any cell."""


class Spread(Rule):
    """Draws by p(1 - p).

    Args:
        pool: of the arena's examples, in their order.
        seed: of its draws.
    """

    def __init__(self, pool: Pool, seed: int) -> None:
        super().__init__()
        self._rng, self._cell_of = np.random.default_rng((seed, 6)), pool.cell_of
        self._members = [np.flatnonzero(pool.cell_of == cell) for cell in range(len(pool.cells))]
        self._success = np.full(len(pool.cells), 0.5)

    def step(self, arena: Arena) -> Learnt:
        """Draw, learn, and note what each cell showed."""
        worth = self._success * (1 - self._success) + 1e-6
        weights = (1 - ANYWHERE_SHARE) * worth / worth.sum() + ANYWHERE_SHARE / len(worth)
        cells = self._rng.choice(len(weights), arena.settings.prompts, p=weights)
        rollouts = arena.roll([int(self._rng.choice(self._members[cell])) for cell in cells], arena.settings.group)
        self.record_update(rollouts)
        for cell, success in zip(cells, rollouts.rewards.mean(1), strict=True):
            self._success[cell] += NEW_GROUP_WEIGHT * (success - self._success[cell])
        return arena.learn(rollouts)
