"""Rule that draws until enough groups have different rewards; the others are thrown away, and charged.

Source: DAPO 2503.14476 (dynamic sampling).
Unit: none.
Cost: all groups drawn, kept or not; at most `MOST_BATCHES` batches per step, as in its code.
Blind spot: pays in full for every prompt that turns out to be silent, and takes a lucky group for a good one.
"""

from __future__ import annotations

import numpy as np

from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule

MOST_BATCHES = 10
"""Batches drawn for one step at most."""


class Refill(Rule):
    """Uniform draws, until a batch of groups with different rewards is full.

    Args:
        size: examples of the pool.
        seed: of the order.
    """

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        self._size, self._rng = size, np.random.default_rng((seed, 3))

    def step(self, arena: Arena) -> Learnt:
        """Draw, filter, draw again; learn from the first full batch."""
        wanted, kept = arena.settings.prompts, None
        for _ in range(MOST_BATCHES):
            drawn = self._rng.choice(self._size, wanted, replace=False).tolist()
            rollouts = arena.roll(drawn, arena.settings.group)
            mixed = rollouts.take(np.flatnonzero(rollouts.rewards.std(1) > 0).tolist())
            kept = mixed if kept is None else kept.joined(mixed)
            if len(kept.examples) >= wanted:
                break
        if kept is None or not kept.examples:
            return Learnt(0.0, 0.0)
        kept = kept.take(range(min(wanted, len(kept.examples))))
        self.record_update(kept)
        return arena.learn(kept)
