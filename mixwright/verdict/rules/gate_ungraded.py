"""Gate of tasks that no grader judges: it never passes them, and finds damage in what the models answered.

Damage is that answers went over to the format of another task's, or are lost (`answers_kept.py`). A likelihood decides
nothing: in a pilot that of former answers fell under a harmless greeting, and rose where tool calls took over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mixwright.estimates.items import TaskLevel, cell_order
from mixwright.verdict.rules.answer_forms import group_takeovers
from mixwright.verdict.rules.answers_kept import find_lost_answers
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult, JudgedCell


def list_ungraded_cells(evidence: Evidence) -> list[TaskLevel]:
    """The tasks and levels whose answers were kept without a score. Raises InputError for a broken table."""
    cells = {(row["task"], row["level"]) for row in evidence.first_answers if row.get("score") is None}
    return sorted(cells, key=cell_order)


def with_ungraded(
    graded: GateResult, evidence: Evidence, cells: Sequence[TaskLevel], protected: Sequence[TaskLevel]
) -> GateResult:
    """What the gate finds in graded tasks, and in others: the worse of both.

    Args:
        graded: of the graded tasks; one without cells where there are none.
        evidence: of the folder.
        cells: of the tasks that no grader judges.
        protected: those of them that must not be lost.
    """
    lost = find_lost_answers(evidence, {task for task, _ in cells})
    takeovers = group_takeovers(evidence.form_changes)
    damaged = {*lost, *(change.task for takeover in takeovers for change in takeover.changes)}
    judged = [
        JudgedCell(*cell, None, word="worsens" if cell[0] in damaged else "cannot tell")
        for cell in dict.fromkeys([*protected, *cells])
    ]
    is_damaged = any(task in damaged for task, _ in protected)
    return replace(
        graded,
        outcome="damaged" if is_damaged else graded.outcome,
        cells=(*graded.cells, *judged[: len(protected)]),
        unprotected_losses=(*graded.unprotected_losses, *(cell for cell in judged[len(protected) :] if cell.is_damaged)),
        lost_answers=lost,
    )
