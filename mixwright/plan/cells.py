"""Cells of a plan, made from measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixwright.errors import InputError
from mixwright.estimates.cell_states import MIN_ITEMS, classify
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, SWAPPED_SUFFIX
from mixwright.records import Cell, CellPlan, Measurement

SUCCESS_MEASUREMENT = "pass@1"
"""The measurement that states and forecasts are about."""


def success_rows(competence: Sequence[Measurement]) -> dict[tuple[str, float | None], Measurement]:
    """(task, level) -> its pass@1 row; per-example rows are left out."""
    return {(row.task, row.level): row for row in competence if row.name == SUCCESS_MEASUREMENT and row.example is None}


def plan_cells(cells: Sequence[Cell], competence: Sequence[Measurement], band: tuple[float, float]) -> tuple[CellPlan, ...]:
    """The state of each cell of the training data, sorted by key; a cell that was not measured is unknown.

    A cell measured on fewer than `MIN_ITEMS` prompts has the success of its whole task; its dependence was measured
    together with its task's other small cells.

    Raises:
        InputError: a task of the data was not measured.
    """
    rows = success_rows(competence)
    measured = {task for task, _ in rows}
    named = {(row.name, row.task, row.level): row for row in competence if row.example is None}
    found = []
    for cell in sorted(cells, key=lambda cell: cell.key):
        if cell.task not in measured:
            got = f"only {', '.join(sorted(measured))}" if measured else "none"
            remedy = "Run `mixwright measure` on data that has every task, or plan with a baseline (proportional)."
            raise InputError(f"a {SUCCESS_MEASUREMENT} measurement of task {cell.task!r}", got, remedy)
        row = rows.get((cell.task, cell.level))
        if row is None:
            found.append(CellPlan(cell.task, cell.level, "unknown", None, cell.chance, 0, cell.count))
            continue
        found.append(_cell_plan(cell, row, rows.get((cell.task, None), row), named, band))
    return tuple(found)


def _cell_plan(
    cell: Cell,
    row: Measurement,
    whole: Measurement,
    named: Mapping[tuple[str, str, float | None], Measurement],
    band: tuple[float, float],
) -> CellPlan:
    """One cell from its own success (or its task's where it is small) and what was measured beside it."""

    def value(name: str) -> Measurement | None:
        return named.get((name, cell.task, cell.level))

    items = value(CHANCE_MEASUREMENT)
    if items is not None and items.n < MIN_ITEMS:
        row = whole
    kappa, swapped, p = (
        value(f"{SUCCESS_MEASUREMENT}.kappa"),
        value(SUCCESS_MEASUREMENT + SWAPPED_SUFFIX),
        value(f"{SUCCESS_MEASUREMENT}.permutation"),
    )
    spread, chance = value("learnability"), items.value if items is not None else cell.chance
    high, tested = kappa.high if kappa else None, p.value if p else None
    state = classify(row.value, row.low, row.high, row.n, band, kappa_high=high, p=tested)
    return CellPlan(
        cell.task,
        cell.level,
        state,
        row.value,
        chance,
        row.n,
        cell.count,
        row.low,
        row.high,
        max(spread.value, 0.0) if spread else None,
        swapped.value if swapped else None,
        kappa.value if kappa else None,
        high,
        tested,
    )


MEANING_BY_STATE = {
    "unknown": "too little evidence to say more",
    "mastered": "success is over the band: little left to learn, something to lose",
    "reachable": "answers depend on their prompts: rewards carry signal",
    "hopeless": "hardly ever right: rewards carry no signal",
    "lucky": "the answers do not depend on their prompts: rewards would reinforce the commonest answer",
}


def reason_of(cell: CellPlan) -> str:
    """Why a cell has its state, with the numbers."""
    if cell.success is None:
        return "not measured"
    numbers = f"{cell.success:.0%} right in {cell.n} samples"
    if cell.kappa is not None and cell.swapped is not None:
        numbers += f", {cell.swapped:.0%} on other prompts: kappa {cell.kappa:.0%}"
        numbers += f", at most {cell.kappa_high:.0%}" if cell.kappa_high is not None else ""
    return f"{numbers}; {MEANING_BY_STATE[cell.state]}"
