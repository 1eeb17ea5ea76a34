"""Section of what the model can do now that it could not do before, with intervals.

Source: before and after of the leading arm, paired by item and seed (claims.json).
Unit: success under the declared decoding in percent, differences in points with 95 % interval; where nothing is graded
    held-out loss in nats per token, or preference accuracy.
Cost: reads one small file.
Blind spot: a guess that reads the form of a prompt depends on it; only the chance level keeps it out. Held-out items only.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.arm_words import arm_suffix, before_after_caption
from mixwright.verdict.page.blocks import Block, Claims, Paragraph, Terms, folded_claims
from mixwright.verdict.rules.claims import MAX_CLAIMS_OPEN, explain_undecided, format_kind, leading_claims, sort_cells_first
from mixwright.verdict.rules.evidence import count_seeds, read_outcome


class Learnt(Section):
    """Cells and tasks that got better."""

    ORDER = 10
    TITLE = "Learnt"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """The largest gains, the rest folded away; then what rose without being learnt."""
        claims, outcome, caption = leading_claims(run), read_outcome(run), before_after_caption(run)
        if not claims:
            return []
        gains, other_rises = sort_cells_first(claims, "learnt"), sort_cells_first(claims, "commonest", "sharper")
        no_gain_text = (
            f"Nothing is shown to be learnt{arm_suffix(run)}. {explain_undecided(claims, count_seeds(run))}".rstrip()
        )
        decomposition_terms = ("S", "D") if outcome in GRADED_OUTCOMES else ()
        chance_term = ("chance level",) if READINGS[outcome].unit == "share" else ()
        return [
            Paragraph("" if gains else no_gain_text),
            Claims(caption, tuple(gains[:MAX_CLAIMS_OPEN]), outcome),
            folded_claims(f"{len(gains) - MAX_CLAIMS_OPEN} more", caption, gains[MAX_CLAIMS_OPEN:], outcome),
            folded_claims(f"{len(other_rises)} rose without being learnt", caption, other_rises),
            Terms(
                ("cell", "learnt", *decomposition_terms, *chance_term, *(format_kind(claim.kind) for claim in other_rises))
            ),
        ]
