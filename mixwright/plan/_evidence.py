"""From measurements to what a plan thinks of each cell."""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.errors import InputError
from mixwright.plan._states import above_luck, classify
from mixwright.records import Cell, CellPlan, Measurement

SUCCESS = "pass@1"
"""The measurement that states and forecasts are about."""


def success_rows(competence: Sequence[Measurement]) -> dict[tuple[str, float | None], Measurement]:
    """(task, level) -> its pass@1 row; per-example rows are left out."""
    return {(row.task, row.level): row for row in competence if row.name == SUCCESS and row.example is None}


def plan_cells(cells: Sequence[Cell], competence: Sequence[Measurement], band: tuple[float, float]) -> tuple[CellPlan, ...]:
    """The state of each cell of the training data, sorted by key; a cell that was not measured is unknown.

    Luck is the larger of the training data's and the measured one (on the measured items, and of shuffled answers).

    Raises:
        InputError: a task of the data was not measured at all.
    """
    rows = success_rows(competence)
    measured = {task for task, _ in rows}
    spread = {(row.task, row.level): max(row.value, 0.0) for row in competence if row.name == "learnability"}
    lucks = {(row.task, row.level): row.value for row in competence if row.name == "luck" and row.example is None}
    found = []
    for cell in sorted(cells, key=lambda cell: cell.key):
        if cell.task not in measured:
            got = f"only {', '.join(sorted(measured))}" if measured else "none"
            remedy = "Run `mixwright measure` on data that has every task, or plan with a baseline (proportional)."
            raise InputError(f"a {SUCCESS} measurement of task {cell.task!r}", got, remedy)
        row = rows.get((cell.task, cell.level))
        if row is None:
            found.append(CellPlan(cell.task, cell.level, "unknown", None, cell.luck, 0, cell.count))
            continue
        within = spread.get((cell.task, cell.level))
        luck = max(cell.luck, lucks.get((cell.task, cell.level), 0.0))
        state = classify(row.value, row.low, row.high, luck, row.n, band)
        numbers = (row.value, luck, row.n, cell.count, row.low, row.high, within)
        found.append(CellPlan(cell.task, cell.level, state, *numbers))
    return tuple(found)


def reason_of(cell: CellPlan) -> str:
    """Why a cell has its state, with the numbers."""
    if cell.success is None:
        return "not measured"
    above = above_luck(cell.success, cell.luck)
    numbers = f"{cell.success:.0%} right in {cell.n} samples, {cell.luck:.0%} by luck alone: {above:.0%} above luck"
    meaning = {
        "unknown": "too little evidence to say more",
        "mastered": "over the band: nothing to learn here, something to lose",
        "reachable": "more than luck: rewards carry signal",
        "hopeless": "hardly ever right: rewards carry no signal",
        "lucky": "right sometimes, but not shown to be more often than luck: rewards would teach the trick",
    }
    return f"{numbers}; {meaning[cell.state]}"
