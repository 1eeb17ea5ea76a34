"""Section with what the gate said when it was asked, and what its items can exclude.

Source: gate.json, which has what was protected, and what was measured before and after; verdict/rules/gate.py.
Unit: points of success under the declared decoding, 95 % intervals.
Cost: reads the measurements of the leading arm.
Blind spot: speaks of what was protected only; tasks of which nothing was measured may be lost.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table, Tone
from mixwright.verdict.rules.basis import gate_answer
from mixwright.verdict.rules.evidence import leading_sides
from mixwright.verdict.rules.gate import GateOutcome
from mixwright.verdict.rules.gate_words import excludable_lines, format_cells, format_look, gate_lines

TONE_BY_OUTCOME: dict[GateOutcome, Tone] = {"passed": "good", "damaged": "bad", "cannot tell": "caution"}


class Gate(Section):
    """The gate's answer in a line, what its items can exclude, and the protected cells folded."""

    ORDER = 2
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where the gate was not asked, or nothing is measured any more."""
        result = gate_answer(run) if leading_sides(run) else None
        if result is None:
            return []
        limits = [f"{text[:1].upper()}{text[1:]}." for text in (*format_look(result), *excludable_lines(result))]
        cells = [
            (name, cell_text) for name, _, cell_text in (cell_line.partition(": ") for cell_line in format_cells(result))
        ]
        return [
            Paragraph(gate_lines(result)[0], TONE_BY_OUTCOME[result.outcome], "Gate"),
            Paragraph(" ".join(limits), lead="What these items can show"),
            Fold("Cells of the gate", (Table("Protected cells, and others that fell", ("cell", "what is shown"), cells),)),
        ]
