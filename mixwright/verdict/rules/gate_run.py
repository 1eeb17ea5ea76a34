"""Gate on a run folder: what was measured before and after goes to the gate that can judge it, graded or not."""

from __future__ import annotations

from dataclasses import replace

from mixwright.records import cell_key
from mixwright.verdict.rules.behaviours import judge_behaviours
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult, check_protected, check_sides, list_cells, named_cells
from mixwright.verdict.rules.gate_question import GateQuestion
from mixwright.verdict.rules.gate_ungraded import list_ungraded_cells, with_ungraded


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
    if sides is None:
        return None
    measured = list_cells(sides[0])
    if outcome == "loss" and not evidence.arm:
        protected = named_cells(measured, question.protect) if question.protect else measured
        nothing = GateResult("inconclusive", None, (), None, named_by_user=bool(question.protect), graded=False)
        return with_ungraded(nothing, evidence, measured, protected)
    if outcome not in ("greedy", "sampled"):
        return None
    compared = evidence.comparisons[evidence.arm]
    ungraded = [] if evidence.arm else list_ungraded_cells(evidence)
    if not question.protect:
        return with_ungraded(check_sides(sides, outcome, question, compared), evidence, ungraded, ungraded)
    protected = named_cells([*measured, *ungraded], question.protect)
    names = tuple(cell_key(*cell) for cell in protected if cell not in ungraded)
    graded = (
        check_sides(sides, outcome, replace(question, protect=names), compared)
        if names
        else check_protected(*sides, [], decoding=outcome, named_by_user=True)
    )
    return with_ungraded(graded, evidence, ungraded, [cell for cell in protected if cell in ungraded])


def check_names(evidence: Evidence, question: GateQuestion) -> None:
    """Raise InputError for a protected name that was not measured, so that nothing is written for it."""
    if evidence.sides is not None and question.protect:
        ungraded = [] if evidence.arm else list_ungraded_cells(evidence)
        named_cells([*list_cells(evidence.sides[0]), *ungraded], question.protect)
