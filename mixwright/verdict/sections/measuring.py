"""Section of notes on measuring: tasks of which no answer was right, with an example, and completions cut short.

Source: measure/notes.json.
Unit: items, and completions.
Cost: reads one small file.
Blind spot: a grader that is wrong only now and then; of runs only tasks whose answers stand in sentences that their
grader does not read.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.records import SEVERITIES, Observation
from mixwright.run.folder import RunFolder, read_list
from mixwright.verdict.page.blocks import Block, Paragraph

MAX_NOTES = 20
"""Notes shown."""


class Measuring(Section):
    """A sentence for each note, warnings first."""

    ORDER = 13
    TITLE = "Notes on measuring"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Paragraphs of the notes."""
        notes = read_list(run.notes, Observation) if run.notes.is_file() else []
        notes.sort(key=lambda note: SEVERITIES.index(note.severity))
        shown_blocks: list[Block] = [
            Paragraph(
                f"{note.message[:1].upper()}{note.message[1:]}. {note.remedy}".strip(),
                "plain" if note.severity == "info" else "bad",
            )
            for note in notes[:MAX_NOTES]
        ]
        hidden_notes = len(notes) - MAX_NOTES
        return [
            *shown_blocks,
            *([Paragraph(f"{hidden_notes:,} more stand in {run.notes.name}.")] if hidden_notes > 0 else []),
        ]
