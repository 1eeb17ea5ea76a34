"""Answer formats: the race between two of them by hand, and gold formats that the model does not write."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.records import Measurement
from mixwright_lab.format_forecast import (
    PUSH_NATS,
    FormatShare,
    forecast_formats,
    formats_of,
    predict_winner,
    projected_shares,
    steps_to_cross,
)
from mixwright_lab.format_shares import OTHER_FORMS, measure_formats, normalised_entropy

# the forecast


def test_two_formats_cross_where_the_formula_says() -> None:
    minority, majority = FormatShare("a", 0.28, 0.46), FormatShare("b", 0.62, 0.12)
    when = steps_to_cross(minority, majority)
    assert when == pytest.approx(math.log(0.62 / 0.28) / (PUSH_NATS * 0.34))
    before, at, after = (
        projected_shares([0.28, 0.62], [0.46, 0.12], PUSH_NATS * steps) for steps in (when - 1, when, when + 1)
    )
    assert before[0] < before[1]
    assert at == pytest.approx([0.5, 0.5])
    assert after[0] > after[1]


def test_one_step_by_hand() -> None:
    first, second = projected_shares([0.25, 0.75], [1.0, 0.0], math.log(3))  # 0.25 x 3 against 0.75 x 1
    assert (first, second) == pytest.approx((0.5, 0.5))


def test_who_leads_or_does_not_gain_never_crosses() -> None:
    assert steps_to_cross(FormatShare("a", 0.6, 0.1), FormatShare("b", 0.4, 0.9)) == 0.0
    assert steps_to_cross(FormatShare("a", 0.4, 0.5), FormatShare("b", 0.6, 0.5)) == math.inf
    assert steps_to_cross(FormatShare("a", 0.4, 0.4), FormatShare("b", 0.6, 0.5)) == math.inf


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


def test_overlapping_ranges_are_undecided_and_ties_have_no_winner() -> None:
    clear = forecast_formats("t", [FormatShare("a", 0.3, 0.8, 0.01, 0.01), FormatShare("b", 0.7, 0.2, 0.01, 0.01)], 40)
    assert predict_winner(clear) == "a"
    assert [forecast.name for forecast in clear] == ["share:a", "share:b"]
    assert all(forecast.low <= forecast.expected <= forecast.high for forecast in clear)
    noisy = forecast_formats("t", [FormatShare("a", 0.3, 0.8, 0.1, 0.4), FormatShare("b", 0.7, 0.2, 0.1, 0.4)], 40)
    assert predict_winner(noisy) is None
    assert predict_winner(forecast_formats("t", [FormatShare("a", 0.5, 0.5), FormatShare("b", 0.5, 0.5)], 40)) is None
    assert (
        predict_winner(forecast_formats("t", [FormatShare(OTHER_FORMS, 0.9, 0.9), FormatShare("b", 0.1, 0.1)], 40)) is None
    )


def rows(task: str, forms: dict[str, tuple[float, float]], width: float = 0.01, null: float = 0.0) -> list[Measurement]:
    found = []
    for form, (share, accuracy) in forms.items():
        gold = null if form == "gold" else 0.0
        found.append(
            Measurement("formats", task, f"share:{form}", share, share - width, share + width, 512, "share", null=gold)
        )
        if share:
            numbers = (accuracy, accuracy - width, accuracy + width, 99)
            found.append(Measurement("formats", task, f"accuracy:{form}", *numbers, "share", null=accuracy * share))
    return found


def test_content_has_no_forecast() -> None:
    assert formats_of(rows("t", {"a": (0.2, 0.2), "b": (0.2, 0.6), OTHER_FORMS: (0.6, 0.3)})) == {}
    assert formats_of(rows("t", {"a": (1.0, 0.2)})) == {}
    signs = [replace(row, null=0.5) for row in rows("t", {"9": (0.7, 0.1), "-9": (0.3, 0.2)})]
    assert formats_of(signs) == {}  # the question decides
    assert set(formats_of(rows("t", {"a": (0.5, 0.2), "b": (0.4, 0.6), OTHER_FORMS: (0.1, 0.3)}))) == {"t"}


def test_the_gold_form_is_told_even_if_no_sample_has_it() -> None:
    forms = np.array([["x", "x"], ["x", "y"]], dtype=object)
    told = measure_formats("t", forms, np.zeros((2, 2)), Counter(gold=2), 5)
    named = {row.name: row for row in told}
    assert (named["share:gold"].value, named["share:gold"].null) == (0.0, 1.0)
    assert "accuracy:gold" not in named


def test_shares_accuracies_and_entropy_by_hand() -> None:
    forms = np.array([["9", "9", "= 9", "9 9"], ["9", "9", "= 9", "9"]], dtype=object)
    correct = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], dtype=float)
    told = {row.name: row for row in measure_formats("t", forms, correct, Counter({"9": 2}), 5)}
    share, accuracy = told["share:9"], told["accuracy:9"]
    assert (share.value, share.null, share.n) == (5 / 8, 1.0, 8)
    assert (accuracy.value, accuracy.null, accuracy.n) == (pytest.approx(3 / 5), pytest.approx(3 / 8), 5)
    shares = np.array([5, 2, 1]) / 8
    assert told["format_entropy"].value == pytest.approx(-(shares * np.log(shares)).sum() / math.log(3))
    assert normalised_entropy(np.array([7.0])) == 0.0
    assert normalised_entropy(np.array([2.0, 2.0, 2.0])) == pytest.approx(1.0)
