"""Section of what the model lost, with intervals, and of what these items cannot tell.

Source: before and after of the leading arm, paired by item and seed (claims.json).
Unit: success under the declared decoding in percent, differences in points with 95 % interval; where nothing is graded
    held-out loss in nats per token, or preference accuracy.
Cost: reads one small file.
Blind spot: sees only what was measured; a task without held-out items can be damaged unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.readings import READINGS, Outcome
from mixwright.records import Claim
from mixwright.runs import RunFolder
from mixwright.verdict.basis import recommended
from mixwright.verdict.blocks import Block, Claims, Fold, Paragraph, Table, Terms
from mixwright.verdict.claims import (
    cells_first,
    claims_of,
    format_family,
    format_kind,
    format_not_judged,
    too_few,
    undecided_because,
)
from mixwright.verdict.evidence import arm_suffix, before_after_caption, decoding_of, seeds_of
from mixwright.verdict.text import amount, count, level

MOST_CLAIMS_OPEN = 5
"""Claims that stay open."""


class Damaged(Section):
    """Cells and tasks that got worse, or whose answers depend less on their prompts."""

    ORDER: ClassVar[int] = 11
    TITLE: ClassVar[str] = "Damaged"
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """The largest losses, what these items cannot tell, what is unchanged, and what the words were corrected for."""
        claims = claims_of(run)
        if not claims:
            return []
        outcome = decoding_of(run)
        found, caption = cells_first(claims, "damaged", "less dependent"), before_after_caption(run)
        blind, same = cells_first([c for c in claims if not too_few(c)], "cannot tell"), cells_first(claims, "unchanged")
        blocks: list[Block] = [Claims(caption, tuple(found[:MOST_CLAIMS_OPEN]), outcome)]
        if not found:
            note = f" Damage is not excluded: {undecided_because(claims, seeds_of(run))}" if blind else ""
            text = f"Nothing is shown to be damaged{arm_suffix(run)}."
            if _against(run):
                text = (
                    f"No single change of {READINGS[outcome].title} is shown to be damage; the first sentence says what is."
                )
            blocks = [Paragraph(f"{text}{note}")]
        blocks += _not_judged(claims, outcome)
        if found[MOST_CLAIMS_OPEN:]:
            blocks.append(
                Fold(f"{len(found) - MOST_CLAIMS_OPEN} more", (Claims(caption, tuple(found[MOST_CLAIMS_OPEN:]), outcome),))
            )
        if blind:
            why = Claims("Cannot tell, and why", tuple(blind), outcome)
            blocks.append(Fold(f"Cannot tell: {count(len(blind), 'claim')}", (why,)))
        if same:
            said = format_kind("unchanged", outcome)
            still = Claims(f"The whole interval shows {said}", tuple(same), outcome)
            blocks.append(Fold(f"{said[:1].upper()}{said[1:]}: {len(same)}", (still,)))
        words = ("damaged", *(["depends less on the prompt"] if any(c.kind == "less dependent" for c in found) else []))
        blocks.append(Terms((*words, *(["cannot tell"] if blind else []), *(["no change"] if same else []))))
        return [*blocks, Fold("How many of these are chance?", (Paragraph(format_family(claims)),))]


def _against(run: RunFolder) -> bool:
    """Whether the page's first sentence is against the later checkpoint."""
    found, _ = recommended(run)
    return found is not None and found.advice == "do not ship"


def _not_judged(claims: Sequence[Claim], outcome: Outcome) -> list[Block]:
    """One line for all cells of too few items, which opens to what they had right: no interval would say anything."""
    unit = READINGS[outcome].unit
    rows = [
        (
            " ".join((claim.task, level(claim.level))).strip(),
            str(claim.items),
            amount(claim.before, unit),
            amount(claim.after, unit),
        )
        for claim in claims
        if too_few(claim) and not claim.whole
    ]
    table = Table("Before and after, too few items to judge", ("cell", "items", "before", "after"), rows, (1, 2, 3))
    return [Fold(format_not_judged(claims), (table,))] if rows else []
