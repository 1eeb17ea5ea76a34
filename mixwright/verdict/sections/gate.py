"""Section with what the gate said when it was asked, and what its items can exclude.

Source: gate.json, which has what was protected, and what was measured before and after; verdict/gate.py.
Unit: points of success under the declared decoding, 95 % intervals.
Cost: reads the measurements of the leading arm.
Blind spot: speaks of what was protected only; tasks of which nothing was measured may be lost.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.basis import gate_answer
from mixwright.verdict.blocks import Block, Fold, Paragraph, Table, Tone
from mixwright.verdict.evidence import comparisons, headline_arm
from mixwright.verdict.gate import Outcome
from mixwright.verdict.gate_words import excludable_lines, format_cells, format_look, gate_lines

TONE_BY_OUTCOME: dict[Outcome, Tone] = {"passed": "good", "damaged": "bad", "cannot tell": "caution"}


class Gate(Section):
    """The gate's answer in a line, what its items can exclude, and the protected cells folded."""

    ORDER: ClassVar[int] = 2
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where the gate was not asked, or nothing is measured any more."""
        found = gate_answer(run) if comparisons(run).get(headline_arm(run)) else None
        if found is None:
            return []
        limits = [f"{text[:1].upper()}{text[1:]}." for text in (*format_look(found), *excludable_lines(found))]
        able = [Paragraph(" ".join(limits), lead="What these items can show")] if limits else []
        cells = [(name, said) for name, _, said in (told.partition(": ") for told in format_cells(found))]
        table = Table("Protected cells, and others that fell", ("cell", "what is shown"), cells)
        return [
            Paragraph(gate_lines(found)[0], TONE_BY_OUTCOME[found.outcome], "Gate"),
            *able,
            Fold("Cells of the gate", (table,)),
        ]
