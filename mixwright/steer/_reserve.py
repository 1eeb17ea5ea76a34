"""Draws kept back for what the model can do, whatever the selector and the weights say: the anchor share, and replay.

Anchor: a fixed share of draws, even over the tasks that have something to offer. Replay: for some steps after an alarm a
share of draws goes to the alarmed tasks. Both are extra leaves of the task order, so they are spread as evenly as tasks are.

What a task can offer are its mastered cells (lasting evidence); where it has none, the cell of largest kappa that is
neither hopeless nor lucky. Within a cell the examples that were drawn longest ago are taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from mixwright.contracts import Scene
from mixwright.estimates.cell_states import LEAST_EVIDENCE, LUCKY, side

CANDIDATES = 8
"""Random examples of a cell looked at per draw."""


class Reserve:
    """Shares of draws that are kept back.

    Args:
        scene: pool, evidence and band.
        anchor: share of draws for what can be done, always.
        replay: share of draws for the alarmed tasks, while a replay runs.
    """

    def __init__(self, scene: Scene, anchor: float, replay: float) -> None:
        self._pool, self._ledger, self._stage = scene.pool, scene.ledger, scene.stage
        self.anchor, self.replay = anchor, replay
        self.replays: dict[str, int] = {}
        """Task -> first step without its replay."""
        self._task_of = np.array([scene.pool.tasks.index(cell.task) for cell in scene.pool.cells])
        self._low, self._high = np.array([scene.stage.band_of(cell.task) for cell in scene.pool.cells]).T

    def cells(self) -> list[np.ndarray]:
        """Per task the numbers of the cells that can be done and drawn; empty where nothing is known to be."""
        ledger, everywhere = self._ledger, np.arange(len(self._task_of))
        evidence = ledger.lasting
        success = ledger.kappa(evidence.wins / np.maximum(evidence.tries, 1e-12), everywhere)
        known = (evidence.tries >= LEAST_EVIDENCE) & (ledger.sizes > 0)
        place = side(*evidence.effective(everywhere), self._low, self._high)
        skilled = (success > 0) & (ledger.answers.kappa_high() >= LUCKY)
        mastered, reachable = known & (place > 0), known & (place == 0) & skilled
        found = []
        for task in range(len(self._pool.tasks)):
            here = self._task_of == task
            best = np.flatnonzero(mastered & here)
            if not len(best) and (reachable & here).any():
                best = np.array([np.argmax(np.where(reachable & here, success, -np.inf))])
            found.append(best)
        return found

    def shares(self) -> np.ndarray:
        """Share of all draws kept back per task; sums to less than 1, to 0 where nothing can be done yet."""
        kept = np.zeros(len(self._pool.tasks))
        if not self.anchor and not self.replays:
            return kept
        able = np.array([len(cells) > 0 for cells in self.cells()])
        alarmed = able & np.isin(self._pool.tasks, list(self.replays))
        for share, which in ((self.anchor, able), (self.replay, alarmed)):
            if which.any():
                kept += share * which / which.sum()
        return kept

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For each draw an example of its task that can be done; int64. Cells of a task take turns at random."""
        found, cells = np.empty(len(tasks), dtype=np.int64), self.cells()
        chosen = np.array([rng.choice(cells[task]) for task in tasks], dtype=np.int64)
        for cell in np.unique(chosen):
            places = np.flatnonzero(chosen == cell)
            members = np.unique(self._ledger.random_members(np.array([cell]), CANDIDATES * len(places), rng)[0])
            members = rng.permutation(members)
            rested = members[np.argsort(self._ledger.drawn[members], kind="stable")]
            found[places] = np.resize(rested, len(places))
        return found

    def begin(self, task: str, until: int) -> bool:
        """Replay a task until a step; False when it was being replayed already, or has nothing that can be done."""
        if task not in self._pool.tasks or not len(self.cells()[self._pool.tasks.index(task)]):
            return False
        new = task not in self.replays
        self.replays[task] = until
        return new

    def over(self, step: int, back: Collection[str]) -> list[tuple[str, str]]:
        """Take out the replays that end now, with the reason: they have run, or the task's canaries are `back`."""
        ended = []
        for task, until in sorted(self.replays.items()):
            if task in back or step >= until:
                because = "its canaries are back within their start's error" if task in back else "it has run its steps"
                ended.append((task, because))
                del self.replays[task]
        return ended

    def state(self) -> dict[str, Any]:
        """Replays that run."""
        return {"replays": dict(self.replays)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue them."""
        self.replays = dict(state["replays"])
