"""What the model lost, with intervals, and what could not be measured.

Source: before and after of the leading arm, paired by item and seed (claims.json).
Unit: success in percent, differences in points with 95 % interval.
Cost: reads one small file.
Blind spot: sees only what was measured; a task without held-out items can be damaged unseen.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict._blocks import Block, Claims, Fold, Paragraph
from mixwright.verdict._claims import cells_first, chance, claims_of
from mixwright.verdict._evidence import whose
from mixwright.verdict._text import count

FIRST = 5
"""Claims that stay open."""


class Damaged(Section):
    """Cells and tasks that fell."""

    ORDER: ClassVar[int] = 11
    TITLE: ClassVar[str] = "Damaged"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The largest losses, what is unmeasurable, and what chance alone would show."""
        claims = claims_of(run)
        if not claims:
            return []
        found = cells_first(claims, "damaged")
        blocks: list[Block] = [Paragraph(f"Nothing: no interval lies below 0{whose(run)}.")]
        if found:
            blocks = [Claims(f"Success before and after{whose(run)}", tuple(found[:FIRST]))]
        if found[FIRST:]:
            blocks.append(Fold(f"{len(found) - FIRST} more", (Claims("Success before and after", tuple(found[FIRST:])),)))
        blind = tuple(claim for claim in claims if claim.kind == "unmeasurable")
        if blind:
            blocks.append(Fold(f"{count(len(blind), 'claim')} unmeasurable", (Claims("Not measurable, and why", blind),)))
        same = tuple(claim for claim in claims if claim.kind == "unchanged")
        if same:
            blocks.append(Fold(f"{len(same)} unchanged", (Claims("No interval excludes 0", same),)))
        return [*blocks, Fold("How many of these are chance?", (Paragraph(chance(claims)),))]
