"""How much a run's answers depend on their prompts, from the last groups alone: by hand, by simulation, and kept exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steer_world import json_round_trip

from mixwright.contracts import Pool
from mixwright.estimates.cell_states import LUCKY_KAPPA
from mixwright.estimates.dependence import dependence
from mixwright.records import GroupOutcome
from mixwright.steer.ledger import JUDGED_GROUPS, PRIOR_GROUPS, WINDOW_GROUPS, AnswerEvidence, Ledger, read_rewards
from mixwright.steer.pool import answer_key, make_pool

MAJORITY = ["0" if i % 10 < 3 else str(i) for i in range(200)]
"""Gold answers of which three in ten are "0"."""


def pool(golds=MAJORITY, cells=1) -> Pool:
    return make_pool([str(i) for i in range(len(golds))], [f"t{i % cells}" for i in range(len(golds))], answers=golds)


def group(here: Pool, index: int, answers, rewards=None, golds=MAJORITY) -> GroupOutcome:
    rewards = tuple(float(a == golds[index]) for a in answers) if rewards is None else rewards
    task = here.tasks[here.task_of[index]]
    return GroupOutcome(here.ids[index], task, None, 0, rewards, tuple(answers))


def learn(ledger: Ledger, groups, reward_range=(0.0, 1.0)) -> Ledger:
    groups = read_rewards(list(groups), reward_range)
    ledger.learn(groups, np.array([int(told.example) for told in groups]))
    return ledger


def constant(here: Pool, count=WINDOW_GROUPS, **changes):
    return [group(here, index, ("0",) * 4, **changes) for index in range(count)]


def skilled(here: Pool, share: float, count=WINDOW_GROUPS, seed=0):
    rng = np.random.default_rng(seed)
    return [group(here, i, tuple(MAJORITY[i] if win else "wrong" for win in rng.random(4) < share)) for i in range(count)]


def test_a_constant_answer_is_told_from_skill_once_there_are_enough_groups():
    here = pool()
    highs = [
        learn(Ledger(here), constant(here, count)).answers.kappa_high()[0] for count in (2, JUDGED_GROUPS - 1, WINDOW_GROUPS)
    ]
    assert highs[:2] == [1, 1]
    assert highs[2] < LUCKY_KAPPA
    for share in (0.3, 0.6):
        for seed in range(20):
            assert learn(Ledger(here), skilled(here, share, seed=seed)).answers.kappa_high()[0] > 2 * LUCKY_KAPPA


def test_s_is_that_of_the_whole_table_and_shrinks_to_nothing_without_groups():
    here, rng = pool(), np.random.default_rng(3)
    told = [group(here, i, tuple(rng.choice(["0", MAJORITY[i], "1"], 8))) for i in range(40)]
    table = np.array([[np.mean([answer == gold for answer in one.answers]) for gold in MAJORITY[:40]] for one in told])
    found = dependence(table)
    answers = learn(Ledger(here), told).answers
    assert answers.swapped()[0] == pytest.approx(found.swapped.value)
    assert answers.kappa_high()[0] == pytest.approx(found.kappa.high)
    few = learn(Ledger(here), told[:8]).answers  # nothing was measured before: eight groups and four without a hit
    assert few.swapped()[0] == pytest.approx(dependence(table[:8, :8]).swapped.value * 8 / 12)
    assert learn(Ledger(here), told[:2]).answers.swapped()[0] == 0


def test_what_was_measured_before_counts_sixteen_groups():
    here = pool()
    ledger = Ledger(here)
    ledger.answers.start(0, 0.6, 0.05)
    assert (ledger.answers.swapped()[0], ledger.answers.kappa_high()[0]) == (0.6, 0.05)
    learn(ledger, constant(here, 20))  # 6 of the 20 are "0": 6 * 5 + 14 * 6 of 20 * 19 ordered pairs
    assert PRIOR_GROUPS == 16
    assert ledger.answers.swapped()[0] == pytest.approx((20 * (6 * 5 + 14 * 6) / 380 + 16 * 0.6) / 36)
    assert ledger.answers.kappa_high()[0] == 0.05  # too few groups to say otherwise


def test_what_was_measured_stands_until_the_run_shows_dependence():
    here = pool(["0" if i % 10 < 7 else str(i) for i in range(200)])
    golds = ["0" if i % 10 < 7 else str(i) for i in range(200)]
    measured, bare = Ledger(here), Ledger(here)
    measured.answers.start(0, 0.7, 0.06)
    for ledger in (measured, bare):
        learn(ledger, constant(here, golds=golds))
    assert bare.answers.kappa_high()[0] > LUCKY_KAPPA  # 64 prompts cannot rule out .10 where S is .7
    assert measured.answers.kappa_high()[0] == 0.06
    learn(measured, [group(here, i, (golds[i],) * 4, golds=golds) for i in range(WINDOW_GROUPS)])
    assert measured.answers.kappa_high()[0] > 0.9


def test_answers_that_earn_nothing_anywhere_are_not_lucky():
    """They are too hard, and the first right ones must not be refused for what was wrong before them."""
    here = pool([str(i) for i in range(200)])
    ledger = Ledger(here)
    ledger.answers.start(0, 0.0, 0.01)
    assert ledger.answers.kappa_high()[0] == 1
    assert learn(ledger, constant(here, golds=[str(i) for i in range(200)])).answers.kappa_high()[0] == 1


@pytest.mark.parametrize("case", ["no gold answers", "partial rewards", "another grader", "answers not told"])
def test_nothing_is_lucky_without_evidence_of_it(case):
    here = pool([None] * 200) if case == "no gold answers" else pool()
    ledger = Ledger(here)
    if case == "no gold answers":
        ledger.answers.start(0, 0.4, 0.05)  # measured, but this run could not see it change
    groups = constant(here)
    if case == "partial rewards":
        groups[5] = group(here, 5, ("0",) * 4, (0.0, 0.0, 0.5, 0.0))
    if case == "another grader":  # one that takes every even row for right
        groups = [group(here, i, ("0",) * 4, (float(i % 2 == 0),) * 4) for i in range(WINDOW_GROUPS)]
    if case == "answers not told":
        groups = [group(here, i, ("0",), (0.0, 1.0)) for i in range(WINDOW_GROUPS)]
    assert learn(ledger, groups).answers.kappa_high()[0] == 1


def test_rewards_in_another_range_are_read_as_success():
    here = pool()
    groups = [group(here, i, ("0",) * 4, (1.0 if MAJORITY[i] == "0" else -1.0,) * 4) for i in range(WINDOW_GROUPS)]
    assert learn(Ledger(here), groups, (-1.0, 1.0)).answers.kappa_high()[0] < LUCKY_KAPPA


def test_a_prompt_that_comes_again_counts_once_with_its_last_answers():
    here = pool()
    again = learn(Ledger(here), skilled(here, 0.5) + constant(here))
    assert again.answers.kappa_high()[0] == learn(Ledger(here), constant(here)).answers.kappa_high()[0] < LUCKY_KAPPA
    assert learn(Ledger(here), constant(here, 1) * 100).answers.kappa_high()[0] == 1


def test_old_groups_leave_the_window_and_cells_are_apart():
    here = pool(cells=2)
    even, odd = ([i for i in range(200) if i % 2 == part] for part in (0, 1))
    ledger = learn(Ledger(here), [group(here, i, ("0",) * 4) for i in even[:36]])
    learn(ledger, [group(here, i, (MAJORITY[i],) * 4) for i in even[36:100]])  # all 64 of the window
    learn(ledger, [group(here, i, ("0",) * 4) for i in odd])
    assert ledger.answers.kappa_high()[0] == 1  # learnt: every answer is right
    assert ledger.answers.swapped()[0] > 0.1
    assert ledger.answers.kappa_high()[1] < LUCKY_KAPPA
    ledger.answers.forget(np.array([0]))
    assert (ledger.answers.swapped()[0], ledger.answers.kappa_high()[0]) == (0, 1)
    assert ledger.answers.swapped()[1] > 0.1


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 59), st.sampled_from(["0", "1", "7"]), st.integers(1, 3)), max_size=80), st.data())
def test_state_round_trip_is_exact(tape, data):
    here = pool(cells=2)
    one, cut = Ledger(here), data.draw(st.integers(0, len(tape)))
    one.answers.start(1, 0.25, 0.3)
    told = [group(here, index, (answer,) * size, (0.5,) * size if index == 9 else None) for index, answer, size in tape]
    for each in told[:cut]:
        learn(one, [each])
    other = Ledger(here)
    other.restore(json_round_trip(one.state()))
    for each in told[cut:]:
        learn(one, [each])
        learn(other, [each])
    assert one.answers.state() == other.answers.state()
    assert one.answers.swapped().tolist() == other.answers.swapped().tolist()
    assert one.answers.kappa_high().tolist() == other.answers.kappa_high().tolist()


def test_state_without_any_group():
    evidence = AnswerEvidence(2, None)
    evidence.restore(json_round_trip(AnswerEvidence(2, None).state()))
    assert evidence.kappa_high().tolist() == [1, 1]


@given(st.text())
def test_an_answer_s_number_is_never_that_of_no_answer(text):
    assert 0 < answer_key(text) < 2**63
