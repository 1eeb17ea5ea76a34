"""Rule that refuses groups by a coin: what refusing is worth when nothing is known of the cells, on uniform draws.

As under a gate, a refused group has no advantage, and where the share of informative groups falls under
`MIN_INFORMATIVE_SHARE` the step is made smaller, or skipped.

Source: a null; the share is that of the gate which it stands beside.
Unit: share of groups.
Cost: refused groups have cost their rollouts.
Blind spot: refuses from the first step on; a gate begins when it has evidence.
"""

from __future__ import annotations

import numpy as np

from mixwright.records import EngineOptions
from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import UniformRule

MIN_INFORMATIVE_SHARE = EngineOptions().min_informative_share


class Coin(UniformRule):
    """Uniform draws, of which a share is refused.

    Args:
        examples: how many the pool has.
        seed: of the order and of the coin.
        share: of groups that are refused; 0 leaves only the rule for few informative groups.
    """

    def __init__(self, examples: int, seed: int, share: float) -> None:
        super().__init__(examples, seed)
        self._share, self._coin = share, np.random.default_rng((seed, 11))

    def step(self, arena: Arena) -> Learnt:
        """The next prompts of the pass, some of them refused."""
        rollouts = arena.roll(self.take(arena.settings.prompts), arena.settings.group)
        admitted = (self._coin.random(len(rollouts.examples)) >= self._share).tolist()
        self.record_update(rollouts, admitted)
        teach = float(((rollouts.rewards.std(1) > 0) & np.array(admitted)).mean())
        self.totals["skipped"] += teach == 0
        return arena.learn(rollouts, admitted, lr_factor=min(1.0, teach / MIN_INFORMATIVE_SHARE))
