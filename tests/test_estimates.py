import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mixwright.measure._estimates import (
    above_luck,
    above_luck_interval,
    clustered_share,
    jackknife,
    pass_at_k,
    rate,
    wilson,
)
from mixwright.records import Interval


@pytest.mark.parametrize(
    ("n", "correct", "k", "expected"),
    [(8, 2, 1, 0.25), (4, 1, 2, 0.5), (5, 2, 3, 0.9), (8, 0, 8, 0.0), (8, 1, 8, 1.0), (3, 3, 1, 1.0)],
)
def test_pass_at_k_by_hand(n, correct, k, expected):
    assert pass_at_k(n, correct, k) == pytest.approx(expected)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(n, data):
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([1] * correct + [0] * (n - correct), k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@pytest.mark.parametrize(("n", "correct", "k"), [(4, 5, 1), (4, 1, 5), (4, 1, 0), (4, -1, 1)])
def test_pass_at_k_refuses_what_cannot_be_estimated(n, correct, k):
    with pytest.raises(ValueError, match="cannot be estimated"):
        pass_at_k(n, correct, k)


@pytest.mark.parametrize(
    ("share", "n", "low", "high"), [(0.5, 10, 0.2366, 0.7634), (0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0)]
)
def test_wilson_by_hand(share, n, low, high):
    assert wilson(share, n) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 300), st.data())
def test_wilson_agrees_with_scipy(n, data):
    successes = data.draw(st.integers(0, n))
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes / n, n) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_wilson_without_trials_says_nothing():
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_one_sample_per_item_is_wilson():
    values = np.array([1.0, 0, 0, 1, 0, 0, 0, 0])
    estimate = clustered_share(values, 1)
    assert (estimate.low, estimate.high) == wilson(0.25, 8)
    assert estimate.n == 8


def test_alike_samples_count_as_one_and_unanimous_cells_as_their_items():
    alike = clustered_share(np.array([1.0] * 16 + [0.0] * 16), 8)
    assert (alike.low, alike.high) == pytest.approx(wilson(0.5, 32), abs=0.005)
    assert clustered_share(np.zeros(32), 8) == Interval(0.0, *wilson(0.0, 32), n=256)


def test_samples_that_differ_within_items_narrow_the_interval():
    mixed = clustered_share(np.full(32, 0.5), 8)
    assert mixed.high - mixed.low < 0.6 * (wilson(0.5, 32)[1] - wilson(0.5, 32)[0])
    assert (mixed.low, mixed.high) == wilson(0.5, 256)


@pytest.mark.parametrize(("mean", "rho"), [(0.05, 0.0), (0.1, 0.8), (0.3, 0.4), (0.9, 0.15)])
def test_clustered_interval_covers_the_truth(mean, rho):
    rng = np.random.default_rng(5)
    size = 1 / rho - 1 if rho else 0
    hits = 0
    for _ in range(400):
        chances = rng.beta(mean * size, (1 - mean) * size, 24) if rho else np.full(24, mean)
        estimate = clustered_share(rng.binomial(8, chances) / 8, 8)
        hits += estimate.low <= mean <= estimate.high
    assert hits / 400 >= 0.93


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40))
def test_clustered_interval_holds_its_value(successes):
    estimate = clustered_share(np.array(successes) / 8, 8)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_clustered_share_refuses_no_items():
    with pytest.raises(ValueError, match="no items"):
        clustered_share(np.zeros(0), 8)


def test_above_luck_by_hand():
    assert above_luck(0.75, 0.5) == pytest.approx(0.5)
    assert above_luck(0.3, 0.4) == pytest.approx(-1 / 6)
    assert above_luck(0.0, 0.9) == -1.0
    assert above_luck(1.0, 1.0) == 0.0
    assert above_luck_interval(Interval(0.75, 0.5, 1.0, 9), 0.5) == Interval(0.5, 0.0, 1.0, 9)
    assert above_luck_interval(Interval(1.0, 0.9, 1.0, 9), 1.0) == Interval(0.0, -1.0, 1.0, 9)


def test_rate_weighs_by_counts_and_equals_the_t_interval_for_equal_counts():
    estimate = rate(np.array([2.0, 9.0, 0.0]), np.array([1.0, 3.0, 0.0]))
    assert estimate is not None
    assert (estimate.value, estimate.n) == (pytest.approx(11 / 4), 4)
    values = np.array([0.3, 0.9, 0.4, 0.7])
    equal = rate(values * 5, np.full(4, 5.0))
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert equal is not None
    assert (equal.low, equal.high) == pytest.approx((low, high))
    assert rate(np.array([1.0]), np.array([2.0])) is None


def test_jackknife_of_a_mean_is_the_t_interval():
    values = np.array([0.3, 0.9, 0.4, 0.7])
    parts = np.stack([values, np.ones(4)], 1)
    estimate = jackknife(parts, lambda total: total[0] / total[1])
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert estimate is not None
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx((low, values.mean(), high))
    assert jackknife(parts[:1], lambda total: math.nan) is None
