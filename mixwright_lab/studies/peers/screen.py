"""Rule that screens, then commits: a few rollouts of each candidate, and the rest of the group only where those differ.

Source: SPEED 2506.09016 (its code: keep prompts with spread among the first rollouts, then n_continue more).
Unit: none.
Cost: the first rollouts of every candidate, kept or not, and the rest of those that are kept.
Blind spot: the first rollouts decide: rare successes are thrown away, and guesses look like spread.
"""

from __future__ import annotations

import numpy as np

from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule

FIRST_ROLLOUTS = 4
"""Rollouts of a candidate before it is kept or dropped; half a group of 8."""
MOST_BATCHES = 10
"""Batches of candidates screened for one step at most."""


class Screen(Rule):
    """Uniform candidates, screened until a batch is full.

    Args:
        size: examples of the pool.
        seed: of the order.
    """

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        self._size, self._rng = size, np.random.default_rng((seed, 4))

    def step(self, arena: Arena) -> Learnt:
        """Screen candidates, complete the groups of those kept, learn from both parts."""
        wanted, first = arena.settings.prompts, None
        kept: list[int] = []
        for _ in range(MOST_BATCHES):
            drawn = self._rng.choice(self._size, wanted, replace=False)
            rollouts = arena.roll(drawn.tolist(), FIRST_ROLLOUTS)
            mixed = np.flatnonzero(rollouts.rewards.std(1) > 0)[: wanted - len(kept)]
            kept += drawn[mixed].tolist()
            found = rollouts.take(mixed.tolist())
            first = found if first is None else first.joined(found)
            if len(kept) >= wanted:
                break
        if first is None or not kept:
            return Learnt(0.0, 0.0)
        whole = first.with_responses_of(arena.roll(kept, arena.settings.group - FIRST_ROLLOUTS))
        self.record_update(whole)
        return arena.learn(whole)
