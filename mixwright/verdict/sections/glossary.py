"""Section that defines the words of the page.

Source: the definitions in estimates/.
Unit: words.
Cost: none.
Blind spot: short; the docstrings of estimates/ are exact.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Fold, Paragraph
from mixwright.verdict.evidence import comparisons

WORDS = (
    "Cell: a task at one level. Success: share of right answers under the declared decoding (greedy unless the settings say "
    "sampled), over all held-out items, each task counted once. No item is left out for what a lever does with it.",
    "S: how often the cell's own answers would be right on its other prompts. D = success - S: the part of success that "
    "depends on the prompt. Kappa = D / (1 - S): 0 for a model that says the same to every prompt, 1 for one that is always "
    "right. A change of success is the change of S plus the change of D.",
    "Chance level: what the best rule without the skill (a constant answer, a position, a number of the prompt, blind "
    "choice), chosen on other rows, earns on the same items. Learnt needs success after above it.",
    "Improves: success and D both rose. Gives the commonest answer more often: success and S rose. Depends less on the "
    "prompt: D fell, success is not shown to. Sharper, not more able: sampled success and its D rose, success under the "
    "declared decoding stayed within the margin.",
    "Frozen: the starting model, not trained. Uniform: rows drawn as they come. Equal shares: every task and level equally "
    "often. Helps: improves success against each of the three. Null: an arm that lacks what the lever knows; a lever that "
    "helps is tried against its nulls.",
    "[low, high]: 95 % interval over seeds and items, in percentage points. No change beyond 5 points: the whole interval "
    "lies within them. Cannot tell: neither a sign nor that; the size that would be seen in 4 of 5 cases stands beside it.",
    "Mastered, hopeless: success shown to lie over or under the band. Lucky: shown to depend hardly on the prompt (kappa "
    "under 0.10). Reachable: shown to depend on it. Unknown: neither; it is drawn like reachable.",
)


class Glossary(Section):
    """One closed fold."""

    ORDER: ClassVar[int] = 21
    TITLE: ClassVar[str] = "Words"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The words, where there is something to read."""
        return [Fold("What the words mean", tuple(map(Paragraph, WORDS)))] if comparisons(run) else []
