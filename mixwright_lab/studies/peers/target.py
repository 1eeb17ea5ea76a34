"""Rule of AdaRFT: draws near a target difficulty that rises while rewards are high and falls while they are low.

Levels are ranked from 0, the lowest, to 1, the highest. After each batch T <- clip(T + RATE x tanh(SHARPNESS x (mean
reward - WANTED)), 0, 1). A draw takes the level nearest to T plus normal noise of width `NOISE`, and a random problem of it:
the published sampler has no noise and serves the same problems again while T stands still.

Source: AdaRFT 2504.05520: rate 50 on a scale of 0..100, sharpness 2, wanted 0.5; the noise is ours.
Unit: rank of a level, 0..1.
Cost: none beyond the rollouts learnt from.
Blind spot: trusts that success falls with the level and reads raw success, so a level that guessing does well holds it.
"""

from __future__ import annotations

import math

import numpy as np

from mixwright.contracts import Pool
from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule

RATE, SHARPNESS, WANTED, NOISE = 0.5, 2.0, 0.5, 0.1


class Target(Rule):
    """Follows one target.

    Args:
        pool: of the arena's examples, in their order; its cells have levels and are sorted by them.
        seed: of its draws.
    """

    def __init__(self, pool: Pool, seed: int) -> None:
        super().__init__()
        self.target = 0.0
        self._rng, self._ranks = np.random.default_rng((seed, 9)), np.linspace(0, 1, len(pool.cells))
        self._members = [np.flatnonzero(pool.cell_of == cell) for cell in range(len(pool.cells))]

    def step(self, arena: Arena) -> Learnt:
        """Draw near the target, learn, and move it."""
        wanted = self.target + NOISE * self._rng.standard_normal(arena.settings.prompts)
        cells = np.abs(self._ranks - wanted[:, None]).argmin(1)
        rollouts = arena.roll([int(self._rng.choice(self._members[cell])) for cell in cells], arena.settings.group)
        self.record_update(rollouts)
        moved = self.target + RATE * math.tanh(SHARPNESS * (float(rollouts.rewards.mean()) - WANTED))
        self.target = min(max(moved, 0.0), 1.0)
        return arena.learn(rollouts)
