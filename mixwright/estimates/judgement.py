"""Words for a change: its sign first, then "no change", else "cannot tell"; trial, claims and page use them.

Success alone can be won by giving the commonest answer more often, so *improves* needs the change of success and the change
of dependence on the prompt (D) above 0, each; a change of D alone below 0 gets a word as well. Of several changes that are
judged together every word has its own Holm correction, over the largest p value that the word rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import holm
from mixwright.estimates.outcome import Change
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import ChangeWord

NO_CHANGE_MARGIN = 0.05
"""Change up to which nobody should mind."""
SIGN_ALPHA = 0.05
"""Two-sided level of every word with a sign: each is one-sided, so wrong in at most half of it."""
MIN_SEEDS = 5
"""Seeds of a trial below which every word is "cannot tell"."""
SIGNED_WORDS: tuple[ChangeWord, ...] = ("worsens", "improves", "commonest", "less dependent", "sharper")
"""Words with a sign, in the order in which they are given."""

WRITTEN_WORDS: dict[str, str] = {
    "commonest": "gives the most common answer more often",
    "less dependent": "depends less on the prompt",
    "sharper": "only sampled answers improved",
    "no change": "no change beyond {margin}",
}
"""How words are written for people, where it is in other ones."""


def evidence(change: Change, above: Estimate | None = None) -> dict[ChangeWord, float]:
    """The p value that each word with a sign rests on: the largest of its parts; 1 where a part has the other sign.

    Args:
        change: of success and its parts.
        above: success after minus the chance level, where a rise must also lie above it.
    """

    def largest(sign: int, *estimates: Estimate | None) -> float:
        known_estimates = [
            estimate
            for estimate in estimates
            if estimate is not None and math.isfinite(estimate.value) and estimate.value * sign > 0
        ]
        return max(estimate.p for estimate in known_estimates) if len(known_estimates) == len(estimates) else 1.0

    estimates = (change.estimate, change.dependence) if change.outcome in GRADED_OUTCOMES else (change.estimate,)
    rise = estimates if above is None else (*estimates, above)
    return {
        "worsens": largest(-1, change.estimate),
        "improves": largest(1, *rise),
        "commonest": largest(1, change.estimate, change.swapped),
        "less dependent": largest(-1, change.dependence),
        "sharper": largest(1, change.sampled, change.sampled_dependence),
    }


def change_words(
    changes: Sequence[Change], *, margin: float = NO_CHANGE_MARGIN, above: Sequence[Estimate | None] = (), times: float = 1.0
) -> list[ChangeWord]:
    """The word for each of some changes that are judged together.

    Args:
        changes: one family for Holm's correction.
        margin: size that does not matter.
        above: per change as for `evidence`; empty for none.
        times: further correction, a factor on every p value.
    """
    p_by_words = [evidence(change, *above[change_index : change_index + 1]) for change_index, change in enumerate(changes)]
    adjusted = {word: holm([table[word] for table in p_by_words]) for word in SIGNED_WORDS}
    return [
        _word(change, {word: times * adjusted[word][change_index] for word in SIGNED_WORDS}, margin)
        for change_index, change in enumerate(changes)
    ]


def change_word(change: Change, *, margin: float = NO_CHANGE_MARGIN, times: float = 1.0) -> ChangeWord:
    """The word for a single change."""
    return change_words([change], margin=margin, times=times)[0]


def _word(change: Change, p: Mapping[ChangeWord, float], margin: float) -> ChangeWord:
    success = change.estimate
    too_few_items = change.outcome not in GRADED_OUTCOMES and success.items < MIN_ITEMS  # one text has no spread at all
    if too_few_items or 1 < success.seeds < MIN_SEEDS:
        return "cannot tell"
    is_within_margin = -margin < success.low and success.high < margin
    for word in SIGNED_WORDS:
        if p[word] < SIGN_ALPHA and (word != "sharper" or is_within_margin):
            return word
    return "no change" if is_within_margin else "cannot tell"


def format_word(word: str, margin: float = NO_CHANGE_MARGIN, outcome: Outcome = "greedy") -> str:
    """The word for people; the margin in the unit of the outcome."""
    unit = READINGS[outcome].unit
    size = f"{100 * margin:g} points" if unit == "share" else f"{margin:g} {unit}"
    return WRITTEN_WORDS.get(word, word).format(margin=size)
