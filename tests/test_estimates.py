import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mixwright.estimates.intervals import (
    clustered_share,
    effective_rollouts,
    holm,
    jackknife,
    mean_interval,
    pass_at_k,
    rate,
    share_interval,
    t_quantile,
    t_tail,
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
    assert wilson(share * n, n) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 300), st.data())
def test_wilson_agrees_with_scipy(n, data):
    successes = data.draw(st.integers(0, n))
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-6)
    told = share_interval(successes, n)
    assert (told.value, told.n) == (successes / n, n)
    assert told.low <= told.value <= told.high


def test_wilson_without_trials_says_nothing():
    assert wilson(0.0, 0) == (0.0, 1.0)
    assert share_interval(0, 0) == Interval(0.0, 0.0, 1.0, 0)


def test_wilson_of_arrays_and_of_one_sided_ends():
    low, high = wilson(np.array([8.0, 0.0, 1.5]), np.array([10.0, 0.0, 3.0]))
    assert [(float(a), float(b)) for a, b in zip(low, high, strict=True)] == [wilson(8, 10), wilson(0, 0), wilson(1.5, 3)]
    expected = stats.binomtest(8, 10).proportion_ci(0.90, method="wilson")  # 5 % on each side
    assert wilson(8, 10, 1.6448536) == pytest.approx((expected.low, expected.high), abs=1e-6)


@given(st.floats(0, 1), st.floats(0.5, 1e5))
def test_effective_rollouts_are_those_of_the_interval(success, n):
    low, high = wilson(success * n, n)
    assert effective_rollouts(success, float(low), float(high)) == pytest.approx(n, rel=1e-6)


@pytest.mark.parametrize("success", [0.02, 0.1, 0.3, 0.5, 0.77, 0.95])
def test_effective_rollouts_of_very_narrow_intervals_lose_no_digits(success):
    low, high = wilson(success * 5e6, 5e6)
    assert effective_rollouts(success, float(low), float(high)) == pytest.approx(5e6, rel=1e-11)


def test_intervals_that_no_number_of_rollouts_has_are_worth_little_or_much():
    assert effective_rollouts(0.5, 0.0, 1.0) == pytest.approx(0.0, abs=0.01)
    assert effective_rollouts(0.5, 0.5, 0.5) == 1e7


def test_one_sample_per_item_is_wilson():
    values = np.array([1.0, 0, 0, 1, 0, 0, 0, 0])
    estimate = clustered_share(values, 1)
    assert (estimate.low, estimate.high) == wilson(2, 8)
    assert estimate.n == 8


def test_alike_samples_count_as_one_and_unanimous_cells_as_their_items():
    alike = clustered_share(np.array([1.0] * 16 + [0.0] * 16), 8)
    assert (alike.low, alike.high) == pytest.approx(wilson(16, 32), abs=0.005)
    assert clustered_share(np.zeros(32), 8) == Interval(0.0, *map(float, wilson(0.0, 32)), n=256)


def test_samples_that_differ_within_items_narrow_the_interval():
    mixed = clustered_share(np.full(32, 0.5), 8)
    assert mixed.high - mixed.low < 0.6 * (wilson(16, 32)[1] - wilson(16, 32)[0])
    assert (mixed.low, mixed.high) == wilson(128, 256)


def test_clustered_share_by_hand():
    # mean 1/2, spread 1/4, evidence 4 * 4 / 4 = 4, variance of the items 1/6: rho = (4 * 4/6 + 2) / (4 + 2) = 7/9
    found = clustered_share(np.array([0.0, 0.5, 0.5, 1.0]), 4)
    assert (found.low, found.high) == pytest.approx(wilson(18 / 7, 36 / 7))


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


def test_mean_interval_is_the_t_interval_within_its_bound():
    values = np.array([0.3, 0.9, 0.4, 0.7])
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    found = mean_interval(values)
    assert (found.low, found.value, found.high, found.n) == pytest.approx((low, values.mean(), high, 4))
    assert mean_interval(np.array([-0.9, 0.9]), bound=1.0) == Interval(0.0, -1.0, 1.0, 2)
    assert mean_interval(np.array([0.5]), bound=1.0) == Interval(0.5, -1.0, 1.0, 1)
    assert mean_interval(np.zeros(0)) == Interval(0.0, -math.inf, math.inf, 0)


@given(st.floats(-60, 60), st.floats(1, 300))
def test_tails_of_student_s_t_agree_with_scipy(t, df):
    assert t_tail(t, df) == pytest.approx(2 * stats.t.sf(abs(t), df), abs=1e-6)


@pytest.mark.parametrize(("df", "confidence"), [(1, 0.95), (4, 0.95), (4.7, 0.6), (200, 0.99), (1e6, 0.95)])
def test_quantiles_of_student_s_t_agree_with_scipy(df, confidence):
    assert t_quantile(df, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, df), rel=1e-5)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.4]) == pytest.approx([0.9, 0.8])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
