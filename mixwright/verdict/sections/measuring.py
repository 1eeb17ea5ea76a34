"""Section of notes on measuring: tasks of which no answer was right, with an example, and completions cut short.

Source: measure/notes.json.
Unit: items, and completions.
Cost: reads one small file.
Blind spot: a grader that is wrong only now and then; of runs only tasks whose answers stand in sentences that their
grader does not read.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import Observation
from mixwright.runs import RunFolder, read_list
from mixwright.verdict.blocks import Block, Paragraph

MOST_NOTES = 20
"""Notes shown."""


class Measuring(Section):
    """A sentence for each note, warnings first."""

    ORDER: ClassVar[int] = 13
    TITLE: ClassVar[str] = "Notes on measuring"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Paragraphs of the notes."""
        if not run.notes.is_file():
            return []
        order = ("error", "warning", "info")
        notes = sorted(read_list(run.notes, Observation), key=lambda note: order.index(note.severity))
        shown: list[Block] = [
            Paragraph(_sentence(note), "plain" if note.severity == "info" else "bad") for note in notes[:MOST_NOTES]
        ]
        beyond = len(notes) - len(shown)
        return [*shown, *([Paragraph(f"{beyond:,} more stand in {run.notes.name}.")] if beyond > 0 else [])]


def _sentence(note: Observation) -> str:
    return f"{note.message[:1].upper()}{note.message[1:]}. {note.remedy}".strip()
