"""Section of what short runs on one task did to the others before the run: a heat map of damage and help.

Source: measurements of the probe transfer before the run.
Unit: greedy success in percent; changes in points, paired by item and by run.
Cost: reads one small file.
Blind spot: short supervised runs; longer ones do more damage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import ClaimKind, Interval, Measurement
from mixwright.runs import RunFolder, read_measurements
from mixwright.verdict.blocks import Block, HeatCell, HeatMap, Paragraph

ABOUT = (
    "Short runs on one task at a time, from copies of the starting model, before the run. Each field has the success of the "
    "row's task before and after the column's run, and the change in points with its 95 % interval over items and runs."
)
Rows = Mapping[tuple[str, str], Measurement]


class Transfer(Section):
    """Who helps and who hurts whom."""

    ORDER: ClassVar[int] = 44
    TITLE: ClassVar[str] = "What training on one task does to the others"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Two maps: from the start, and after a run on the row's own task; nothing where the probe was not made."""
        path = run.measurements("before")
        measured = read_measurements(path) if path.is_file() else []
        rows = {(row.task, row.name): row for row in measured if row.probe == "transfer"}
        tasks = sorted({task for task, name in rows if name == "success at the start"})
        if not tasks:
            return []
        runs = [*tasks, "all tasks together"]
        columns = tuple(f"after {run}" for run in runs)
        first = [(task, tuple(_started(rows, task, run) for run in runs)) for task in tasks]
        blocks: list[Block] = [
            Paragraph(ABOUT),
            HeatMap("Success at the start and after a short run", columns, tuple(first)),
        ]
        second = [(task, tuple(_later(rows, task, other) for other in tasks)) for task in tasks]
        if any(cell is not None for _, cells in second for cell in cells):
            then = tuple(f"then {task}" for task in tasks)
            blocks.append(HeatMap("Success after a run on the task itself, and after another run", then, tuple(second)))
        drifted = _entropies(rows, tasks)
        return blocks + ([Paragraph(drifted)] if drifted else [])


def _started(rows: Rows, task: str, other: str) -> HeatCell | None:
    start, after = rows.get((task, "success at the start")), rows.get((task, f"success after {other}"))
    if start is None or after is None:
        return None
    known = rows.get((task, f"change at the start by {other}"))
    change = None if known is None else _interval(known)
    return HeatCell(start.value, after.value, _kind(change), change)


def _later(rows: Rows, task: str, other: str) -> HeatCell | None:
    own, after = rows.get((task, f"success after {task}")), rows.get((task, f"success after {task}, then {other}"))
    change = rows.get((task, f"change by {other}"))
    if own is None or after is None or change is None:
        return None
    return HeatCell(own.value, after.value, _kind(_interval(change)), _interval(change))


def _interval(row: Measurement) -> Interval:
    return Interval(row.value, row.low, row.high, row.n)


def _kind(change: Interval | None) -> ClaimKind:
    """Sign of a change whose interval leaves 0 out; no word of "unchanged" is made of a short run."""
    if change is None or change.low <= 0 <= change.high:
        return "cannot tell"
    return "learnt" if change.low > 0 else "damaged"


def _entropies(rows: Rows, tasks: Sequence[str]) -> str:
    """Entropy of each task's answers before and after its own run, nats per token."""
    told = []
    for task in tasks:
        start, after = rows.get((task, "entropy at the start")), rows.get((task, f"entropy after {task}"))
        if start is not None and after is not None:
            told.append(f"{task} {start.value:.2f} to {after.value:.2f}")
    return f"Entropy of answers by a run on the task itself, nats per token: {', '.join(told)}." if told else ""
