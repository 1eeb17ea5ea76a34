"""Gate on a run folder: what was measured before and after goes to the gate that can judge it, graded or not."""

from __future__ import annotations

from mixwright.run.folder import RunFolder
from mixwright.verdict.rules.evidence import headline_arm, leading_sides, read_outcome
from mixwright.verdict.rules.gate import GateResult, check_sides
from mixwright.verdict.rules.gate_question import GateQuestion, read_question
from mixwright.verdict.rules.gate_ungraded import check_ungraded


def ask_gate(run: RunFolder, question: GateQuestion | None = None) -> GateResult | None:
    """Ask the gate about a run folder, or about the leading arm of a trial.

    Args:
        run: the folder.
        question: what is protected, and by which margin; None reads the question that was asked last, if any.

    Returns:
        None where nothing was measured before and after, or no gate can judge the outcome: that of preference pairs, and the
        loss of a trial, which is judged against its references.

    Raises:
        InputError: a name that was not measured before, or a broken file.
    """
    sides, outcome = leading_sides(run), read_outcome(run)
    question = question or read_question(run) or GateQuestion()
    if sides is None:
        return None
    if outcome == "loss" and not headline_arm(run):
        return check_ungraded(run, sides, question)
    return check_sides(sides, outcome, question) if outcome in ("greedy", "sampled") else None
