"""What a trial damages, under every arm that trained: who spares it by hand, the sentence, and the table on the page."""

from __future__ import annotations

import pytest

from mixwright.records import ChangeWord, Claim, ClaimKind, Interval
from mixwright.verdict.rules.recommendation import Contrast, TrialBasis, recommend
from mixwright.verdict.rules.spared import collect_changes, excludes_loss, format_spared

ARITHMETIC = {"steered": (-0.058, -0.085, -0.030), "equal_shares": (-0.056, -0.095, -0.016), "uniform": (-0.20, -0.46, 0.06)}
"""Of a trial: two arms lose the same, and one is too noisy for its loss to count as shown."""


def claim(task: str, arm: str, ends: tuple[float, float, float], kind: ClaimKind = "cannot tell") -> Claim:
    return Claim(kind, task, None, 0.9, 0.9 + ends[0], Interval(*ends, 8), "8 seeds", arm)


def trial(*tasks: tuple[str, dict[str, tuple[float, float, float]]], **fields) -> TrialBasis:
    """A lever that helps, and damages each of these tasks."""
    claims = [
        claim(task, arm, ends, "damaged" if arm == "steered" else "cannot tell")
        for task, moved in tasks
        for arm, ends in moved.items()
    ]
    word: ChangeWord = "improves"
    found = tuple(
        Contrast("steered", other, word, Interval(0.1, 0.06, 0.14, 8)) for other in ("frozen", "uniform", "equal_shares")
    )
    known = {"seeds": 8, "right": True, "trained": ("uniform", "equal_shares", "steered"), "contrasts": found}
    damaged = {"steered": tuple(c for c in claims if c.kind == "damaged")}
    known |= {"lever": "steered", "word": "helps", "damaged": damaged, "changes": collect_changes(claims, known["trained"])}
    return TrialBasis(**known | fields)


@pytest.mark.parametrize(
    ("ends", "spared"),
    [
        ((-0.056, -0.095, -0.016), False),  # a loss like the plan's
        ((-0.20, -0.46, 0.06), False),  # only too noisy
        ((-0.01, -0.049, 0.03), True),
        ((-0.02, -0.05, 0.01), False),  # the margin itself is not excluded
        ((0.1, 0.05, 0.15), True),
        ((0.0, 0.0, 0.0), True),
    ],
)
def test_an_arm_spares_what_it_excludes_a_loss_of(ends: tuple[float, float, float], spared: bool) -> None:
    assert excludes_loss(claim("t", "uniform", ends), 0.05) == spared
    turned = (-ends[0], -ends[2], -ends[1])  # of an outcome that should fall
    assert excludes_loss(claim("t", "uniform", turned), 0.05, lower_is_better=True) == spared


def test_what_was_not_compared_is_not_spared() -> None:
    assert not excludes_loss(
        Claim("cannot tell", "t", None, 0.9, 0.9, Interval(0.0, 0.0, 0.0, 0), "not measured", "uniform"), 0.05
    )


def test_a_noisy_arm_is_not_said_to_spare_what_the_plan_loses() -> None:
    said = recommend(trial(("basic_arithmetic", ARITHMETIC))).sentence
    assert said.startswith(
        "Train with this plan only if a loss on task basic_arithmetic is acceptable (nothing else is shown to keep it): "
    )
    safe = ARITHMETIC | {"equal_shares": (0.01, -0.02, 0.04)}
    assert "(equal_shares kept it)" in recommend(trial(("basic_arithmetic", safe))).sentence
    every = safe | {"uniform": (0.0, -0.01, 0.01)}
    assert "(uniform and equal_shares kept it)" in recommend(trial(("basic_arithmetic", every))).sentence


def test_several_losses_are_told_apart() -> None:
    safe = ARITHMETIC | {"equal_shares": (0.01, -0.02, 0.04)}
    assert "(nothing else is shown to keep any of them)" in recommend(trial(("a", ARITHMETIC), ("b", ARITHMETIC))).sentence
    assert "(equal_shares kept each of them)" in recommend(trial(("a", safe), ("b", safe))).sentence
    both = recommend(trial(("a", ARITHMETIC), ("b", safe))).sentence
    assert "(nothing else is shown to keep task a; equal_shares kept task b)" in both


def test_without_another_arm_nothing_is_said_of_others() -> None:
    seen = trial(("a", {"steered": ARITHMETIC["steered"]}), trained=("steered",))
    assert "spare" not in recommend(seen).sentence
    assert format_spared({}, seen.changes, ["uniform"], 0.05) == ""
