"""What a trial damages, under every arm that trained: who spares it by hand, the sentence, and the table on the page."""

from __future__ import annotations

import pytest
from verdicts import cell

from mixwright.records import Effect, Interval
from mixwright.verdict.rules.cells import CellChange
from mixwright.verdict.rules.trial import TrialBasis, advise, excludes_loss, format_spared, say_advice

ARITHMETIC = {"steered": (-0.058, -0.085, -0.030), "equal_shares": (-0.056, -0.095, -0.016), "uniform": (-0.20, -0.46, 0.06)}
"""Of a trial: two arms lose the same, and one is too noisy for its loss to count as shown."""


def trial(*tasks: tuple[str, dict[str, tuple[float, float, float]]], **fields) -> TrialBasis:
    """A lever that helps, and damages each of these tasks."""
    changes: dict[str, list[CellChange]] = {}
    for task, moved in tasks:
        for arm, ends in moved.items():
            changes.setdefault(arm, []).append(cell(task, None, ends, "worsens" if arm == "steered" else "cannot tell"))
    found = tuple(
        Effect("steered", other, "success", Interval(0.1, 0.06, 0.14, 8), "improves")
        for other in ("frozen", "uniform", "equal_shares")
    )
    known = {"seeds": 8, "right": True, "trained": ("uniform", "equal_shares", "steered"), "contrasts": found}
    return TrialBasis(**known | {"lever": "steered", "word": "helps", "changes": changes} | fields)


def said(basis: TrialBasis) -> str:
    return say_advice(advise(basis), basis)


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
    assert excludes_loss(cell("t", None, ends), 0.05) == spared


def test_what_was_not_compared_is_not_spared() -> None:
    assert not excludes_loss(CellChange("t", None, False, None), 0.05)


def test_a_noisy_arm_is_not_said_to_spare_what_the_plan_loses() -> None:
    text = said(trial(("basic_arithmetic", ARITHMETIC)))
    assert text.startswith(
        "Train with this plan only if a loss on task basic_arithmetic is acceptable (nothing else is shown to keep it): "
    )
    safe = ARITHMETIC | {"equal_shares": (0.01, -0.02, 0.04)}
    assert "(equal_shares kept it)" in said(trial(("basic_arithmetic", safe)))
    every = safe | {"uniform": (0.0, -0.01, 0.01)}
    assert "(uniform and equal_shares kept it)" in said(trial(("basic_arithmetic", every)))


def test_several_losses_are_told_apart() -> None:
    safe = ARITHMETIC | {"equal_shares": (0.01, -0.02, 0.04)}
    assert "(nothing else is shown to keep any of them)" in said(trial(("a", ARITHMETIC), ("b", ARITHMETIC)))
    assert "(equal_shares kept each of them)" in said(trial(("a", safe), ("b", safe)))
    both = said(trial(("a", ARITHMETIC), ("b", safe)))
    assert "(nothing else is shown to keep task a; equal_shares kept task b)" in both


def test_without_another_arm_nothing_is_said_of_others() -> None:
    seen = trial(("a", {"steered": ARITHMETIC["steered"]}), trained=("steered",))
    assert "spare" not in said(seen)
    assert format_spared({}, trial(("a", ARITHMETIC))) == ""
