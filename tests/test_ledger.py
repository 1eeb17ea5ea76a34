"""The ledger's numbers by hand, its memory, its size and its state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steer_world import json_round_trip

from mixwright.errors import InputError
from mixwright.estimates.intervals import effective_rollouts, wilson
from mixwright.records import GroupOutcome
from mixwright.steer.ledger import CellEvidence, Ledger, read_rewards
from mixwright.steer.pool import answer_key, make_pool


def small() -> Ledger:
    return Ledger(make_pool(["a1", "a2", "b1"], ["a", "a", "b"], [1, 1, None], ["1", "2", "1"]))


def test_cell_evidence_fades_with_new_rollouts():
    evidence = CellEvidence(1, memory=16)
    evidence.add(0, 0, 8, 8)
    evidence.add(0, 1, 0, 8)
    keep = math.exp(-0.5)
    assert evidence.wins[0] == pytest.approx(8 * keep)
    assert evidence.tries[0] == pytest.approx(8 * keep + 8)


def test_groups_of_one_step_fade_in_their_order():
    evidence = CellEvidence(2, memory=16)
    evidence.add(np.array([1, 0, 1]), 0, np.array([2.0, 8.0, 6.0]), np.full(3, 8.0))
    keep = math.exp(-0.5)  # the first group of the cell is older than the second by 8 rollouts
    assert evidence.wins.tolist() == pytest.approx([8, 2 * keep + 6])
    assert evidence.groups.tolist() == pytest.approx([1, keep + 1])
    assert evidence.squares.tolist() == pytest.approx([1, 0.25**2 * keep + 0.75**2])
    evidence.add(1, 1, 4, 8)
    assert evidence.squares[1] == pytest.approx((0.25**2 * keep + 0.75**2) * keep + 0.5**2)


def test_cell_evidence_is_worth_at_most_its_memory_about():
    evidence = CellEvidence(1, memory=128)
    for step in range(500):
        evidence.add(0, step, 4, 8)
    assert 128 < evidence.tries[0] < 128 + 8
    evidence.start(0, 0.25, 4096)
    assert (evidence.wins[0], evidence.tries[0]) == (32, 128)


def test_rollouts_of_one_prompt_count_for_what_they_are_worth():
    evidence = CellEvidence(3, memory=1e9)
    for step in range(400):
        evidence.add(0, step, 4, 8)  # every group half right: nothing lies between groups
        evidence.add(1, step, 8.0 * (step % 2), 8)  # all or nothing: a rollout says what its group says
    for _ in range(10):
        evidence.add(2, 0, 0, 8)
    for cell, worth in ((0, 3200), (1, 400)):
        low, high = evidence.interval(cell)
        assert effective_rollouts(0.5, float(low), float(high)) == pytest.approx(worth, rel=0.03)
    assert evidence.interval(2) == (0, pytest.approx(float(wilson(np.array(0.0), np.array(10.0))[1])))


def test_a_measured_interval_is_taken_over():
    low, high = (float(end) for end in wilson(np.array(0.3 * 77), np.array(77.0)))
    assert effective_rollouts(0.3, low, high) == pytest.approx(77)
    evidence = CellEvidence(1, memory=512)
    evidence.start(0, 0.3, 256, 77)
    got = evidence.interval(0)
    assert float(got[0]) == pytest.approx(low, abs=0.02)
    assert float(got[1]) == pytest.approx(high, abs=0.02)


def test_the_posterior_of_a_cell_that_is_not_drawn_widens():
    ledger = small()
    ledger.add(0, 0, 6, 8)
    ledger.add(2, 20, 0, 8)  # another cell: only time passes for the first
    keep = 0.5 ** (20 / 40)
    assert ledger.recent.posterior(0) == (pytest.approx(1 + 6 * keep), pytest.approx(1 + 2 * keep))
    assert ledger.recent.mean(0) == pytest.approx(0.7)


def test_kappa_is_success_beyond_what_other_prompts_would_have_earned():
    ledger = small()
    assert ledger.kappa(np.array([0.25, 1.0, 0.0]), 0) == pytest.approx([0.25, 1, 0])  # nothing is known of S
    ledger.answers.start(0, 0.25, None)
    assert ledger.kappa(np.array([0.25, 1.0, 0.0]), 0) == pytest.approx([0, 1, -1 / 3])
    assert ledger.kappa(np.array([0.5, 0.5]), np.array([0, 1])) == pytest.approx([1 / 3, 0.5])


def test_size_per_example():
    ledger = Ledger(make_pool([str(i) for i in range(1000)], ["t"] * 1000))
    kept = [value for value in vars(ledger).values() if isinstance(value, np.ndarray) and value.base is None]
    assert sum(array.nbytes for array in kept) / 1000 == pytest.approx(8, abs=0.1)
    assert ledger.pool.task_of.nbytes + ledger.pool.cell_of.nbytes == 8000


def test_members_of_tasks_and_cells():
    pool = make_pool(["x", "y", "z", "w"], ["b", "a", "b", "a"], [2, 1, 1, 1])
    ledger = Ledger(pool)
    assert ledger.task_members(0).tolist() == [1, 3]
    assert sorted(ledger.task_members(1).tolist()) == [0, 2]
    assert [cell.key for cell in pool.cells] == ["a@1", "b@1", "b@2"]
    assert ledger.sizes.tolist() == [2, 1, 1]
    drawn = ledger.random_members(np.array([0, 2]), 50, np.random.default_rng(0))
    assert [set(row) for row in drawn.tolist()] == [{1, 3}, {0}]
    assert ledger.task_cells(1).tolist() == [1, 2]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.floats(0, 8, width=32)), max_size=30), st.data())
def test_state_round_trip_is_exact(tape, data):
    one, other, step = small(), small(), 0
    cut = data.draw(st.integers(0, len(tape)))
    for place, (index, gap, wins) in enumerate(tape):
        step += gap
        if place == cut:
            other.restore(json_round_trip(one.state()))
        for ledger in (one, other) if place >= cut else (one,):
            ledger.mark_drawn(index)
            ledger.add(index, step, wins, 8)
    if cut < len(tape):
        assert one.state() == other.state()


def test_gold_answers_are_kept_as_what_answers_are_compared_by():
    pool = make_pool(["a", "b", "c"], ["t"] * 3, answers=["#### 1,000", None, 7])
    assert pool.golds is not None
    assert pool.golds.tolist() == [answer_key("1000"), 0, answer_key("7")]
    assert make_pool(["a", "b"], ["t"] * 2).golds is None


def test_many_levels_are_binned_with_a_warning(caplog):
    pool = make_pool([str(i) for i in range(200)], ["t"] * 200, [i / 7 for i in range(200)])
    assert len(pool.cells) == 8
    assert {cell.count for cell in pool.cells} == {25}
    assert "task t: 200 different levels were grouped into 8 bins" in caplog.text


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (([], []), "at least 1"),
        ((["a", "a"], ["t", "t"]), "'a' more than once"),
        ((["a", "b"], ["t"]), "one length"),
        ((["a"], ["t"], [math.nan]), "finite level of example 'a'"),
        ((["a", "b"], ["t", "t"], [1000001.0, 1000002.0]), "more than one task and level"),
        ((["a", "b"], ["t@1", "t"], [None, 1.0]), "'t@1' for more than one task"),
    ],
)
def test_wrong_columns_are_refused(columns, told):
    with pytest.raises(InputError, match=told):
        make_pool(*columns)


@pytest.mark.parametrize("rewards", [(), (1.0, float("nan")), (float("inf"), 0.0)])
def test_rewards_that_would_poison_the_evidence_are_refused(rewards):
    groups = [GroupOutcome("y", "a", None, 0, (1.0, 0.0)), GroupOutcome("x", "a", None, 0, rewards)]
    with pytest.raises(InputError, match="'x'"):
        read_rewards(groups, (0.0, 1.0))
