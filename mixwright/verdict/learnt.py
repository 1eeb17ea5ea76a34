"""What the model can do now that it could not do before, with intervals.

Source: before and after of the leading arm, paired by item and seed (claims.json).
Unit: success in percent, differences in points with 95 % interval.
Cost: reads one small file.
Blind spot: single claims; how many would appear by chance is said beside them. Held-out items of the same tasks only.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict._blocks import Block, Claims, Fold, Paragraph
from mixwright.verdict._claims import cells_first, claims_of
from mixwright.verdict._evidence import whose
from mixwright.verdict._text import count

FIRST = 5
"""Claims that stay open."""


class Learnt(Section):
    """Cells and tasks that rose."""

    ORDER: ClassVar[int] = 10
    TITLE: ClassVar[str] = "Learnt"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The largest gains, the rest folded away."""
        claims = claims_of(run)
        if not claims:
            return []
        found = cells_first(claims, "learnt")
        if not found:
            blind = sum(claim.kind == "unmeasurable" for claim in claims)
            note = f" {blind} of {count(len(claims), 'claim')} could not be measured well enough." if blind else ""
            return [Paragraph(f"Nothing: no interval lies above 0{whose(run)}.{note}")]
        blocks: list[Block] = [Claims(f"Success before and after{whose(run)}", tuple(found[:FIRST]))]
        if found[FIRST:]:
            blocks.append(Fold(f"{len(found) - FIRST} more", (Claims("Success before and after", tuple(found[FIRST:])),)))
        return blocks
