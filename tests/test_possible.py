"""Possible changes of a share: bounds by another library, coverage counted over all outcomes, and what must not move."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from _scores import scores
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.outcome import estimate_change
from mixwright.estimates.possible import within_possible
from mixwright.verdict.rules.cells import compare_cells
from mixwright.verdict.rules.gate import check_protected

CELL = ("t", 1.0)


def wilson(wins: float, tries: int) -> tuple[float, float]:
    """Two-sided 97.5 %: each end holds at 98.75 %."""
    found = stats.binomtest(int(wins), tries).proportion_ci(0.975, method="wilson")
    return found.low, found.high


def both(before: np.ndarray, after: np.ndarray, strata: np.ndarray | None = None) -> tuple[Estimate, Estimate]:
    """Without and with the bounds, each item counted the same."""
    items = before.shape[1]
    strata = np.zeros(items, dtype=np.int64) if strata is None else strata
    plain = estimate_crossed(after - before, strata)
    return plain, within_possible(plain, before, after, strata, np.full(items, 1 / items))


def test_no_more_is_lost_than_was_right() -> None:
    before, after = np.array([[1.0] * 3 + [0.0] * 7]), np.array([[0.0] * 2 + [1.0] * 2 + [0.0] * 6])
    plain, found = both(before, after)
    assert plain.low < -0.7
    assert found.low == pytest.approx(-wilson(3, 10)[1], abs=1e-5)  # 3 of 10: at most 64 points
    assert (found.value, found.error, found.p) == (plain.value, plain.error, plain.p)
    all_wrong = both(np.zeros((1, 6)), np.zeros((1, 6)))[1]  # 0 of 6 before and after
    assert (all_wrong.low, all_wrong.high) == pytest.approx((-wilson(0, 6)[1], wilson(0, 6)[1]), abs=1e-5)


def test_no_more_is_won_than_was_wrong() -> None:
    plain, found = both(np.ones((1, 8)), np.array([[0.0] + [1.0] * 7]))
    assert found.high == pytest.approx(min(1 - wilson(8, 8)[0], wilson(7, 8)[1], plain.high), abs=1e-5)
    assert found.high < plain.high


def test_each_cell_is_bounded_by_itself() -> None:
    # half of the items all right, half all wrong: only one half can lose
    before = np.array([[1.0] * 10 + [0.0] * 10])
    plain = Estimate(0.0, -0.9, 0.9, 1.0, 0.4, 18.0, 1, 20)
    strata = np.repeat([0, 1], 10)
    found = within_possible(plain, before, before, strata, np.full(20, 0.05))
    lost = (1 - wilson(10, 10)[0] + wilson(0, 10)[1]) / 2  # what is all right after has not lost much either
    assert (found.low, found.high) == pytest.approx((-lost, lost), abs=1e-5)


def test_seeds_that_differ_are_what_is_counted() -> None:
    before = np.zeros((5, 100))
    wide = Estimate(0.2, -0.5, 1.0, 0.4, 0.4, 4.0, 5, 100)
    one_seed_learnt = np.vstack([np.ones((1, 100)), np.zeros((4, 100))])
    found = within_possible(wide, before, one_seed_learnt, np.zeros(100, dtype=np.int64), np.full(100, 0.01))
    assert found.high == pytest.approx(wilson(1, 5)[1], abs=1e-5)  # not that of 20 in 100
    assert found.low == pytest.approx(-wilson(0, 100)[1], abs=1e-5)  # all seeds began alike


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 12))
def test_the_bounds_only_narrow_and_change_no_sign(seed: int, seeds: int, items: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = (rng.random((seeds, items)) ** rng.choice([0.2, 1, 5]) for _ in range(2))
    before, after = (np.round(values, rng.integers(0, 2)) for values in (before, after))
    plain, found = both(before, after, np.unique(rng.integers(0, 3, items), return_inverse=True)[1])
    assert plain.low <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= plain.high
    assert (found.low > 0, found.high < 0) == (plain.low > 0, plain.high < 0)
    assert found.low >= -1 - 1e-9
    assert found.high <= 1 + 1e-9


@pytest.mark.parametrize("items", [6, 8, 12])
def test_coverage_is_kept(items: int) -> None:
    """Every outcome of `items` items, weighed by its chance: no simulation noise."""
    tables = [t for t in itertools.product(range(items + 1), repeat=3) if sum(t) <= items]  # stay right, lost, won
    ends: list[list[tuple[float, float]]] = []
    for stay, lost, won in tables:
        rest = items - stay - lost - won
        before = np.array([[1.0] * (stay + lost) + [0.0] * (won + rest)])
        after = np.array([[1.0] * stay + [0.0] * lost + [1.0] * won + [0.0] * rest])
        ends.append([(found.low - 1e-9, found.high + 1e-9) for found in both(before, after)])
    low, high = np.moveaxis(np.array(ends), (0, 1), (2, 1))
    counts = np.array([(*table, items - sum(table)) for table in tables])
    grid = np.arange(0, 21, 2) / 20
    truths = [(s, lost, won) for s, lost, won in itertools.product(grid, repeat=3) if s + lost + won <= 1 + 1e-9]
    assert len(truths) > 200
    for stay, lost, won in truths:
        chances = stats.multinomial.pmf(counts, items, [stay, lost, won, max(1 - stay - lost - won, 0.0)])
        plain, cut = ((low <= won - lost) & (won - lost <= high)) @ chances
        assert cut >= min(0.94, plain - 1e-9), (stay, lost, won)


def test_claims_and_gate_read_the_bounds() -> None:
    before, after = [scores({CELL: [1] * 3 + [0] * 7})], [scores({CELL: [0] * 2 + [1] * 2 + [0] * 6})]
    found = estimate_change(before, after)
    assert found is not None
    assert found.estimate.low == pytest.approx(-wilson(3, 10)[1], abs=1e-5)
    assert found.sampled is not None
    assert found.sampled.low == found.estimate.low
    assert found.swapped.low < -0.4  # nothing bounds a change of S but the width that it has
    (claim,) = compare_cells((before, after), "greedy")
    assert claim.change is not None
    assert claim.change.estimate.low == found.estimate.low
    (cell,) = check_protected(before, after, [CELL]).cells
    assert cell.judged == found.estimate
