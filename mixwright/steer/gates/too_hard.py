"""Refuses groups of cells that are right no more often than luck, or hardly ever: their gradient is noise.

A cell is refused when the upper end of the one-sided 95 % Wilson interval of its success above luck lies under `floor`
(default: the lower edge of the task's band), on the cell's lasting evidence (about 64 groups, older ones fading, rollouts of
one prompt counted for what they are worth), the current groups included. A cell without evidence is admitted and the
reason says so. Groups stay seen while refused, so a cell whose success rises comes back: one measured at 0 of 256 rollouts
(32 items) and luck 0 does after two groups of 8 with 4 right each.

Power: share of 3,000 simulated cells refused after 16 / 32 / 64 groups of 8, none measured before, floor 0.1. rho is how
much of the variance lies between prompts (0: every prompt alike, 0.5: half of it).
    success above luck 0, rho 0:    luck 0  .00 / 1.0 / 1.0    luck 0.1  .25 / .91 / 1.0    luck 0.3  .18 / .50 / .82
    success above luck 0, rho 0.2:  luck 0  .00 / 1.0 / 1.0    luck 0.1  .23 / .62 / .88    luck 0.3  .17 / .30 / .48
    the same in groups of 16:       luck 0  .00 / 1.0 / 1.0    luck 0.1  .24 / .66 / .93    luck 0.3  .15 / .31 / .50
    at the floor, rho 0 to 0.5:     wrongly refused .00 to .04 at any time;  success above luck 0.2: .00 to .01
So a lucky cell whose prompts differ much in luck is often let through: the selector's low share for it is the other guard.
Groups count, not rollouts: larger groups tell success from luck hardly sooner in prompts, and later in rollouts.

Measured (benchmarks/overhard.py, 5 seeds): alone it kept .30 of what over-hard data destroys (-.14 to .74), because Adam
gives the few groups left a full step; with the engine's `survivors` rule, which is on by default, 1.01 (.87 to 1.15).
Where rows have no levels, all guards together kept .92 (.70 to 1.15).

Source: 2605.28388 (over-hard samples harm); the shortcut posterior h / (h + s): success that luck explains teaches luck.
Unit: success above luck, 0..1.
Cost: one interval per cell and batch; refused groups have cost their rollouts.
Blind spot: a cell of a few easy prompts among many impossible ones looks hard until easy ones are drawn.
"""

from __future__ import annotations

import math

from mixwright.contracts import Admission, Gate, Scene
from mixwright.errors import InputError
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
        if not ((floor is None or floor <= 1) and 0 <= z < math.inf and least >= 0):
            got = f"floor {floor}, z {z:g}, least {least:g}"
            raise InputError("a floor of at most 1, finite z and least of 0 or more", got, "Correct gates.too_hard.")
        self.floor, self.z, self.least = floor, z, least

    def begin(self, scene: Scene) -> None:
        """Find the pool's cells by name."""
        self._ledger = scene.ledger
        self._stage = scene.stage
        self._cells = {cell.key: number for number, cell in enumerate(scene.pool.cells)}
        self._upper: dict[int, tuple[tuple[float, float], float]] = {}

    def admit(self, group: GroupOutcome) -> Admission:
        """Whether the group may teach. Raises KeyError for a cell that the pool lacks."""
        cell = self._cells[cell_key(group.task, group.level)]
        evidence, luck = self._ledger.lasting, float(self._ledger.luck[cell])
        tries = float(evidence.tries[cell])
        if tries < self.least:
            return Admission(True, f"no evidence yet: {tries:.0f} of {self.least:.0f} rollouts")
        upper, success = self._at_most(cell), float(evidence.wins[cell]) / tries
        seen = f"{success:.0%} right in {tries:.0f} rollouts, {luck:.0%} by luck; at most {upper:.0%} above luck"
        floor = self._stage.band_of(group.task)[0] if self.floor is None else self.floor
        if upper >= floor:
            return Admission(True, f"not ruled out: {seen}")
        word = "lucky" if luck > ABOVE_LUCK and success > ABOVE_LUCK else "too hard"
        return Admission(False, f"{word}: {seen}, under {floor:.0%}")

    def _at_most(self, cell: int) -> float:
        """Upper end of success above luck, worked out again only when the cell's evidence has changed."""
        evidence = self._ledger.lasting
        seen = float(evidence.wins[cell]), float(evidence.tries[cell])
        if cell not in self._upper or self._upper[cell][0] != seen:
            upper = float(self._ledger.above(evidence.interval(cell, self.z)[1], cell))
            self._upper[cell] = seen, upper
        return self._upper[cell][1]
