"""Gate where no answer is graded: it never passes, and finds damage by what needs no grader.

Damage of a protected task is what `verdict/rules/claims.py` says, or that its answers went over to the form of another
task's.

Source: measurements of held-out loss, completions.parquet and former.json of a comparison.
Unit: nats a token, 95 % intervals over items.
"""

from __future__ import annotations

from mixwright.estimates.outcome import TaskLevel
from mixwright.run.folder import RunFolder
from mixwright.verdict.rules import claims
from mixwright.verdict.rules.answer_forms import form_changes_of, group_takeovers
from mixwright.verdict.rules.evidence import Sides
from mixwright.verdict.rules.gate import GateResult, JudgedCell, named_cells
from mixwright.verdict.rules.gate_question import GateQuestion


def check_ungraded(run: RunFolder, sides: Sides, question: GateQuestion) -> GateResult:
    """What the gate finds in a comparison of two checkpoints without graded answers.

    Args:
        run: the folder.
        sides: what was measured before and after.
        question: what is protected.

    Raises:
        InputError: a name was not measured before, or a file is broken.
    """
    comparison_by_cell = {
        (comparison.task, comparison.level): comparison
        for comparison in claims.compare_cells(sides, "loss")
        if not comparison.is_whole_task
    }
    protected = (
        named_cells(sides[0], question.protect) if question.protect else list(comparison_by_cell)
    )  # without names every cell
    former_by_task = claims.read_former_answers(run)
    protected_cells = set(protected)
    damaged, judged_cells = set[TaskLevel](), list[JudgedCell]()
    far_rises = False
    for cell in [*protected, *(cell for cell in comparison_by_cell if cell not in protected_cells)]:
        comparison = comparison_by_cell.get(cell)
        is_judged = comparison is not None and comparison.adjusted_p is not None
        loss_rise = claims.to_interval(comparison.change.estimate, "loss") if comparison is not None and is_judged else None
        learnt = comparison is not None and comparison.word == "improves"
        if claims.is_shown_damaged(loss_rise, former_by_task.get(cell[0]), learnt=learnt):
            damaged.add(cell)
        far_rises |= cell in protected_cells and claims.has_risen_far(loss_rise)
        judged_cells.append(JudgedCell(*cell, None, word="worsens" if cell in damaged else "cannot tell"))
    protected_tasks = {task for task, _ in protected}
    damaged_tasks = {task for task, level in damaged if (task, level) in protected_cells}
    takeovers = group_takeovers(change for change in form_changes_of(run) if change.task in protected_tasks)
    is_damaged = bool(takeovers) or far_rises or bool(claims.find_far_former_answers(run, damaged_tasks))
    return GateResult(
        "damaged" if is_damaged else "inconclusive",
        None,
        tuple(judged_cells[: len(protected)]),
        None,
        unprotected_losses=tuple(cell for cell in judged_cells[len(protected) :] if cell.is_damaged),
        named_by_user=bool(question.protect),
        graded=False,
    )
