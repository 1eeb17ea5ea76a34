"""Gate on a run folder: tasks that a grader judges, others by what their answers say, then protected behaviours.

Tasks that no grader judges never pass. Damage of them is that answers went over to the format of another task's, or are lost
(`answers_kept.py`). A likelihood decides nothing: in a pilot that of former answers fell under a harmless greeting, and rose
where tool calls took over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mixwright.estimates.items import TaskLevel, cell_order
from mixwright.estimates.protected import named_cells
from mixwright.records import cell_key
from mixwright.verdict.rules.answer_forms import group_takeovers
from mixwright.verdict.rules.answers_kept import compare_answers, name_lost_answers
from mixwright.verdict.rules.behaviours import judge_behaviours
from mixwright.verdict.rules.cells import CellChange
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult, check_protected, check_sides, list_cells
from mixwright.verdict.rules.gate_question import GateQuestion


def ask_gate(evidence: Evidence, question: GateQuestion | None = None) -> GateResult | None:
    """Ask the gate about a run folder, or about the leading arm of a trial; tasks first, then protected behaviours.

    Args:
        evidence: of the folder.
        question: what is protected, and by which margin; None reads the question that was asked last, if any.

    Returns:
        None where nothing was measured before and after, or no gate can judge the outcome: that of preference pairs, and the
        loss of a trial, which is judged against its references.

    Raises:
        InputError: a name that was not measured before, or a broken file.
    """
    question = question or evidence.question or GateQuestion()
    result = _ask_about_tasks(evidence, question)
    if result is None or not question.behaviours:
        return result
    outcome = judge_behaviours(evidence.behaviours, question.behaviours)
    if result.outcome == "damaged" or (result.outcome == "inconclusive" and outcome != "damaged"):
        outcome = result.outcome
    decided = outcome != result.outcome
    return replace(result, outcome=outcome, behaviours=question.behaviours, decided_by_behaviours=decided)


def _ask_about_tasks(evidence: Evidence, question: GateQuestion) -> GateResult | None:
    sides, outcome = evidence.sides, evidence.outcome
    is_ungraded = outcome == "loss" and not evidence.arm
    if sides is None or not (is_ungraded or outcome in ("greedy", "sampled")):
        return None
    ungraded = list_cells(sides[0]) if is_ungraded else list_ungraded_cells(evidence)
    protected = _name_protected(evidence, question, ungraded)
    graded = GateResult("inconclusive", None, (), None, named_by_user=bool(question.protect), graded=not is_ungraded)
    if outcome == "greedy" or outcome == "sampled":
        names = tuple(cell_key(*cell) for cell in protected if cell not in ungraded)
        graded = (
            check_sides(sides, outcome, replace(question, protect=names), evidence.comparisons[evidence.arm])
            if names or not question.protect
            else check_protected(*sides, [], decoding=outcome, named_by_user=True)
        )
    own = [cell for cell in protected if cell in ungraded] if question.protect else ungraded
    return _with_ungraded(graded, evidence, ungraded, own)


def list_ungraded_cells(evidence: Evidence) -> list[TaskLevel]:
    """The tasks and levels whose answers have no score, none of a trial. Raises InputError for a broken table."""
    rows = () if evidence.arm else evidence.first_answers
    return sorted({(row["task"], row["level"]) for row in rows if row.get("score") is None}, key=cell_order)


def check_names(evidence: Evidence, question: GateQuestion) -> None:
    """Raise InputError for a protected name that was not measured, so that nothing is written for it."""
    if evidence.sides is not None and question.protect:
        _name_protected(evidence, question, list_ungraded_cells(evidence))


def _name_protected(evidence: Evidence, question: GateQuestion, ungraded: Sequence[TaskLevel]) -> list[TaskLevel]:
    """The cells that the user named, graded or not. Raises InputError as `named_cells` does."""
    measured = list_cells(evidence.sides[0]) if evidence.sides is not None else []
    return named_cells(list(dict.fromkeys([*measured, *ungraded])), question.protect) if question.protect else []


def _with_ungraded(
    graded: GateResult, evidence: Evidence, cells: Sequence[TaskLevel], protected: Sequence[TaskLevel]
) -> GateResult:
    """What the gate finds in graded tasks, and in others: the worse of both.

    Args:
        graded: of the graded tasks; one without cells where there are none.
        evidence: of the folder.
        cells: of the tasks that no grader judges.
        protected: those of them that must not be lost.
    """
    tasks = {task for task, _ in cells}
    kept = compare_answers(evidence.pairs, tasks)
    named = name_lost_answers(kept, evidence.form_changes)
    lost = {task: words for task, words in named.items() if task in tasks}
    damaged = {*lost, *(task for form in group_takeovers(evidence.form_changes) for task in form.tasks)}
    judged = [
        CellChange(*cell, False, None, word="worsens" if cell[0] in damaged else "cannot tell")
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
