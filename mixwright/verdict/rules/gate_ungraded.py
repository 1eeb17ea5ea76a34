"""Gate of tasks that no grader judges: it never passes them, and finds damage in what the models answered.

Damage is that answers went over to the format of another task's, or are lost (`answers_kept.py`). A likelihood decides
nothing: in a pilot that of former answers fell under a harmless greeting, and rose where tool calls took over.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mixwright.estimates.outcome import TaskLevel
from mixwright.estimates.protected import cell_order
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.answers import read_first_answers
from mixwright.verdict.rules.answer_forms import form_changes_of, group_takeovers
from mixwright.verdict.rules.answers_kept import find_lost_answers
from mixwright.verdict.rules.evidence import answers_version
from mixwright.verdict.rules.gate import GateResult, JudgedCell


def list_ungraded_cells(run: RunFolder) -> list[TaskLevel]:
    """The tasks and levels whose answers were kept without a score. Raises InputError for a broken table."""
    folder = run.path / "measure"
    return list(_read_ungraded_cells(folder, answers_version(folder)))


@functools.lru_cache(maxsize=8)
def _read_ungraded_cells(folder: Path, _version: object) -> tuple[TaskLevel, ...]:
    rows = read_first_answers(folder)
    return tuple(sorted({(row["task"], row["level"]) for row in rows if row.get("score") is None}, key=cell_order))


def with_ungraded(
    graded: GateResult, run: RunFolder, cells: Sequence[TaskLevel], protected: Sequence[TaskLevel]
) -> GateResult:
    """What the gate finds in graded tasks, and in others: the worse of both.

    Args:
        graded: of the graded tasks; one without cells where there are none.
        run: the folder.
        cells: of the tasks that no grader judges.
        protected: those of them that must not be lost.
    """
    lost = find_lost_answers(run, {task for task, _ in cells})
    takeovers = group_takeovers(form_changes_of(run))
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
