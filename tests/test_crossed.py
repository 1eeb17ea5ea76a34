"""Seeds x items: against an independent two-way analysis of variance, coverage by simulation, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mixwright.estimates.crossed import Estimate, estimate_crossed


def world(rng: np.random.Generator, seeds: int, items: int, of_seeds: float, of_items: float, of_rest: float = 0.3):
    parts = rng.normal(0, of_seeds, (seeds, 1)), rng.normal(0, of_items, (1, items)), rng.normal(0, of_rest, (seeds, items))
    return sum(parts)


def two_way(values: np.ndarray) -> tuple[float, float, float]:
    """Variances of the mean by mean squares, in loops: of seeds, of items, of the rest."""
    seeds, items = values.shape
    mean = values.mean()
    of_seeds = sum((values[s].mean() - mean) ** 2 for s in range(seeds)) / (seeds - 1) / seeds
    of_items = sum((values[:, i].mean() - mean) ** 2 for i in range(items)) / (items - 1) / items
    left = [values[s, i] - values[s].mean() - values[:, i].mean() + mean for s in range(seeds) for i in range(items)]
    return of_seeds, of_items, sum(x * x for x in left) / (seeds - 1) / (items - 1) / seeds / items


@pytest.mark.parametrize("spread", [(0.5, 0.5), (0.5, 0.0), (0.0, 0.5), (0.02, 0.02)])
def test_the_variance_is_that_of_both_and_never_less_than_either(spread):
    values = 100 * world(np.random.default_rng(0), 6, 40, *spread)  # large against the pseudo-items
    of_seeds, of_items, of_rest = two_way(values)
    found = estimate_crossed(values, [0] * 40)
    expected = max(of_seeds + of_items - of_rest, of_seeds, of_items)
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(np.sqrt(expected), rel=0.02)
    assert (found.seeds, found.items) == (6, 40)


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(2, 20))
def test_an_estimate_is_consistent_with_itself(seed, seeds, items):
    rng = np.random.default_rng(seed)
    values = rng.integers(-1, 2, (seeds, items)).astype(float)
    weights = rng.random(items) + 0.1
    found = estimate_crossed(values, rng.integers(0, 3, items), weights / weights.sum())
    assert found.value == pytest.approx(float((values @ weights).mean() / weights.sum()))
    assert found.low <= found.value <= found.high
    assert found.error > 0
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.value) / found.error, found.df), abs=1e-5)
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_seeds_and_items_that_are_added_narrow_it():
    rng = np.random.default_rng(1)
    values = world(rng, 8, 200, 0.1, 0.3)
    wide = [estimate_crossed(part, [0] * part.shape[1]).error for part in (values[:, :50], values)]
    assert wide[0] > 1.4 * wide[1]
    mostly_seeds = world(rng, 16, 100, 0.5, 0.1)
    assert estimate_crossed(mostly_seeds[:4], [0] * 100).error > 1.2 * estimate_crossed(mostly_seeds, [0] * 100).error


def test_differences_between_cells_are_no_error_and_weights_count():
    values = np.array([[0.0] * 50 + [1.0] * 50] * 5)
    apart = estimate_crossed(values, [0] * 50 + [1] * 50)
    assert apart.value == pytest.approx(0.5)
    assert apart.error < 0.5 * estimate_crossed(values, [0] * 100).error
    third = np.r_[np.full(50, 0.25 / 50), np.full(50, 0.75 / 50)]
    assert estimate_crossed(values, [0] * 50 + [1] * 50, third).value == pytest.approx(0.75)


def test_where_nothing_differs_the_interval_keeps_a_width():
    for items in (1, 5, 40):
        found = estimate_crossed(np.zeros((8, items)), [0] * items)
        assert found.low < 0 < found.high
        assert found.p == pytest.approx(1)


@pytest.mark.parametrize(
    ("seeds", "of_seeds", "of_items"), [(5, 0.0, 0.0), (5, 0.1, 0.0), (5, 0.0, 0.3), (8, 0.1, 0.3), (16, 0.05, 0.1)]
)
def test_it_covers_for_new_seeds_and_new_items(seeds, of_seeds, of_items):
    rng, within = np.random.default_rng(7), 0
    for _ in range(400):
        found = estimate_crossed(world(rng, seeds, 40, of_seeds, of_items), [0] * 40)
        within += found.low <= 0 <= found.high
    assert within / 400 > 0.92


def test_the_detectable_effect_is_seen_in_four_trials_of_five():
    known = Estimate(0.0, 0.0, 0.0, 1.0, 0.02, 9.0, 8, 100)
    rng = np.random.default_rng(0)
    t = (known.detectable() + 0.02 * rng.standard_normal(20000)) / (0.02 * np.sqrt(rng.chisquare(9, 20000) / 9))
    assert np.mean(t > stats.t.ppf(0.975, 9)) == pytest.approx(0.8, abs=0.03)


def test_one_seed_is_a_before_and_after_over_items():
    values = np.random.default_rng(0).normal(0.2, 50, 30)
    found = estimate_crossed(values, [0] * 30)
    assert (found.seeds, found.items, found.interval.n) == (1, 30, 30)
    assert found.error == pytest.approx(stats.sem(values), rel=0.01)
    assert estimate_crossed(np.stack([values, values]), [0] * 30).interval.n == 2


def test_one_reading_claims_nothing() -> None:
    """Of a share Wilson's width stands in for its spread; a loss has no largest change, so there is no interval."""
    share, loss = estimate_crossed(np.array([0.5]), [0]), estimate_crossed(np.array([0.5]), [0], counted=False)
    assert share.low < -0.9
    assert (loss.value, loss.low, loss.high, loss.p) == (0.5, 0.5, 0.5, 1.0)
    assert estimate_crossed(np.array([0.5, 0.5]), [0, 0], counted=False).p == 0.0, "two that agree are evidence"


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_to_compare_is_refused(shape):
    with pytest.raises(ValueError, match="no seeds or no items"):
        estimate_crossed(np.zeros(shape), [])


