"""Draws near a target difficulty that rises while rewards are high and falls while they are low: AdaRFT.

Each task has a target T on its own scale of levels: 0 the lowest level of the task, 1 the highest, by rank, because
levels of different families are not comparable. After each batch T <- clip(T + rate x tanh(sharpness x (mean reward -
wanted)), 0, 1) with the mean over the task's groups. A draw takes the level nearest to T plus normal noise of width
`spread` (the published sampler has none and serves the same items again while T stands still), and a random example of
it.

Source: AdaRFT 2504.05520: rate 50 on a scale of 0..100, sharpness 2, wanted 0.5; the noise is ours.
Unit: rank of the level within its task, 0..1; rewards as success, 0..1.
Cost: arithmetic; no rollouts.
Blind spot: trusts that success falls with the level and reads raw success, so a level that guessing does well holds it;
    data without levels has no scale, and every example is as near as any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.contracts import Scene, Selector
from mixwright.records import GroupOutcome, Outcome, PairOutcome
from mixwright.steer._checks import within
from mixwright.steer._ledger import counted


class Target(Selector):
    """Follows one target per task.

    Args:
        rate: largest change of a target per batch.
        sharpness: how fast it is reached as the mean reward leaves `wanted`.
        wanted: mean reward at which the target rests, 0..1.
        spread: standard deviation of the noise on the target, per draw.
        start: target before the first batch.
    """

    def __init__(
        self,
        *,
        rate: float = 0.5,
        sharpness: float = 2.0,
        wanted: float = 0.5,
        spread: float = 0.1,
        start: float = 0.0,
    ) -> None:
        self.rate, self.sharpness, self.wanted, self.spread, self.start = rate, sharpness, wanted, spread, start
        within("selectors.target", vars(self), rate=(0, 1), sharpness=(0, 1e9), wanted=(0, 1), spread=(0, 1), start=(0, 1))

    def begin(self, scene: Scene) -> None:
        """Rank the levels of each task; cells without a level stand in the middle."""
        self._ledger, self._tasks = scene.ledger, {name: number for number, name in enumerate(scene.pool.tasks)}
        self._range = scene.stage.options.get("engine", {}).get("reward_range", (0.0, 1.0))
        self._targets = np.full(len(self._tasks), float(self.start))
        self._cells = [scene.ledger.task_cells(task) for task in range(len(self._tasks))]
        self._ranks = [ranks([scene.pool.cells[cell].level for cell in cells]) for cells in self._cells]

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random example of the level nearest to the task's target with its noise."""
        wanted = self._targets[tasks] + self.spread * rng.standard_normal(len(tasks))
        cells = np.empty(len(tasks), dtype=np.int64)
        for task in np.unique(tasks):
            here = tasks == task
            cells[here] = self._cells[task][np.abs(self._ranks[task] - wanted[here, None]).argmin(axis=1)]
        return self._ledger.random_members(cells, 1, rng)[:, 0].astype(np.int64)

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | Outcome | PairOutcome]) -> None:
        """Move the target of each task that was rewarded."""
        groups = [outcome for outcome in outcomes if isinstance(outcome, GroupOutcome)]
        if not groups:
            return
        wins, tries = counted(groups, self._range)
        tasks = np.array([self._tasks[group.task] for group in groups])
        for task in np.unique(tasks):
            mean = wins[tasks == task].sum() / tries[tasks == task].sum()
            moved = self._targets[task] + self.rate * math.tanh(self.sharpness * (mean - self.wanted))
            self._targets[task] = min(max(moved, 0.0), 1.0)

    def state(self) -> dict[str, Any]:
        """The targets."""
        return {"targets": self._targets.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from those targets."""
        self._targets = np.array(state["targets"])


def ranks(levels: Sequence[float | None]) -> np.ndarray:
    """Rank of each level among them as 0..1, lowest first; 0.5 where there is no level or only one."""
    known = sorted({level for level in levels if level is not None})
    if len(known) < 2:
        return np.full(len(levels), 0.5)
    return np.array([0.5 if level is None else known.index(level) / (len(known) - 1) for level in levels])
