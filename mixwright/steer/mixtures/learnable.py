"""Draws tasks by what can be learnt in them now: kappa times the room that is left (GRPO).

A cell is worth 4k(1 - k)(1 - a), less where its examples are few: k its kappa, a how alike the rollouts of one of
its prompts are (always right and always wrong prompts carry no signal). A task is worth its best cell where the selector
looks for the best, else the mean over its examples. Each task keeps a share `explore` / tasks. A cell that was never tried
counts as half right. Weights move every `every` steps at most, and only when one of them changes by more than `change`.

Source: learnability p(1 - p) of LILO 2502.12272; kappa and cells are ours.
Unit: share of draws.
Cost: none; reads the evidence that the run collects anyway.
Blind spot: the largest variance of rewards is not the fastest learning; without rewards (SFT, DPO) every task looks alike,
    and the stage's weights stay. Off unless a plan names it: it took 1.7 x fewer rollouts to a target than the data's own
    shares (1.2 to 2.4), and 1.7 x more than equal ones (1.2 to 2.6), which know nothing (benchmarks/mixture, 5 seeds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.contracts import Mixture, Scene
from mixwright.errors import InputError
from mixwright.estimates.cell_states import FEW, room
from mixwright.records import GroupOutcome, Outcome, PairOutcome
from mixwright.steer.mixtures._steady import Steady, stage_shares


class Learnable(Mixture):
    """Weights by kappa x room.

    Args:
        explore: share of the run spread evenly over the tasks.
        every: steps between two moves, at least.
        change: least relative change of some weight that is worth a move.
    """

    def __init__(self, *, explore: float = 0.2, every: int = 10, change: float = 0.2) -> None:
        if not (0 < explore <= 1 and every >= 1 and change >= 0):
            got = f"explore {explore:g}, every {every}, change {change:g}"
            raise InputError("explore in 0..1, every of at least 1, change of 0 or more", got, "Correct mixtures.learnable.")
        self.explore, self.every, self.change = explore, every, change

    def begin(self, scene: Scene) -> None:
        """Start from the stage's weights."""
        shares = stage_shares(scene)
        self._tasks, self._ledger, self._in = scene.pool.tasks, scene.ledger, shares > 0
        self._best = scene.stage.selector != "uniform"
        self._steady, self._rewarded = Steady(shares, self.every, self.change), False

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Note whether there are rewards at all."""
        self._rewarded |= any(isinstance(outcome, GroupOutcome) for outcome in outcomes)

    def weights(self, step: int) -> dict[str, float]:
        """The weights now."""
        if self._rewarded and self._steady.due(step):
            worth = np.where(self._in, [self._worth(task) for task in range(len(self._tasks))], 0.0)
            even = self._in / self._in.sum()
            self._steady.move(self.explore * even + (1 - self.explore) * worth / worth.sum() if worth.sum() > 1e-9 else even)
        return dict(zip(self._tasks, self._steady.shares.tolist(), strict=True))

    def _worth(self, task: int) -> float:
        """Worth of a task, 0..1."""
        cells = self._ledger.task_cells(task)
        if not len(cells):
            return 0.0
        sizes = self._ledger.sizes[cells]
        value = room(self._ledger.recent.mean(cells), self._ledger.answers.swapped()[cells])
        worth = value * (1 - self._ledger.lasting.alike(cells)) * sizes / (sizes + FEW)
        return float(worth.max() if self._best else np.average(worth, weights=sizes))

    def state(self) -> dict[str, Any]:
        """Weights, when they were last looked at, and whether there were rewards."""
        return self._steady.state() | {"rewarded": self._rewarded}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue."""
        self._steady.restore(state)
        self._rewarded = bool(state["rewarded"])
