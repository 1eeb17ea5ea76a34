"""Rule of a fixed filter: only levels inside the band when the run began, by a measurement that is charged.

Inside is decided by success on `PROBLEMS_PER_LEVEL` problems of each level, and never again. Where no level is inside, the
one nearest to the band's middle is kept. Problems come in shuffled passes.

Source: offline difficulty filtering, the common practice (DAPO-17K, Big-Math: items kept by a reference model's pass rate).
Unit: success, 0..1.
Cost: `PROBLEMS_PER_LEVEL` x `ROLLOUTS_PER_PROBLEM` rollouts per level before the run.
Blind spot: the model moves and the filter does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.contracts import Pool
from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule, UniformRule

PROBLEMS_PER_LEVEL, ROLLOUTS_PER_PROBLEM = 8, 8
"""Problems per level, and rollouts of each, that are measured at the start."""


class StaticBand(Rule):
    """Passes through the problems of the levels that were in the band at the start.

    Args:
        pool: of the arena's examples, in their order.
        band: success to keep, both ends included.
        seed: of its draws.
    """

    def __init__(self, pool: Pool, band: Sequence[float], seed: int) -> None:
        super().__init__()
        self._band, self._seed = tuple(band), seed
        self._members = [np.flatnonzero(pool.cell_of == cell) for cell in range(len(pool.cells))]
        self._passes: UniformRule | None = None

    def step(self, arena: Arena) -> Learnt:
        """Measure at the first step; then the next problems of the pass."""
        if self._passes is None:
            self._passes = UniformRule(self._inside(arena), self._seed)
            self._passes.totals = self.totals
        return self._passes.step(arena)

    def _inside(self, arena: Arena) -> np.ndarray:
        """Problems of the levels that are kept."""
        rng, success = np.random.default_rng((self._seed, 10)), []
        for members in self._members:
            chosen = rng.choice(members, min(PROBLEMS_PER_LEVEL, len(members)), replace=False)
            success.append(float(arena.roll(chosen.tolist(), ROLLOUTS_PER_PROBLEM).rewards.mean()))
        low, high = self._band
        inside = [low <= value <= high for value in success]
        if not any(inside):
            inside[int(np.abs(np.array(success) - (low + high) / 2).argmin())] = True
        return np.concatenate([members for members, kept in zip(self._members, inside, strict=True) if kept])
