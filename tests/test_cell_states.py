"""The states of a cell in their order, the side of the band, and the soft weight of kappa: by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.estimates.cell_states import MIN_ROLLOUTS, classify, room_to_learn, side_of_band, state_of
from mixwright.estimates.dependence import kappa
from mixwright.estimates.intervals import wilson


@pytest.mark.parametrize(
    ("success", "n", "kappa_high", "p", "state"),
    [
        (0.97, 256, None, None, "mastered"),
        (0.97, 256, 0.01, 0.9, "mastered"),  # of a constant answer too: plain success comes first
        (0.93, 256, 0.5, 0.001, "reachable"),  # at least .90 one-sided is not shown
        (0.01, 256, 0.02, 0.4, "hopeless"),
        (0.0, 31, 0.0, 1.0, "unknown"),  # one rollout too few to say anything
        (0.0, 32, 0.0, 1.0, "hopeless"),  # 0 of 32: at most .078
        (0.08, 256, 0.05, 0.3, "lucky"),  # may be in the band: at most .113
        (0.33, 256, 0.099, 0.01, "lucky"),
        (0.33, 256, 0.1, 0.01, "reachable"),
        (0.33, 256, 0.1, 0.05, "unknown"),
        (0.33, 256, None, 0.049, "reachable"),  # no kappa, no luck
        (0.5, 256, None, None, "unknown"),
        (0.5, 16, 0.01, 0.001, "unknown"),
    ],
)
def test_states_in_their_order(success, n, kappa_high, p, state):
    low, high = (float(end) for end in wilson(success * n, n))
    assert classify(success, low, high, n, kappa_high=kappa_high, p=p) == state


def test_a_wide_interval_of_many_rollouts_is_worth_little():
    """Five hundred rollouts of a few prompts that are all alike say less than their number."""
    assert classify(0.0, *map(float, wilson(0.0, 10)), n=512) == "unknown"  # 0 of 10 prompts: at most .21
    assert classify(0.0, *map(float, wilson(0.0, 64)), n=512) == "hopeless"


def test_another_band_and_an_interval_without_its_value():
    low, high = (float(end) for end in wilson(100, 256))
    assert classify(100 / 256, low, high, 256, (0.5, 0.9)) == "hopeless"
    assert classify(100 / 256, low, high, 256, (0.1, 0.3)) == "mastered"
    assert classify(0.5, 0.6, 0.9, 256) == "unknown"


@given(st.sampled_from([-1, 0, 1]), st.integers(0, 100), st.none() | st.floats(0, 1), st.none() | st.floats(0, 1))
def test_plain_success_decides_first_and_thin_evidence_nothing(place, n, kappa_high, p):
    found = state_of(place, n, kappa_high=kappa_high, p=p)
    if n < MIN_ROLLOUTS:
        assert found == "unknown"
    elif place:
        assert found == ("mastered" if place > 0 else "hopeless")
    else:
        assert found == (
            "lucky"
            if (1 if kappa_high is None else kappa_high) < 0.1
            else "reachable"
            if (1 if p is None else p) < 0.05
            else "unknown"
        )


def test_sides_by_hand():
    # one-sided 95 %: 0 of 24 is at most 2.706 / 26.706 = .101, of 25 .098; 25 of 25 at least .902
    assert side_of_band(
        np.array([0.0, 0.0, 25.0, 24.0, 12.0]), np.array([24.0, 25.0, 25.0, 24.0, 24.0]), 0.1, 0.9
    ).tolist() == [
        0,
        -1,
        1,
        0,
        0,
    ]
    assert int(side_of_band(0.0, 0.0, 0.1, 0.9)) == 0
    assert int(side_of_band(8.0, 16.0, 0.1, 0.9, z=0.0)) == 0


def test_room_is_weighed_by_kappa_softly():
    assert kappa(np.array([0.65, 0.3, 0.1, 1.0]), np.array([0.3, 0.3, 0.3, 0.3])) == pytest.approx([0.5, 0, -2 / 7, 1])
    assert kappa(0.0, 0.9) == -1
    assert kappa(1.0, 1.0) == 0
    assert room_to_learn(np.array([0.65, 0.3, 0.1, 1.0]), 0.3) == pytest.approx([1, 0, 0, 0])
    assert room_to_learn(0.2, 0.0) == pytest.approx(4 * 0.2 * 0.8)
    shares = room_to_learn(np.linspace(0.3, 0.4, 11), 0.3)
    assert np.diff(shares).min() > 0  # no cut: a little more evidence of skill is a little more weight
    assert np.diff(shares).max() < 0.06
