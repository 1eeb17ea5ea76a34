"""Section of lost answers that return when their first word is given.

Source: returned.json, which the comparison wrote; measure/returned.py.
Unit: answers, greedy decoding.
Cost: reads one small file; asking took two more greedy completions per lost answer, of 200 at most.
Blind spot: in use nobody gives the first word, so that an answer which returns is lost all the same; of one that does not
return nothing is shown.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.measure.returned import Returned, returned_file
from mixwright.run.folder import RunFolder, read_json
from mixwright.verdict.page.blocks import Block, Paragraph
from mixwright.verdict.page.text import count


class ReturnedSection(Section):
    """How many lost answers return, beside the null, and what that does not show."""

    ORDER = 4

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where no lost answers were asked again."""
        path = returned_file(run)
        counts = read_json(path, Returned) if path.is_file() else None
        return [Paragraph(format_returned(counts), lead="Answers lost")] if counts is not None else []


def format_returned(counts: Returned) -> str:
    """The counts in words, and what they do not show."""
    lost_text = f"{count(counts.lost, 'answer')} {'was' if counts.lost == 1 else 'were'} lost"
    were_or_was = "was" if counts.not_askable == 1 else "were"
    not_asked_text = f"{count(counts.not_askable, 'answer')} {were_or_was} not asked again, because the first word"
    not_asked_sentence = f" {not_asked_text} has the answer in it or leaves no room." if counts.not_askable else ""
    if not counts.asked:
        return f"{lost_text}.{not_asked_sentence}"
    text = (
        f"{lost_text}; of {counts.asked:,} asked again, {counts.returned:,} return when the earlier answer's first word is "
        "given."
    )
    if counts.other_asked:
        text += (
            f" With the first word of another answer of the same task, which knows nothing of the item, "
            f"{counts.other_returned:,} of {counts.other_asked:,} return: what the words give away is at most the "
            "difference."
        )
    caveat = "An answer that returns was not gone, but in use nobody gives its first word"
    return f"{text}{not_asked_sentence} {caveat}; of those that do not return, nothing is shown of why."
