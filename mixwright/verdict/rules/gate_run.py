"""Gate on a run folder: what was measured before and after goes to the gate that can judge it, graded or not."""

from __future__ import annotations

from mixwright.errors import InputError
from mixwright.run.folder import RunFolder
from mixwright.verdict.rules.evidence import headline_arm, leading_sides, read_outcome
from mixwright.verdict.rules.gate import GateResult, check_sides
from mixwright.verdict.rules.gate_question import GateQuestion
from mixwright.verdict.rules.gate_ungraded import check_ungraded


def check_gate(run: RunFolder, question: GateQuestion) -> GateResult:
    """The gate over what a run folder holds, of its leading arm where there was a trial.

    Args:
        run: the folder.
        question: what is protected, and by which margin.

    Raises:
        InputError: nothing was measured before and after, or a name was not measured before.
    """
    sides, outcome = leading_sides(run), read_outcome(run)
    if sides is None:
        got, remedy = "none", "Run the trial, or compare two checkpoints, first."
        raise InputError("measurements before and after", got, remedy, file=run.path)
    if outcome == "loss" and not headline_arm(run):  # a trial is judged against its references
        return check_ungraded(run, sides, question)
    if outcome not in ("greedy", "sampled"):
        expected, remedy = (
            "graded answers, by which the gate judges a loss",
            "Give the gate a corpus with answers that a grader can judge.",
        )
        raise InputError(expected, f"a run of {outcome} alone", remedy, file=run.path)
    return check_sides(sides, outcome, question)
