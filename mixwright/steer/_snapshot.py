"""How the cells stand: what the ledger knows, in the words that plans use, beside what the selector takes them for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixwright.contracts import Scene
from mixwright.estimates.cell_states import classify


def snapshot(scene: Scene, drawn_as: Mapping[str, str], refused: Callable[[str], int]) -> dict[str, Any]:
    """Per cell `task@level`: success (recent posterior mean), kappa, state, evidence in rollouts, groups refused.

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
    low, high = evidence.interval(everywhere)
    shown = {}
    for number, cell in enumerate(cells):
        tries = float(evidence.tries[number])
        success = float(evidence.wins[number]) / tries if tries else 0.0
        ends, band = (float(low[number]), float(high[number])), scene.stage.band_of(cell.task)
        state = classify(success, *ends, tries, band, kappa_high=float(most[number]))
        shown[cell.key] = {
            "success": float(recent[number]),
            "kappa": float(kappa[number]),
            "state": state,
            "evidence": tries,
            "refused": refused(cell.key),
        } | ({"drawn_as": drawn_as[cell.key]} if cell.key in drawn_as else {})
    return shown
