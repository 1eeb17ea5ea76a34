"""Refuses groups of cells that are right no more often than luck, or hardly ever: their gradient is noise.

A cell is refused when the upper end of the one-sided 95 % Wilson interval of its success above luck lies under `floor`
(default: the lower edge of the stage's band), on the cell's lasting evidence (about 512 rollouts, older ones fading), the
current groups included. A cell without evidence is admitted and the reason says so. Groups stay seen while refused, so a
cell whose success rises comes back: at luck 0, three groups of 8 with 4 right each lift a cell that had none right in
128 rollouts.

Power (4,000 simulated cells, groups of 8, floor 0.1; share refused after 64 / 128 / 512 rollouts):
    success above luck 0:    luck 0 1.00 / 1.00 / 1.00, luck 0.1 .55 / .88 / 1.00, luck 0.3 .31 / .46 / .89
    at the floor, 0.1:       luck 0 .04 / .03 / .02,    luck 0.1 .03 / .03 / .02,  luck 0.3 .05 / .04 / .02
    success above luck 0.2:  luck 0 .00 / .00 / .00,    luck 0.1 .00 / .00 / .00,  luck 0.3 .00 / .00 / .00

Source: 2605.28388 (over-hard samples harm); the shortcut posterior h / (h + s): success that luck explains teaches luck.
Unit: success above luck, 0..1.
Cost: one interval per group; refused groups have cost their rollouts.
Blind spot: a cell of a few easy items among many impossible ones looks hard until one of the easy ones is drawn.
"""

from __future__ import annotations

from mixwright.contracts import Admission, Gate, Scene
from mixwright.plan._states import ABOVE_LUCK
from mixwright.records import GroupOutcome, cell_key


class TooHard(Gate):
    """Admits a group unless its whole cell is shown to be too hard or lucky.

    Args:
        floor: success above luck under which a cell must not teach; None takes the lower edge of the band.
        z: quantile of the one-sided interval; 1.645 is 95 %.
        least: discounted rollouts of evidence below which a cell is admitted.
    """

    def __init__(self, *, floor: float | None = None, z: float = 1.645, least: float = 24.0) -> None:
        self.floor, self.z, self.least = floor, z, least

    def begin(self, scene: Scene) -> None:
        """Find the pool's cells by name."""
        self._ledger = scene.ledger
        self._floor = scene.stage.band[0] if self.floor is None else self.floor
        self._cells = {cell.key: number for number, cell in enumerate(scene.pool.cells)}

    def admit(self, group: GroupOutcome) -> Admission:
        """Whether the group may teach. Raises KeyError for a cell that the pool lacks."""
        cell = self._cells[cell_key(group.task, group.level)]
        evidence, luck = self._ledger.lasting, float(self._ledger.luck[cell])
        tries = float(evidence.tries[cell])
        if tries < self.least:
            return Admission(True, f"no evidence yet: {tries:.0f} of {self.least:.0f} rollouts")
        upper = float(self._ledger.above(evidence.interval(cell, self.z)[1], cell))
        success = float(evidence.wins[cell]) / tries
        seen = f"{success:.0%} right in {tries:.0f} rollouts, {luck:.0%} by luck; at most {upper:.0%} above luck"
        if upper >= self._floor:
            return Admission(True, f"within reach: {seen}")
        word = "lucky" if luck > ABOVE_LUCK and success > ABOVE_LUCK else "too hard"
        return Admission(False, f"{word}: {seen}, under {self._floor:.0%}")
