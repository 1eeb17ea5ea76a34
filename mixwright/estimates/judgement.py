"""What a change may be called: sign first, then "no change", else "cannot tell". Trial, claims and page use these words.

Success alone can be won by giving the commonest answer more often, so *improves* needs the change of success and the change
of dependence on the prompt (D) above 0, each. See `dependence`.
"""

from __future__ import annotations

from mixwright.estimates.crossed import Estimate
from mixwright.records import ChangeWord

MARGIN = 0.05
"""Change up to which nobody should mind."""
FEWEST_SEEDS = 5
"""Seeds of a trial below which nothing is told."""

TOLD: dict[str, str] = {
    "improves": "improves",
    "worsens": "worsens",
    "commonest": "gives the commonest answer more often",
    "sharper": "sharper, not more able",
    "no change": "no change beyond {margin:g} points",
    "cannot tell": "cannot tell",
}
"""How each word is written for people."""


def change_word(
    success: Estimate,
    dependence: Estimate | None,
    sampled: Estimate | None = None,
    swapped: Estimate | None = None,
    *,
    margin: float = MARGIN,
    adjusted_p: float | None = None,
) -> ChangeWord:
    """The word for a change.

    Args:
        success: change of success under the declared decoding.
        dependence: change of D; None where it was not measured: nothing improves without it.
        sampled: change of sampled success, where the declared decoding is greedy.
        swapped: change of S; None where it was not measured.
        margin: size that does not matter.
        adjusted_p: p of `success`, corrected for all that is judged beside it; None takes its own.
    """
    if 1 < success.seeds < FEWEST_SEEDS:
        return "cannot tell"
    seen = (success.p if adjusted_p is None else adjusted_p) < 0.05
    if seen and success.high < 0:
        return "worsens"
    if seen and success.low > 0:
        if dependence is not None and dependence.low > 0:
            return "improves"
        return "commonest" if swapped is not None and swapped.low > 0 else "cannot tell"  # which of the two rose
    if sampled is not None and sampled.low > 0 and success.high < margin:
        return "sharper"
    if -margin < success.low and success.high < margin:
        return "no change"
    return "cannot tell"


def told(word: str, margin: float = MARGIN) -> str:
    """The word for people."""
    return TOLD[word].format(margin=100 * margin)
