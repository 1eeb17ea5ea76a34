"""Snapshot of the cells: what the ledger knows, in the words that plans use, beside the selector's own states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixwright.estimates.cell_states import side, state_of
from mixwright.steer.scene import Scene

MANY = 100
"""Cells, or tasks, above which a line of the log has those of its batch alone, and changes are summed up."""


def snapshot(scene: Scene, drawn_as: Mapping[str, str], refused: Callable[[str], int]) -> dict[str, Any]:
    """Per cell `task@level`: success (recent posterior mean), kappa, state, evidence in rollouts, groups refused.

    A run makes no permutation test, so a cell in the band that is not lucky is unknown here, never reachable.

    Args:
        scene: of the run.
        drawn_as: what the selector takes each cell for; nothing is said for cells that it lacks.
        refused: groups of a cell that were refused.
    """
    ledger, cells = scene.ledger, scene.pool.cells
    everywhere = np.arange(len(cells))
    recent = ledger.recent.mean(everywhere)
    kappa, most = ledger.kappa(recent, everywhere), ledger.answers.kappa_high()
    evidence = ledger.lasting
    low, high = np.array([scene.stage.band_of(cell.task) for cell in cells]).T
    places = side(*evidence.effective(everywhere), low, high)
    shown = {}
    for number, cell in enumerate(cells):
        tries = float(evidence.tries[number])
        state = state_of(int(places[number]), tries, kappa_high=float(most[number]))
        shown[cell.key] = {
            "success": float(recent[number]),
            "kappa": float(kappa[number]),
            "state": state,
            "evidence": tries,
            "refused": refused(cell.key),
        } | ({"drawn_as": drawn_as[cell.key]} if cell.key in drawn_as else {})
    return shown
