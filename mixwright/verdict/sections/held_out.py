"""Section of what cannot be said of a run without graded answers, and of every cell and task in its own unit.

Source: claims.json; measurements before and after of the leading arm.
Unit: held-out loss in nats per token; preference accuracy in percent, its differences in points; 95 % intervals.
Cost: reads one small file.
Blind spot: a lower loss or a higher preference accuracy does not say that an answer is right, or that one is better written.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, format_unit
from mixwright.records import cell_key
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.arm_words import before_after_caption
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.page.text import NO_VALUE_SIGN, format_change, format_count, format_value
from mixwright.verdict.rules.claims import format_kind, leading_claims
from mixwright.verdict.rules.evidence import read_outcome

UNSAID_BY_OUTCOME: dict[Outcome, str] = {
    "loss": "No graded answers: nothing is said about whether answers are right, only how likely the given targets are.",
    "preference": "No graded answers: nothing is said about whether answers are right, or about what the model would write.",
}


class HeldOut(Section):
    """What this outcome cannot say, and the claims about every cell as one table."""

    ORDER = 1
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Silent where answers were graded, and before anything was compared."""
        outcome, claims, caption = read_outcome(run), leading_claims(run), before_after_caption(run)
        if outcome in GRADED_OUTCOMES or not claims:
            return []
        unit = READINGS[outcome].unit
        rows = [
            (
                f"{claim.task}, whole task" if claim.whole else cell_key(claim.task, claim.level),
                format_value(claim.before, unit),
                format_value(claim.after, unit) if claim.difference.n else NO_VALUE_SIGN,
                format_change(claim.difference, unit),
                format_kind(claim.kind, outcome),
                claim.evidence,
            )
            for claim in claims
        ]
        columns = ("task and level", "before", "after", f"change, {format_unit(unit)}", "what it is called", "rests on")
        folded = Fold(f"{caption}: {format_count(len(claims), 'claim')}", (Table(caption, columns, rows, (1, 2, 3)),))
        return [Paragraph(UNSAID_BY_OUTCOME[outcome], "caution"), folded]
