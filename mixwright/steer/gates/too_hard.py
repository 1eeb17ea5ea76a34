"""Refuses groups of cells that are hardly ever right: what succeeds there is mostly chance, and teaches it.

A cell is refused when the upper end of the one-sided 95 % Wilson interval of its success lies under `floor` (default: the
lower edge of the task's band), on the cell's lasting evidence (about 64 groups, older ones fading, rollouts of one prompt
counted for what they are worth), the current groups included. A cell without evidence is admitted and the reason says so.
Groups stay seen while refused, so a cell whose success rises comes back: one measured at 0 of 256 rollouts (32 items) does
after two groups of 8 with 4 right each. Cells whose answers do not depend on their prompts are not refused for that: it
changed success by -1.6 points [-3.7, 0.5] and dependence on the prompt by -0.1 [-1.1, 0.9] where half of the rows were such.

Measured (benchmarks/overhard.py, 8 seeds, greedy success over all levels): on over-hard data without levels the default plan
ends 26.7 points over itself without the gate [12.4, 41.0], and 24.9 under not training [13.8, 35.9]; where levels are known
the selector keeps away from such cells by itself (0.4 points [-0.4, 1.3]). On uniform draws the gate is worth 52.9 points
[47.2, 58.5] with the engine's `survivors` rule, which is on by default, because Adam gives the few groups left a full step;
14.5 [-4.7, 33.6] without. Nothing lost on a pool in the band (0.2 [-0.6, 0.9]).

Source: 2605.28388 (over-hard samples harm).
Unit: success, 0..1.
Cost: one interval per cell and batch; refused groups have cost their rollouts.
Blind spot: a cell of a few easy prompts among many impossible ones looks hard until easy ones are drawn.
"""

from __future__ import annotations

import math

from mixwright.contracts import Admission, Gate, Scene
from mixwright.errors import InputError
from mixwright.estimates.cell_states import ONE_SIDED
from mixwright.records import GroupOutcome, cell_key


class TooHard(Gate):
    """Admits a group unless its whole cell is shown to be too hard.

    Args:
        floor: success under which a cell must not teach; None takes the lower edge of the band.
        z: quantile of the one-sided interval; 1.645 is 95 %.
        least: discounted rollouts of evidence below which a cell is admitted.
    """

    def __init__(self, *, floor: float | None = None, z: float = ONE_SIDED, least: float = 24.0) -> None:
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
        evidence = self._ledger.lasting
        tries = float(evidence.tries[cell])
        if tries < self.least:
            return Admission(True, f"no evidence yet: {tries:.0f} of {self.least:.0f} rollouts")
        upper, success = self._at_most(cell), float(evidence.wins[cell]) / tries
        seen = f"{success:.0%} right in {tries:.0f} rollouts, at most {upper:.0%}"
        floor = self._stage.band_of(group.task)[0] if self.floor is None else self.floor
        if upper < floor:
            return Admission(False, f"too hard: {seen}, under {floor:.0%}", "too hard")
        return Admission(True, f"not ruled out: {seen}")

    def _at_most(self, cell: int) -> float:
        """Upper end of success, worked out again only when the cell's evidence has changed."""
        evidence = self._ledger.lasting
        seen = float(evidence.wins[cell]), float(evidence.tries[cell])
        if cell not in self._upper or self._upper[cell][0] != seen:
            self._upper[cell] = seen, float(evidence.interval(cell, self.z)[1])
        return self._upper[cell][1]
