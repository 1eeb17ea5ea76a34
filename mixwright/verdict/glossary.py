"""What the words of the page mean, for somebody who sees one for the first time.

Source: the definitions in plan/, trial/ and measure/.
Unit: words.
Cost: none.
Blind spot: short; docstrings and the notes under the trial's table are exact.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict._blocks import Block, Fold, Paragraph
from mixwright.verdict._evidence import trial_of

WORDS = (
    "Cell: a task at one level. Luck: how often a cell is answered right without the skill, by the commonest answer or by "
    "answers that belong to other items. Success above luck: 0 is luck, 1 is always right.",
    "Mastered, reachable, hopeless, lucky: success above luck over the band, shown to be above 0, hardly ever right, right "
    "but not shown to be more often than luck. Sorted before the run.",
    "Groups that teach: completions of one prompt whose rewards differ, in a cell that is right more often than luck. "
    "Zero-signal: all rewards of a group equal, so that nothing is learnt from it.",
    "Null: an arm whose rewards were shuffled inside each group. It knows nothing; what it gains, no lever has earned.",
    "[low, high]: 95 % interval over seeds, arm minus reference, in percentage points. Noise floor: what two identical arms "
    "would differ by. Helps and harms need five seeds and an interval on one side of 0.",
)


class Glossary(Section):
    """One closed fold."""

    ORDER: ClassVar[int] = 20

    def blocks(self, run: RunFolder) -> list[Block]:
        """The words, where there is a trial to read."""
        return [Fold("What the words mean", tuple(map(Paragraph, WORDS)))] if trial_of(run) else []
