"""Sentences of a page that must be true of the run at hand: directions, reasons, units, and what does not apply."""

from __future__ import annotations

import pytest

from mixwright.estimates.outcome import Item, ItemScores
from mixwright.estimates.readings import Outcome
from mixwright.records import Claim
from mixwright.verdict.claims import claims_between, undecided_because


def moved(outcome: Outcome, before: float, after: float, seeds: int) -> Claim:
    """Forty items of one task, each from `before` to `after`, in every seed, give or take a little that differs by item."""
    chance: dict[Item, float] = {("t", None, str(i)): 0.5 for i in range(40)}
    sides = [
        [ItemScores({outcome: {item: value + 0.001 * (int(item[2]) % 5) * spread for item in chance}, "chance": chance})]
        * seeds
        for value, spread in ((before, -1), (after, 1))
    ]
    (claim,) = claims_between((sides[0], sides[1]), outcome)
    return claim


FEW = "nothing is judged with fewer than 5 seeds"
REASONS = [
    ("loss", 2.0, 1.78, 3, f"held-out loss fell, but {FEW}"),
    ("loss", 1.78, 2.0, 3, f"held-out loss rose, but {FEW}"),
    ("preference", 0.7, 0.2, 4, f"held-out preference accuracy fell, but {FEW}"),
    ("loss", 2.002, 1.998, 2, FEW),
    ("preference", 0.1, 0.4, 5, "held-out preference accuracy rose, but is not shown to be above the chance level (50 %)"),
]


@pytest.mark.parametrize(("outcome", "before", "after", "seeds", "reason"), REASONS)
def test_the_reason_of_an_ungraded_claim_has_its_direction(
    outcome: Outcome, before: float, after: float, seeds: int, reason: str
) -> None:
    claim = moved(outcome, before, after, seeds)
    assert claim.kind == "cannot tell"
    assert claim.evidence == f"{seeds} seeds x 40 items, paired; {reason}"


def test_too_few_seeds_are_no_fault_of_the_items() -> None:
    claims = [moved("loss", 2.0, 1.78, 3)]
    assert undecided_because(claims, 3) == "Nothing is judged with fewer than 5 seeds, and there were 3."
    assert undecided_because(claims, 8) == "1 of 1 claim cannot be decided by these items."
    assert undecided_because([moved("loss", 2.0, 1.78, 5)], 5) == ""
