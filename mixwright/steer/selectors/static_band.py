"""Only cells that were inside the band when the run began, for the whole run: a filter computed once.

Inside is decided from the measurement that the plan carries (success between the band's edges) and never again.
A cell that was not measured counts as inside: nothing speaks against it, so without any measurement this is `uniform`. A
task all of whose measured cells are outside draws from the one nearest to the band's middle. Examples come in shuffled
passes.

Source: offline difficulty filtering, the common practice (DAPO-17K, Big-Math: items kept by a reference model's pass rate).
Unit: success, 0..1.
Cost: the measurement before the run; then one permutation of a task's chosen examples per pass.
Blind spot: the model moves and the filter does not. Half of a band measured at the start had left it after 5 GRPO steps in a
    pilot, while the ranking of difficulty stayed. Data without levels has one cell per task, of which all is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.contracts import Scene, Selector
from mixwright.steer.selectors._passes import Passes


class StaticBand(Selector):
    """Passes through the examples of the cells that were in the band at the start."""

    def begin(self, scene: Scene) -> None:
        """Choose each task's cells by what was measured before the run."""
        ledger, chosen = scene.ledger, []
        evidence = ledger.lasting
        for task, name in enumerate(scene.pool.tasks):
            low, high = scene.stage.band_of(name)
            cells = ledger.task_cells(task)
            tries = evidence.tries[cells]
            success = evidence.wins[cells] / np.maximum(tries, 1e-12)
            inside = (tries == 0) | (low <= success) & (success <= high)
            if not inside.any() and len(cells):
                inside[np.abs(success - (low + high) / 2).argmin()] = True
            chosen.append(cells[inside].tolist())
        self._scene = scene
        self._passes = Passes(len(chosen), lambda task: self._members[task])
        self._take(chosen)

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The next examples of each task's pass; a new pass takes its seed from `rng`."""
        return self._passes.next(tasks, rng)

    def state(self) -> dict[str, Any]:
        """The choice, made once, and seed and place of each task's pass."""
        return {"chosen": [list(cells) for cells in self._chosen], "passes": self._passes.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue the passes."""
        self._take(state["chosen"])
        self._passes.restore(state["passes"])

    def _take(self, chosen: Sequence[Sequence[int]]) -> None:
        """These cells of each task, and their examples."""
        self._chosen = [list(cells) for cells in chosen]
        every = map(self._scene.ledger.task_members, range(len(chosen)))
        self._members = [
            own[np.isin(self._scene.pool.cell_of[own], cells)] for own, cells in zip(every, chosen, strict=True)
        ]
