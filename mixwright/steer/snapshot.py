"""Snapshot of the cells: what the ledger knows, in the words that plans use, beside the selector's own states.

`Staleness` says how far the band has moved. `moved` is 1 - overlap / union, in examples, of the cells inside the band when
they were first known and of those inside it now: 0 while a filter made at the start would still choose the same, 1 when it
would choose nothing of what is in band now. A cell changes sides only when its 90 % interval says so, so noise alone leaves
it at 0. `in_band_yield` is the share of recent groups with different rewards among those drawn from cells inside the band
by what was known before the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixwright.estimates.cell_states import MIN_ROLLOUTS, Z_STATE, side_of_band, state_of
from mixwright.estimates.intervals import wilson
from mixwright.steer.kept import Kept
from mixwright.steer.scene import Scene

MOST_LISTED = 100
"""Cells, or tasks, above which a line of the log has those of its batch alone, and changes are summed up."""
STALE_SHARE = 0.3
"""Moved share from which a filter made at the start is called stale."""
YIELD_MEMORY_GROUPS = 64.0
"""Groups that the yield remembers, about."""
UNKNOWN = -1


def snapshot(scene: Scene, drawn_as: Mapping[str, str], refused: Callable[[str], int]) -> dict[str, Any]:
    """Per cell `task@level`: success (recent posterior mean), kappa, state, evidence in rollouts, groups refused.

    A run makes no permutation test, so a cell in the band that is not lucky is unknown here, never reachable.

    Args:
        scene: of the run.
        drawn_as: what the selector takes each cell for; nothing is said for cells that it lacks.
        refused: groups of a cell that were refused.
    """
    ledger, cells = scene.ledger, scene.pool.cells
    all_cells = np.arange(len(cells))
    recent = ledger.recent.mean(all_cells)
    kappa, kappa_high = ledger.kappa(recent, all_cells), ledger.answers.kappa_high()
    tries = ledger.lasting.tries.tolist()
    sides = side_of_band(*ledger.lasting.effective_counts(all_cells), *scene.band_edges)
    shown: dict[str, dict[str, Any]] = {}
    for number, key in enumerate(cell.key for cell in cells):
        state = state_of(int(sides[number]), tries[number], kappa_high=float(kappa_high[number]))
        numbers = {"success": float(recent[number]), "kappa": float(kappa[number]), "state": state}
        shown[key] = numbers | {"evidence": tries[number], "refused": refused(key)}
        if key in drawn_as:
            shown[key]["drawn_as"] = drawn_as[key]
    return shown


class Staleness(Kept):
    """Compares the band now with the band at the start.

    Args:
        scene: of the run; its ledger knows what was measured before.
    """

    KEPT = ("_began", "_now", "since", "_mixed", "_drawn")

    def __init__(self, scene: Scene) -> None:
        self._ledger, (self._low, self._high) = scene.ledger, scene.band_edges
        self._began, self._now = np.full((2, len(self._low)), UNKNOWN)
        self.since: int | None = None
        """Step at which a filter made at the start was first stale; None while it is not."""
        self._mixed = self._drawn = 0.0
        self._update_sides(np.arange(len(self._low)))

    def count_groups(self, cells: np.ndarray, mixed: np.ndarray) -> None:
        """Groups of these cells came back, with different rewards or not. Called before the ledger learns of them."""
        success = self._ledger.recent.mean(cells)
        inside = (self._ledger.recent.tries[cells] > 0) & (self._low[cells] <= success) & (success <= self._high[cells])
        keep = math.exp(-int(inside.sum()) / YIELD_MEMORY_GROUPS)
        self._drawn = self._drawn * keep + int(inside.sum())
        self._mixed = self._mixed * keep + int((inside & mixed).sum())

    def observe(self, step: int, cells: np.ndarray) -> bool:
        """The ledger knows more of these cells. True once, when the picture of the start has become stale."""
        self._update_sides(np.unique(cells))
        if self.since is not None or self.moved < STALE_SHARE:
            return False
        self.since = step
        return True

    @property
    def moved(self) -> float:
        """Share of the band that has changed since the start, 0..1; 0 while nothing is known."""
        sizes = self._ledger.sizes
        either, both = (self._began == 1) | (self._now == 1), (self._began == 1) & (self._now == 1)
        return float(1 - sizes[both].sum() / sizes[either].sum()) if sizes[either].any() else 0.0

    def figures(self) -> dict[str, Any]:
        """What the log shows: `band_moved`, `stale_since` and `in_band_yield` (None before there was a draw in the band)."""
        share = self._mixed / self._drawn if self._drawn >= 1 else None
        return {"band_moved": self.moved, "stale_since": self.since, "in_band_yield": share}

    def _update_sides(self, cells: np.ndarray) -> None:
        """Set or change the sides of cells by what the ledger knows lately."""
        recent = self._ledger.recent
        cells = cells[recent.tries[cells] >= MIN_ROLLOUTS]
        tries, low, high = recent.tries[cells], self._low[cells], self._high[cells]
        success = recent.wins[cells] / np.maximum(tries, 1e-12)
        success_low, success_high = wilson(recent.wins[cells], tries, Z_STATE)
        inside = (low <= success) & (success <= high)
        first = self._began[cells] == UNKNOWN
        self._began[cells[first]] = inside[first]
        sure = first | np.where(
            inside, (low <= success_low) & (success_high <= high), (success_high < low) | (success_low > high)
        )
        self._now[cells[sure]] = inside[sure]
