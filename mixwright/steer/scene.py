"""Class `Scene`, what a plug-in that steers may read of the run: the examples, the evidence and the stage of the plan."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from mixwright.records import Stage
from mixwright.steer.ledger import Ledger
from mixwright.steer.pool import Pool


@dataclass(frozen=True)
class Scene:
    """What a steering plug-in may read. The engine owns it; plug-ins never write into it."""

    pool: Pool
    """The examples that may be drawn."""
    ledger: Ledger
    """What the run has shown of them so far."""
    stage: Stage
    """The stretch of training that is being steered."""

    @functools.cached_property
    def band_edges(self) -> np.ndarray:
        """Lower and upper edge of the band of each cell, shape (2, cells)."""
        return np.array([self.stage.band_of(cell.task) for cell in self.pool.cells]).T
