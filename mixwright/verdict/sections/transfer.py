"""Section of what short runs on one task did to the others before the run: a heat map of damage and help.

Source: measurements of the probe transfer before the run.
Unit: greedy success in percent; changes in points, paired by item and by run.
Cost: reads one small file.
Blind spot: short supervised runs; longer ones do more damage.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.records import ClaimKind, Interval
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.verdict.page.blocks import Block, HeatCell, HeatMap, Paragraph

ABOUT = (
    "Short runs on one task at a time, from copies of the starting model, before the run. Each field has the success of the "
    "row's task before and after the column's run, and the change in points with its 95 % interval over items and runs."
)


class Transfer(Section):
    """Who helps and who hurts whom."""

    ORDER = 44
    TITLE = "What training on one task does to the others"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Two maps: from the start, and after a run on the row's own task; nothing where the probe was not made."""
        path = run.measurements("before")
        measured = read_measurements(path, "transfer") if path.is_file() else []
        rows = {(row.task, row.name): row for row in measured}
        start = "success at the start"
        tasks = sorted({task for task, name in rows if name == start})
        if not tasks:
            return []

        def cell(task: str, before: str, after: str, change: str) -> HeatCell | None:
            old_row, new_row, change_row = (rows.get((task, name)) for name in (before, after, change))
            if old_row is None or new_row is None:
                return None
            difference = Interval(change_row.value, change_row.low, change_row.high, change_row.n) if change_row else None
            return HeatCell(old_row.value, new_row.value, _kind(difference), difference)

        runs = [*tasks, "all tasks together"]
        from_start = [
            (task, tuple(cell(task, start, f"success after {name}", f"change at the start by {name}") for name in runs))
            for task in tasks
        ]
        after_own_task = []
        for task in tasks:
            own_start = f"success after {task}"
            after_own_task.append(
                (task, tuple(cell(task, own_start, f"{own_start}, then {name}", f"change by {name}") for name in tasks))
            )
        after_own_rows = (
            tuple(after_own_task) if any(cell_rows for _, cells in after_own_task for cell_rows in cells) else ()
        )
        entropies = [(rows.get((task, "entropy at the start")), rows.get((task, f"entropy after {task}"))) for task in tasks]
        drifted = ", ".join(
            f"{old_row.task} {old_row.value:.2f} to {new_row.value:.2f}"
            for old_row, new_row in entropies
            if old_row and new_row
        )
        entropy_text = f"Entropy of answers by a run on the task itself, nats per token: {drifted}." if drifted else ""
        then_columns = tuple(f"then {task}" for task in tasks)
        return [
            Paragraph(ABOUT),
            HeatMap(
                "Success at the start and after a short run", tuple(f"after {name}" for name in runs), tuple(from_start)
            ),
            HeatMap("Success after a run on the task itself, and after another run", then_columns, after_own_rows),
            Paragraph(entropy_text),
        ]


def _kind(change: Interval | None) -> ClaimKind:
    """Sign of a change whose interval leaves 0 out; no word of "unchanged" is made of a short run."""
    if change is None or change.low <= 0 <= change.high:
        return "cannot tell"
    return "learnt" if change.low > 0 else "damaged"