def test_the_detectable_effect_by_hand() -> None:
    # two-sided 5 %, seen in four of five: 2.262157 + 0.883404 standard errors at 9 degrees of freedom
    known = Estimate(0.0, 0.0, 0.0, 1.0, 0.02, 9.0, 8, 100)
    assert known.detectable() == pytest.approx(0.02 * (stats.t.ppf(0.975, 9) + stats.t.ppf(0.8, 9)), rel=1e-6)
    assert known.detectable(5) == pytest.approx(0.02 * (stats.t.ppf(0.995, 9) + stats.t.ppf(0.8, 9)), rel=1e-6)


def test_degrees_of_freedom_by_hand() -> None:
    values = np.random.default_rng(0).normal(0, 1, 12)
    assert estimate_crossed(values, [0] * 12).df == 11
    # strata of 2 and 10 items, weighted alike; Z squared, times the size of a move, is shared out by their sizes
    strata, weights = [0] * 2 + [1] * 10, np.repeat([1 / 4, 1 / 20], [2, 10])
    squares = [((values[:2] - values[:2].mean()) ** 2).sum(), ((values[2:] - values[2:].mean()) ** 2).sum()]
    added = 1.959964**2 * min(1, (1.959964**2 + (values**2).sum()) / (1.959964**2 + 12))
    small = 2 / 16 * (squares[0] + added * 2 / 12) / 1
    large = 10 / 400 * (squares[1] + added * 10 / 12) / 9
    found = estimate_crossed(values, strata, weights)
    assert found.error == pytest.approx(np.sqrt(small + large))
    assert found.df == pytest.approx((small + large) ** 2 / (small**2 / 1 + large**2 / 9), abs=1e-3)


def test_answers_that_turn_keep_their_squares_and_shares_get_those_of_their_moves() -> None:
    z, greedy = 1.959964**2, np.r_[np.ones(3), -np.ones(4), np.zeros(93)]
    found = estimate_crossed(greedy, [0] * 100)
    assert found.error == pytest.approx(np.sqrt((7 - 0.01**2 * 100 + z) / 99 / 100), abs=1e-12)
    shares = estimate_crossed(greedy / 8, [0] * 100)  # each move is 1/8: 7 of them beside Z squared whole ones
    size = (z + 7 / 64) / (z + 7)
    assert shares.error == pytest.approx(np.sqrt(((7 - 0.01**2 * 100) / 64 + z * size) / 99 / 100), abs=1e-12)
    assert estimate_crossed(np.zeros(100), [0] * 100).error == pytest.approx(np.sqrt(z / 99 / 100))
    parts = estimate_crossed(greedy * 0.9 - 0.01, [0] * 100, moves=greedy)  # a part takes those of success
    assert parts.error == pytest.approx(np.sqrt((0.81 * (7 - 0.01**2 * 100) + z) / 99 / 100), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 6])
def test_rare_changes_and_samples_are_covered(seeds: int) -> None:
    """1 item in 100 turns in every seed, of all its samples; and 8 samples that differ, where nothing changed."""
    rng, within = np.random.default_rng(seeds), np.zeros(2)
    for _ in range(400):
        turned = np.tile((rng.random(400) < 0.01).astype(float), (seeds, 1))
        chance = rng.beta(0.4, 0.4, 400)
        drawn = (rng.binomial(8, chance, (seeds, 400)) - rng.binomial(8, chance, (seeds, 400))) / 8
        for place, (values, truth) in enumerate(((turned, 0.01), (drawn, 0.0))):
            found = estimate_crossed(values, np.arange(400) % 8)
            within[place] += found.low <= truth <= found.high
    assert within.min() / 400 >= 0.93
