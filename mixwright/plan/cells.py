"""Cells of a plan, made from measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixwright.errors import InputError
from mixwright.estimates.cell_states import MIN_ITEMS, classify, room_to_learn
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, SWAPPED_SUFFIX
from mixwright.records import Cell, CellAssessment, Measurement

SUCCESS_MEASUREMENT = "pass@1"
"""The measurement that states are about."""


def attainable_gain(cell: CellAssessment) -> float:
    """Return k(1 - k) of a reachable or unknown cell's kappa, 0..0.25, times the share of variance within a prompt.

    Other cells have 0; one that was not measured counts as half right.
    """
    if cell.state not in ("reachable", "unknown"):
        return 0.0
    if cell.success is None:
        return 0.125
    gain = float(room_to_learn(cell.success, cell.swapped or 0.0)) / 4
    spread = cell.success * (1 - cell.success)
    return gain if cell.learnability is None or spread <= 0 else gain * min(cell.learnability / spread, 1.0)


def assess_cells(
    cells: Sequence[Cell], competence: Sequence[Measurement], band: tuple[float, float]
) -> tuple[CellAssessment, ...]:
    """The state of each cell of the training data, sorted by key; a cell that was not measured is unknown.

    A cell measured on fewer than `MIN_ITEMS` prompts has the success of its whole task; its dependence was measured
    together with its task's other small cells.

    Raises:
        InputError: a task of the data was not measured.
    """
    measured_tasks = {row.task for row in competence if row.name == SUCCESS_MEASUREMENT}
    row_by_name = {(row.name, row.task, row.level): row for row in competence}
    assessments = []
    for cell in sorted(cells, key=lambda cell: cell.key):
        if cell.task not in measured_tasks:
            got = f"only {', '.join(sorted(measured_tasks))}" if measured_tasks else "none"
            remedy = "Run `mixwright measure` on data with every task, or use a baseline (planner proportional)."
            raise InputError(f"a {SUCCESS_MEASUREMENT} measurement of task {cell.task!r}", got, remedy)
        assessments.append(_assess_cell(cell, row_by_name, band))
    return tuple(assessments)


def _assess_cell(
    cell: Cell, row_by_name: Mapping[tuple[str, str, float | None], Measurement], band: tuple[float, float]
) -> CellAssessment:
    """One cell from its own success (or its task's where it is small) and what was measured beside it."""

    def row_of(name: str) -> Measurement | None:
        return row_by_name.get((name, cell.task, cell.level))

    def value(name: str) -> float | None:
        return row.value if (row := row_of(name)) else None

    success_row, chance_row = row_of(SUCCESS_MEASUREMENT), row_of(CHANCE_MEASUREMENT)
    if success_row is None:
        return CellAssessment(cell.task, cell.level, "unknown", None, cell.chance, 0, cell.count)
    if chance_row is not None and chance_row.n < MIN_ITEMS:
        success_row = row_by_name.get((SUCCESS_MEASUREMENT, cell.task, None), success_row)
    kappa = row_of(f"{SUCCESS_MEASUREMENT}.kappa")
    p = value(f"{SUCCESS_MEASUREMENT}.permutation")
    learnability = value("learnability")
    kappa_high = kappa.high if kappa else None
    return CellAssessment(
        cell.task,
        cell.level,
        classify(success_row.value, success_row.low, success_row.high, success_row.n, band, kappa_high=kappa_high, p=p),
        success=success_row.value,
        chance=chance_row.value if chance_row is not None else cell.chance,
        n=success_row.n,
        examples=cell.count,
        low=success_row.low,
        high=success_row.high,
        learnability=None if learnability is None else max(learnability, 0.0),
        swapped=value(SUCCESS_MEASUREMENT + SWAPPED_SUFFIX),
        kappa=kappa.value if kappa else None,
        kappa_high=kappa_high,
        p=p,
    )


MEANING_BY_STATE = {
    "unknown": "too little evidence to say more",
    "mastered": "success is above the band: little left to learn, something to lose",
    "reachable": "answers depend on the prompt, so rewards carry signal",
    "hopeless": "almost never right, so rewards carry no signal",
    "lucky": "answers do not depend on the prompt, so rewards would reinforce the most common answer",
}


def reason_of(cell: CellAssessment) -> str:
    """Why a cell has its state, with the numbers."""
    if cell.success is None:
        return "not measured"
    numbers = f"{cell.success:.0%} right in {cell.n} samples"
    if cell.kappa is not None and cell.swapped is not None:
        numbers += f", {cell.swapped:.0%} with prompts shuffled: kappa {cell.kappa:.0%}"
        numbers += f", at most {cell.kappa_high:.0%}" if cell.kappa_high is not None else ""
    return f"{numbers}; {MEANING_BY_STATE[cell.state]}"
