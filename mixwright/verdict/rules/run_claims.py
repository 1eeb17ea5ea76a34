"""Claims of a run: of every arm, or of the plain before and after; of ungraded answers those that the gate bears out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mixwright.records import Claim
from mixwright.run.folder import read_list
from mixwright.verdict.rules.answers_kept import find_lost_answers
from mixwright.verdict.rules.claims import claims_between
from mixwright.verdict.rules.evidence import Evidence


def judge_claims(evidence: Evidence) -> list[Claim]:
    """Claims of every arm (or of the plain before/after), each task's cells and then the whole task.

    Those on file, if nothing is left to judge from.

    Raises:
        InputError: a table of measurements is broken, or of an earlier version.
    """
    outcome, claims = evidence.outcome, list[Claim]()
    for arm, sides in evidence.sides_by_arm.items():
        claims += claims_between(sides, outcome, arm, evidence.comparisons[arm])
    if not claims and evidence.run.claims.is_file():
        return read_list(evidence.run.claims, Claim)
    is_gated = outcome == "loss" and not evidence.arm
    return _apply_gate_rule(claims, find_lost_answers(evidence, {claim.task for claim in claims})) if is_gated else claims


def _apply_gate_rule(claims: Sequence[Claim], lost: Mapping[str, str]) -> list[Claim]:
    """The claims of a comparison without graded answers: *damaged* is a task whose answers are lost, and nothing else."""
    judged_claims = []
    for claim in claims:
        if claim.task in lost:
            claim = replace(claim, kind="damaged", evidence=f"{claim.evidence}; its answers {lost[claim.task]}")
        elif claim.kind == "damaged":
            claim = replace(
                claim, kind="cannot tell", evidence=f"{claim.evidence}; the loss rose, and there is no grader to say more"
            )
        judged_claims.append(claim)
    return judged_claims
