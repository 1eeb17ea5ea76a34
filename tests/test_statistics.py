import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.records import Interval
from mixwright.trial._statistics import match, noise_floor, paired_interval, race, t_quantile, verdict_word


def test_interval_by_hand():
    # mean .2, sd .1, n 4: t(3, .975) = 3.182446, half = 3.182446 * .1 / 2 with sd = sqrt(.02/3)
    interval = paired_interval([0.1, 0.2, 0.2, 0.3], bound=1)
    half = 3.182446 * math.sqrt(0.02 / 3) / 2
    assert interval.value == pytest.approx(0.2)
    assert (interval.low, interval.high) == (pytest.approx(0.2 - half, abs=1e-6), pytest.approx(0.2 + half, abs=1e-6))
    assert interval.n == 4


def test_interval_of_nothing_spans_everything():
    assert paired_interval([], bound=1) == Interval(0.0, -1, 1, 0)
    assert paired_interval([0.3], bound=1) == Interval(0.3, -1, 1, 1)
    assert paired_interval([0.9, -0.9], bound=1) == Interval(0.0, -1, 1, 2)  # cut at what a share can do


def test_t_quantiles_from_a_printed_table():
    assert [round(t_quantile(freedom), 3) for freedom in (1, 2, 4, 7)] == [12.706, 4.303, 2.776, 2.365]


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_the_interval_covers_95_percent_where_the_bootstrap_does_not(seeds):
    rng = np.random.default_rng(seeds)
    trials = rng.normal(0.1, 0.05, (2000, seeds))
    intervals = [paired_interval(row, bound=1e9) for row in trials.tolist()]
    covered = np.mean([interval.low <= 0.1 <= interval.high for interval in intervals])
    assert covered == pytest.approx(0.95, abs=0.015)  # 3 standard errors of 2000 trials
    resampled = trials[:500, rng.integers(0, seeds, (400, seeds))].mean(axis=2)
    low, high = np.quantile(resampled, [0.025, 0.975], axis=1)
    assert np.mean((low <= 0.1) & (high >= 0.1)) < 0.92


@pytest.mark.parametrize(("seeds", "bases"), [(5, 2), (8, 1), (6, 6)])
def test_identical_arms_stay_within_the_noise_floor_95_percent_of_the_time(seeds, bases):
    rng = np.random.default_rng(7)
    base_of = np.arange(seeds) % bases
    spread_of_bases = 0.0 if bases == seeds else 0.3  # with one base per seed the values given are gains
    inside = []
    for _ in range(2000):
        effects = rng.normal(0, spread_of_bases, bases)[base_of]
        one, two = effects + rng.normal(0, 0.04, (2, seeds))
        floor = noise_floor([one.tolist(), two.tolist()], [base_of.tolist()] * 2, pairs=seeds, bound=1e9)
        inside.append(abs(np.mean(one - two)) <= floor)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_noise_floor_by_hand():
    # base 0: 1, 3; base 1: 10, 10 -> squares 2, freedom 2, variance 1; t(2) = 4.302653; sqrt(2/4)
    floor = noise_floor([[1, 3, 10, 10]], [[0, 0, 1, 1]], pairs=4, bound=1e9)
    assert floor == pytest.approx(4.302653 * math.sqrt(0.5), abs=1e-5)
    assert noise_floor([[0.1]], [[0]], pairs=1, bound=1.0) == 1.0
    own = [0.0, 1.0, 2.0]  # one base per seed: the base effect stays in
    assert noise_floor([own], [[0, 1, 2]], pairs=3, bound=1e9) == noise_floor([own], [[0, 0, 0]], pairs=3, bound=1e9)


@pytest.mark.parametrize(
    ("low", "high", "n", "better", "word"),
    [
        (0.01, 0.2, 5, "higher", "helps"),
        (0.01, 0.2, 5, "lower", "harms"),
        (-0.2, -0.01, 8, "higher", "harms"),
        (-0.2, -0.01, 8, "lower", "helps"),
        (0.1, 0.2, 4, "higher", "inconclusive"),
        (-0.01, 0.01, 4, "higher", "inconclusive"),
        (-0.04, 0.05, 5, "higher", "no measurable effect"),
        (-0.04, 0.06, 5, "higher", "inconclusive"),
        (0.0, 0.0, 5, "lower", "no measurable effect"),
        (-1.0, 1.0, 0, "lower", "inconclusive"),
    ],
)
def test_words(low, high, n, better, word):
    assert verdict_word(Interval((low + high) / 2, low, high, n), better=better, margin=0.05) == word


def test_noise_earns_a_word_in_at_most_one_trial_in_twenty():
    rng = np.random.default_rng(3)
    words = [
        verdict_word(paired_interval(row, bound=1), better="higher", margin=0.05) for row in rng.normal(0, 0.1, (2000, 5))
    ]
    assert (words.count("helps") + words.count("harms")) / 2000 < 0.065


def test_pairs_are_matched_by_seed_and_count_what_is_missing():
    pairs = match({0: 10.0, 1: None, 2: 30.0, 5: 1.0}, {0: 15.0, 1: 20.0, 2: None, 9: 1.0})
    assert pairs.seeds == (0,)
    assert pairs.differences == (-5.0,)
    assert pairs.censored == 2


def test_race_counts_censored_runs():
    found = race([100, None, 300, None, 50, 50], [200, 100, None, None, 50, 90])
    assert (found.wins, found.losses, found.ties) == (3, 1, 2)
    assert found.difference.n == 4
    assert found.difference.value == pytest.approx(0.5)
    assert found.p_value == pytest.approx(10 / 16)  # two-sided: 2 * (4 + 1) / 16


def test_race_needs_six_wins_in_a_row():
    def word(n):
        return verdict_word(race([1.0] * n, [None] * n).difference, better="higher", margin=0.05)

    assert [word(4), word(5), word(6)] == ["inconclusive", "inconclusive", "helps"]
    assert race([None], [None]).difference == Interval(0.0, -1.0, 1.0, 0)
    # six fair coins stay within +-2/3 in 62 of 64 cases
    assert race([1.0] * 6, [None] * 6).floor == pytest.approx(2 / 3)


shares = st.floats(-1, 1, allow_nan=False)


@given(st.lists(shares, min_size=2, max_size=9))
def test_swapping_the_arms_mirrors_the_interval(differences):
    there = paired_interval(differences, bound=1)
    back = paired_interval([-d for d in differences], bound=1)
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert there.low - 1e-12 <= statistics.fmean(differences) <= there.high + 1e-12
    assert there.low >= -1
    assert there.high <= 1


@given(st.lists(st.tuples(st.none() | st.integers(1, 5), st.none() | st.integers(1, 5)), min_size=1, max_size=8))
def test_a_race_is_antisymmetric(pairs):
    arm, reference = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = race(arm, reference), race(reference, arm)
    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)
    assert there.wins + there.losses + there.ties == len(pairs)
    assert there.difference.low <= there.difference.value <= there.difference.high
