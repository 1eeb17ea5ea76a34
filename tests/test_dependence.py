"""S, dependence and kappa: by hand on four prompts, against a brute-force jackknife, and what learners without skill get."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.estimates.dependence import (
    dependence,
    dependence_of_items,
    dependence_of_margins,
    dependence_of_shifts,
    permutation_p,
    permutation_p_of_shifts,
)

FOUR = np.array(
    [
        [1.0, 1.0, 0.0, 0.0],  # the answer to the first prompt is also that of the second
        [1.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0],  # one of two samples right
        [0.5, 0.5, 0.0, 0.5],  # one right, the other the answer of the first two
    ]
)


def table(golds, answers) -> np.ndarray:
    """Answers of shape (prompts, samples) compared with all gold answers."""
    return (np.asarray(answers)[:, :, None] == np.asarray(golds)[None, None]).mean(axis=1)


def swapped_of(grades: np.ndarray) -> float:
    """Mean grade over all ordered pairs of different prompts, pair by pair."""
    n = len(grades)
    return float(np.mean([grades[i, j] for i in range(n) for j in range(n) if i != j]))


def without(grades: np.ndarray, item: int) -> np.ndarray:
    return np.delete(np.delete(grades, item, 0), item, 1)


def tables(least: int = 3):
    return (
        st.integers(least, 9)
        .flatmap(lambda n: st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n), min_size=n, max_size=n))
        .map(lambda rows: np.array(rows, dtype=float) / 4)
    )


def test_four_prompts_by_hand():
    found = dependence(FOUR)
    assert found.success == 3 / 4
    assert found.swapped.value == pytest.approx((1 + 1 + 0.5 + 0.5) / 12)
    assert found.dependence.value == pytest.approx(0.75 - 0.25)
    assert found.kappa.value == pytest.approx(0.5 / 0.75)
    # given on other prompts 1/3, 1/3, 0, 1/3; received 1/2, 1/2, 0, 0; pseudo-value .25 + 3 / 2 (given + received - .5)
    assert found.items == pytest.approx([0.25 + 1.5 / 3, 0.25 + 1.5 / 3, 0.25 - 1.5 / 2, 0.25 + 1.5 * (1 / 3 - 1 / 2)])


@given(tables())
def test_pseudo_values_are_those_of_the_jackknife(grades):
    n, found = len(grades), dependence(grades)
    whole = swapped_of(grades)
    if n > 3:
        left = np.array([n * whole - (n - 1) * swapped_of(without(grades, item)) for item in range(n)])
        assert found.items == pytest.approx(left, abs=1e-9)
    assert found.items.mean() == pytest.approx(found.swapped.value, abs=1e-9)
    assert found.swapped.value == pytest.approx(whole, abs=1e-9)
    assert found.success == pytest.approx(np.diagonal(grades).mean())
    assert found.dependence.value == pytest.approx(found.success - whole, abs=1e-9)


@given(tables())
def test_intervals_hold_their_values_and_stay_in_their_range(grades):
    found = dependence(grades)
    assert 0 <= found.swapped.low <= found.swapped.value <= found.swapped.high <= 1
    assert -1 <= found.dependence.low <= found.dependence.value + 1e-9 <= found.dependence.high + 2e-9 <= 1 + 3e-9
    assert -1 <= found.kappa.low <= found.kappa.value <= found.kappa.high <= 1


def test_pairs_left_out_are_left_out_of_the_means():
    grades = np.full((5, 5), np.nan)
    for row in range(5):
        for shift, value in ((0, 1.0), (1, 0.5), (3, 0.0)):
            grades[row, (row + shift) % 5] = value
    found = dependence(grades)
    assert (found.success, found.swapped.value) == (1.0, pytest.approx(0.25))


def test_few_prompts_are_refused():
    with pytest.raises(ValueError, match="three prompts"):
        dependence(np.ones((2, 2)))


GOLDS = {"majority 40 %": ["0"] * 40 + [str(i) for i in range(1, 61)], "ten alike": [str(i % 10) for i in range(100)]}


@pytest.mark.parametrize("golds", GOLDS.values(), ids=GOLDS)
@pytest.mark.parametrize("learner", ["constant", "coin", "coin per prompt"])
def test_a_learner_that_does_not_read_the_prompt_has_no_dependence(golds, learner):
    rng, values, highs = np.random.default_rng(0), [], []
    for _ in range(100):
        answers = np.full((100, 4), golds[0])
        if learner != "constant":
            answers = rng.choice(golds, (100, 4 if learner == "coin" else 1))
        found = dependence(table(golds, answers))
        values.append(found.dependence.value)
        highs.append(found.kappa.high)
    assert abs(np.mean(values)) < 0.01
    assert np.mean(np.array(highs) >= 0) >= 0.94  # the truth, no dependence, is within


@pytest.mark.parametrize("golds", GOLDS.values(), ids=GOLDS)
def test_a_perfect_learner_uses_all_the_room(golds):
    found = dependence(table(golds, np.array(golds)[:, None]))
    counts = np.unique(golds, return_counts=True)[1]
    assert found.swapped.value == pytest.approx((counts * (counts - 1)).sum() / (100 * 99))
    assert found.kappa.value == 1
    assert found.kappa.low > 0.9


def test_partial_skill_is_kappa_and_the_interval_covers_it():
    """It knows a third of the prompts and says "0", right in 40 %, to the others: success .6, and S .4 where it says "0"."""
    truth = (0.6 - 0.8 * 0.4) / (1 - 0.8 * 0.4)  # it says so to 2/3 that it does not know and to 40 % of the rest: .8
    rng, seen, within = np.random.default_rng(1), [], 0
    for _ in range(300):
        golds = np.where(rng.random(80) < 0.4, "0", rng.permutation(80).astype(str))
        known = rng.random(80) < 1 / 3
        found = dependence(table(golds, np.where(known, golds, "0")[:, None]))
        seen.append(found.kappa.value)
        within += found.kappa.low <= truth <= found.kappa.high
    assert np.mean(seen) == pytest.approx(truth, abs=0.02)
    assert within / 300 > 0.92


def test_where_every_answer_fits_every_prompt_nothing_can_be_seen():
    found = dependence(np.ones((6, 6)))
    assert (found.kappa.value, found.kappa.low, found.kappa.high) == (0, -1, 1)
    assert found.dependence.value == 0


def test_cells_are_put_together_by_their_pseudo_values():
    one, other = dependence(FOUR), dependence(np.eye(3))
    success = np.concatenate([np.diagonal(FOUR), np.ones(3)])
    both = dependence_of_items(success, np.concatenate([one.items, other.items]))
    assert both.success == pytest.approx((4 * one.success + 3) / 7)
    assert both.swapped.value == pytest.approx(4 * one.swapped.value / 7)
    assert both.dependence.value == pytest.approx((4 * one.dependence.value + 3 * other.dependence.value) / 7)


@given(tables())
def test_margins_say_all_that_the_table_says(grades):
    n = len(grades)
    own = np.diagonal(grades)
    margins = dependence_of_margins(own, (grades.sum(axis=1) - own) / (n - 1), (grades.sum(axis=0) - own) / (n - 1))
    found = dependence(grades)
    assert margins.items == pytest.approx(found.items, abs=1e-9)
    assert margins.kappa.value == pytest.approx(found.kappa.value, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_permutation_test_agrees_with_all_permutations(seed):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 3, (6, 6)) / 2
    observed = np.diagonal(grades).mean()
    every = [grades[np.arange(6), list(order)].mean() for order in permutations(range(6))]
    exact = np.mean([value >= observed - 1e-12 for value in every])
    assert permutation_p(grades, rng, 4000) == pytest.approx(exact, abs=0.03)


def test_the_permutation_test_holds_its_level_and_has_power():
    rng, blind, skilled = np.random.default_rng(2), [], []
    for _ in range(400):
        golds = np.where(rng.random(30) < 0.4, "0", rng.permutation(30).astype(str))
        guesses = np.where(rng.random(30) < 0.6, "0", rng.permutation(golds))
        blind.append(permutation_p(table(golds, guesses[:, None]), rng, 99))
        right = np.where(rng.random(30) < 0.3, golds, guesses)
        skilled.append(permutation_p(table(golds, right[:, None]), rng, 99))
    assert np.mean(np.array(blind) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(np.array(skilled) < 0.05) > 0.6


def test_the_permutation_test_uses_shifts_where_pairs_are_missing():
    grades = np.tile([0.5, 0.2, 0.5, 0.6], (8, 1))
    p = permutation_p_of_shifts(grades, np.array([0, 1, 2, 5]), np.random.default_rng(0))
    assert p == pytest.approx((1 + 2) / (1 + 3))
    assert permutation_p(np.ones((1, 1)), np.random.default_rng(0)) == 1


@pytest.mark.parametrize(("prompts", "count"), [(5, 5), (40, 40), (101, 65), (300, 65), (777, 9)])
def test_shifts_give_what_the_table_of_all_pairs_gives_to_the_bit(prompts, count):
    rng = np.random.default_rng(prompts)
    shifts = np.array([0, *np.sort(rng.permutation(np.arange(1, prompts))[: count - 1])])
    grades = rng.integers(0, 4, (prompts, count)) / 3
    table = np.full((prompts, prompts), np.nan)
    for place, shift in enumerate(shifts):
        table[np.arange(prompts), (np.arange(prompts) + shift) % prompts] = grades[:, place]
    found, whole = dependence_of_shifts(grades, shifts), dependence(table)
    assert (found.swapped, found.dependence, found.kappa) == (whole.swapped, whole.dependence, whole.kappa)
    assert found.items.tolist() == whole.items.tolist()
    if prompts == count:
        p = permutation_p_of_shifts(grades, shifts, np.random.default_rng(1))
        assert p == permutation_p(table, np.random.default_rng(1))
