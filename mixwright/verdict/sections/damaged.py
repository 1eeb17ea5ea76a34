"""Section of what the model lost, with intervals, and of what these items cannot tell.

Source: before and after of the leading arm, paired by item and seed (claims.json).
Unit: success under the declared decoding in percent, differences in points with 95 % interval.
Cost: reads one small file.
Blind spot: sees only what was measured; a task without held-out items can be damaged unseen.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Claims, Fold, Paragraph, Terms
from mixwright.verdict.claims import cells_first, claims_of, family
from mixwright.verdict.evidence import whose
from mixwright.verdict.text import count

FIRST = 5
"""Claims that stay open."""


class Damaged(Section):
    """Cells and tasks that fell, or whose answers depend less on their prompts."""

    ORDER: ClassVar[int] = 11
    TITLE: ClassVar[str] = "Damaged"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The largest losses, what these items cannot tell, what is unchanged, and what the words were corrected for."""
        claims = claims_of(run)
        if not claims:
            return []
        found, caption = cells_first(claims, "damaged", "less dependent"), f"Success before and after{whose(run)}"
        blind, same = cells_first(claims, "cannot tell"), cells_first(claims, "unchanged")
        blocks: list[Block] = [Claims(caption, tuple(found[:FIRST]))]
        if not found:
            note = f" A loss is not excluded where these items cannot tell: {count(len(blind), 'claim')}." if blind else ""
            blocks = [Paragraph(f"Nothing is shown to be damaged{whose(run)}.{note}")]
        if found[FIRST:]:
            blocks.append(Fold(f"{len(found) - FIRST} more", (Claims(caption, tuple(found[FIRST:])),)))
        if blind:
            blocks.append(
                Fold(f"Cannot tell: {count(len(blind), 'claim')}", (Claims("Cannot tell, and why", tuple(blind)),))
            )
        if same:
            summary = f"No change beyond 5 points: {len(same)}"
            blocks.append(Fold(summary, (Claims("The whole interval lies within 5 points", tuple(same)),)))
        words = ("damaged", *(["depends less on the prompt"] if any(c.kind == "less dependent" for c in found) else []))
        blocks.append(Terms((*words, *(["cannot tell"] if blind else []), *(["no change"] if same else []))))
        return [*blocks, Fold("How many of these are chance?", (Paragraph(family(claims)),))]
