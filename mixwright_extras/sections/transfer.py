"""Section of what short runs on one task did to the others before the run.

Source: measurements of the probe transfer before the run.
Unit: greedy success in percent; changes in points with 95 % intervals, paired by item and by run.
Cost: none.
Blind spot: short supervised runs; longer ones do more damage.
"""

from __future__ import annotations

from mixwright.extend import Block, Interval, Paragraph, Section, Table, Verdict, format_change, percent

START = "success at the start"


class Transfer(Section):
    """Success of the row's task after a run on the column's task."""

    ORDER = 44
    TITLE = "What training on one task does to the others"

    def blocks(self, verdict: Verdict) -> list[Block]:
        """Return two tables: from the start, and after a run on the row's own task."""
        rows = {(row.task, row.name): row for row in verdict.measured if row.probe == "transfer"}
        tasks = sorted({task for task, name in rows if name == START})

        def cell(task: str, after: str, change: str) -> str:
            share, difference = rows.get((task, after)), rows.get((task, change))
            if share is None:
                return ""
            if difference is None:
                return percent(share.value)
            interval = Interval(difference.value, difference.low, difference.high, difference.n)
            return f"{percent(share.value)}, {format_change(interval)}"

        runs = [*tasks, "all tasks together"]
        from_start = [
            (
                task,
                percent(rows[task, START].value),
                *(cell(task, f"success after {run}", f"change at the start by {run}") for run in runs),
            )
            for task in tasks
        ]
        after_own = [
            (task, *(cell(task, f"success after {task}, then {run}", f"change by {run}") for run in tasks)) for task in tasks
        ]
        has_second_runs = any(text for _, *texts in after_own for text in texts)
        entropies = [
            f"{task} {old.value:.2f} to {new.value:.2f}"
            for task in tasks
            if (old := rows.get((task, "entropy at the start"))) and (new := rows.get((task, f"entropy after {task}")))
        ]
        return [
            Table(
                "Success and its change after a short run on one task",
                ("task", "start", *(f"after {run}" for run in runs)),
                from_start,
            ),
            Table(
                "After a run on the task itself, and another run",
                ("task", *(f"then {run}" for run in tasks)),
                after_own if has_second_runs else [],
            ),
            Paragraph(
                f"Entropy of answers after a run on the task itself, nats per token: {', '.join(entropies)}."
                if entropies
                else ""
            ),
        ]
