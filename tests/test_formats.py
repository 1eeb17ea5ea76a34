"""Races of answer formats by hand: shares that are pushed by accuracy, which style is foretold, and their entropy."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright_lab.format_races import PUSH_NATS, foretell, normalised_entropy, projected_shares


def test_two_formats_cross_where_the_formula_says() -> None:
    when = math.log(0.62 / 0.28) / (PUSH_NATS * 0.34)
    before, at, after = (
        projected_shares([0.28, 0.62], [0.46, 0.12], PUSH_NATS * steps) for steps in (when - 1, when, when + 1)
    )
    assert before[0] < before[1]
    assert at == pytest.approx([0.5, 0.5])
    assert after[0] > after[1]


def test_one_step_by_hand() -> None:
    first, second = projected_shares([0.25, 0.75], [1.0, 0.0], math.log(3))  # 0.25 x 3 against 0.75 x 1
    assert (first, second) == pytest.approx((0.5, 0.5))


SHARES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6).filter(lambda shares: sum(shares) > 1e-3)


@given(SHARES, st.floats(0.0, 1000.0), st.randoms())
def test_shares_stay_shares(shares: list[float], pushed: float, random) -> None:
    accuracies = [random.random() for _ in shares]
    ends = projected_shares(shares, accuracies, pushed)
    assert sum(ends) == pytest.approx(1)
    assert all(0 <= end <= 1 for end in ends)
    assert all(end == 0 for share, end in zip(shares, ends, strict=True) if share == 0)
    total = sum(shares)
    assert projected_shares(shares, accuracies, 0.0) == pytest.approx([share / total for share in shares])
    assert projected_shares(shares, [0.3] * len(shares), pushed) == pytest.approx([share / total for share in shares])


@given(SHARES, st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.randoms())
def test_a_projection_goes_on_where_it_stopped(shares: list[float], one: float, two: float, random) -> None:
    accuracies = [random.random() for _ in shares]
    assert projected_shares(projected_shares(shares, accuracies, one), accuracies, two) == pytest.approx(
        projected_shares(shares, accuracies, one + two)
    )


def sampled(shares: dict[str, tuple[int, int]]) -> Any:
    """Samples of one problem: style -> how many, and how many of these are right."""
    styles = [style for style, (count, _) in shares.items() for _ in range(count)]
    rewards = [float(place < right) for count, right in shares.values() for place in range(count)]
    return SimpleNamespace(formats=[styles], rewards=np.array([rewards]))


def test_each_rule_names_its_winner() -> None:
    rolled = sampled({"full": (60, 12), "verbose": (30, 20), "direct": (10, 9)})
    assert foretell(rolled, 1) == {"race": "full", "share": "full", "accuracy": "direct", "share x accuracy": "verbose"}
    assert foretell(rolled, 200)["race"] == "direct"  # a long run ends with what is right most often


def test_nothing_is_foretold_without_a_choice() -> None:
    assert foretell(sampled({"full": (99, 10), "direct": (1, 1)}), 10) == {}
    few = {f"style {place}": (1, 1) for place in range(60)}
    assert foretell(sampled({"full": (30, 3), "direct": (10, 5), **few}), 10) == {}


def test_entropy_by_hand() -> None:
    shares = np.array([5, 2, 1]) / 8
    assert normalised_entropy(np.array([5.0, 2.0, 1.0])) == pytest.approx(-(shares * np.log(shares)).sum() / math.log(3))
    assert normalised_entropy(np.array([7.0])) == 0.0
    assert normalised_entropy(np.array([2.0, 2.0, 2.0])) == pytest.approx(1.0)
