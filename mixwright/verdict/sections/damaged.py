"""Section of what the model lost, with intervals, and of what these items cannot tell.

Source: before and after of the leading arm, paired by item and seed (claims.json).
Unit: success under the declared decoding in percent, differences in points with 95 % interval; where nothing is graded
    held-out loss in nats per token, or preference accuracy.
Cost: reads one small file.
Blind spot: sees only what was measured; a task without held-out items can be damaged unseen.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.estimates.readings import READINGS
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.arm_words import arm_suffix, before_after_caption
from mixwright.verdict.page.blocks import Block, Claims, Fold, Paragraph, Table, Terms, folded_claims
from mixwright.verdict.page.text import cell_name, format_count, format_value
from mixwright.verdict.rules.basis import recommend_run
from mixwright.verdict.rules.claims import (
    MAX_CLAIMS_OPEN,
    explain_undecided,
    format_family,
    format_kind,
    format_not_judged,
    has_too_few_items,
    leading_claims,
    sort_cells_first,
)
from mixwright.verdict.rules.evidence import count_seeds, read_outcome


class Damaged(Section):
    """Cells and tasks that got worse, or whose answers depend less on their prompts."""

    ORDER = 11
    TITLE = "Damaged"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """The largest losses, what these items cannot tell, what is unchanged, and what the words were corrected for."""
        claims, outcome, caption = leading_claims(run), read_outcome(run), before_after_caption(run)
        if not claims:
            return []
        unit, word = READINGS[outcome].unit, format_kind("unchanged", outcome)
        losses, unchanged = sort_cells_first(claims, "damaged", "less dependent"), sort_cells_first(claims, "unchanged")
        undecided = sort_cells_first([claim for claim in claims if not has_too_few_items(claim)], "cannot tell")
        small_rows = [
            (
                cell_name(small_claim.task, small_claim.level),
                str(small_claim.items),
                format_value(small_claim.before, unit),
                format_value(small_claim.after, unit),
            )
            for small_claim in claims
            if has_too_few_items(small_claim) and not small_claim.whole
        ]
        table = Table(
            "Before and after, too few items to judge", ("cell", "items", "before", "after"), small_rows, (1, 2, 3)
        )
        has_less_dependent = any(claim.kind == "less dependent" for claim in losses)
        used_terms = {
            "damaged": True,
            "depends less on the prompt": has_less_dependent,
            "cannot tell": undecided,
            "no change": unchanged,
        }
        undecided_text = f" Damage is not excluded: {explain_undecided(claims, count_seeds(run))}" if undecided else ""
        return [
            Paragraph("" if losses else _format_no_damage(run) + undecided_text),
            Claims(caption, tuple(losses[:MAX_CLAIMS_OPEN]), outcome),
            Fold(format_not_judged(claims), (table,)),
            folded_claims(f"{len(losses) - MAX_CLAIMS_OPEN} more", caption, losses[MAX_CLAIMS_OPEN:], outcome),
            folded_claims(
                f"Cannot tell: {format_count(len(undecided), 'claim')}", "Cannot tell, and why", undecided, outcome
            ),
            folded_claims(
                f"{word[:1].upper()}{word[1:]}: {len(unchanged)}", f"The whole interval shows {word}", unchanged, outcome
            ),
            Terms(tuple(term for term, is_used in used_terms.items() if is_used)),
            Fold("How many of these are chance?", (Paragraph(format_family(claims)),)),
        ]


def _format_no_damage(run: RunFolder) -> str:
    """That no claim is one of damage; the page's first sentence may still be against the later checkpoint."""
    recommendation, _ = recommend_run(run)
    if recommendation is not None and recommendation.advice == "do not ship":
        title = READINGS[read_outcome(run)].title
        return f"No single change of {title} is shown to be damage; the first sentence says what is."
    return f"Nothing is shown to be damaged{arm_suffix(run)}."
