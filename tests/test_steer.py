"""Task order, selectors and gate alone, against hand values and their stated error rates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steer_world import json_round_trip, pool

from mixwright.contracts import Admission, Gate, Scene
from mixwright.records import GroupOutcome, Stage
from mixwright.steer.engine import TaskOrder
from mixwright.steer.gates import TooHard
from mixwright.steer.ledger import Ledger, read_rewards
from mixwright.steer.policy import GateRunner
from mixwright.steer.pool import make_pool
from mixwright.steer.selectors._states import ACTIVE, LUCKY
from mixwright.steer.selectors.difficulty import Difficulty
from mixwright.steer.selectors.uniform import Uniform


def scene(here=None, band=(0.1, 0.9)) -> Scene:
    here = here or pool()
    stage = Stage("s", "grpo", 10, {task: 1 / len(here.tasks) for task in here.tasks}, band)
    return Scene(here, Ledger(here), stage)


class Told(Gate):
    """Answers as it is told."""

    admitted = True

    def admit(self, group: GroupOutcome) -> Admission:
        return Admission(self.admitted, "said so")


def test_each_change_of_a_gates_answer_is_written_down_with_its_reason():
    lines, gate = [], Told()
    judge = GateRunner([gate], ["t@1"], {"t@1": "reachable"}, lambda *line: lines.append(line))
    for step, admitted in enumerate([True, True, True, False, False, True, False]):
        gate.admitted = admitted
        actions = judge.refusals([GroupOutcome("x", "t", 1.0, step, (0.0, 1.0))], [0])
        assert [(action.kind, action.target) for action in actions] == ([] if admitted else [("refuse", "x")])
        again = GateRunner([gate], ["t@1"], {"t@1": "reachable"}, lambda *line: lines.append(line))
        again.restore(json_round_trip(judge.state()))
        judge = again
    assert lines == [
        (3, "refuse.t@1", "admitted", "refused", "said so"),
        (5, "refuse.t@1", "refused", "admitted", "said so"),
        (6, "refuse.t@1", "admitted", "refused", "said so"),
    ]
    assert judge.refused == {"t@1": 3}


@pytest.mark.parametrize(("state", "admitted", "told"), [("unknown", True, 1), ("reachable", True, 0), ("lucky", False, 1)])
def test_the_first_answer_is_told_of_unknown_cells_and_of_refusals(state, admitted, told):
    lines, gate = [], Told()
    gate.admitted = admitted
    judge = GateRunner([gate], ["t@1"], {"t@1": state}, lambda *line: lines.append(line))
    for step in range(3):
        judge.refusals([GroupOutcome("x", "t", 1.0, step, (0.0, 1.0))], [0])
    assert lines == [(0, "refuse.t@1", None, "admitted" if admitted else "refused", "said so")][:told]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any))
def test_every_prefix_is_within_a_draw_of_the_shares(parts):
    weights = np.array(parts) / sum(parts)
    drawn = TaskOrder(weights).next(400)
    counts = np.cumsum(drawn[:, None] == np.arange(len(parts)), axis=0)
    off = np.abs(counts - weights * np.arange(1, 401)[:, None])
    assert off.max() < 1
    for task in np.flatnonzero(weights):
        gaps = np.diff(np.flatnonzero(drawn == task), prepend=-1)
        assert gaps.max(initial=0) <= 2 / weights[task]
    assert not counts[-1, weights == 0].any()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.lists(st.integers(1, 40), min_size=1, max_size=10))
def test_the_order_does_not_depend_on_how_many_are_asked_for(parts, counts):
    weights = np.array(parts) / sum(parts)
    one, other = TaskOrder(weights), TaskOrder(weights)
    assert one.next(sum(counts)).tolist() == [task for n in counts for task in other.next(n)]


def pick(selector, task, rng):
    return int(selector.pick(np.array([task]), rng)[0])


def test_uniform_selector_passes_through_everything_once():
    place = scene(make_pool([str(i) for i in range(7)], ["a"] * 5 + ["b"] * 2))
    selector, rng = Uniform(), np.random.default_rng(0)
    selector.begin(place)
    passes = [[pick(selector, 0, rng) for _ in range(5)] for _ in range(3)]
    passes += selector.pick(np.zeros(15, dtype=int), rng).reshape(3, 5).tolist()
    assert all(sorted(drawn) == [0, 1, 2, 3, 4] for drawn in passes)
    assert len({tuple(drawn) for drawn in passes}) > 1
    assert {pick(selector, 1, rng) for _ in range(2)} == {5, 6}


def test_difficulty_selector_shares_by_cell():
    here = make_pool(
        [str(i) for i in range(200)],
        ["t"] * 200,
        np.repeat([1.0, 2.0, 3.0, 4.0], 50).tolist(),
        answers=list(map(str, range(200))),
    )
    place = scene(here)
    for cell, success in enumerate((0.98, 0.5, 0.0, 0.4)):  # mastered, reachable, hopeless, lucky
        place.ledger.recent.start(cell, success, 256)
    place.ledger.answers.start(3, 0.4, 0.05)
    selector, rng = Difficulty(), np.random.default_rng(1)
    selector.begin(place)
    drawn = Counter(int(here.cell_of[pick(selector, 0, rng)]) for _ in range(3000))
    assert drawn[1] > 0.8 * 3000
    for rare in (0, 2, 3):
        assert 0.001 * 3000 < drawn[rare] < 0.1 * 3000  # neither starved nor chased


def test_the_weight_of_a_cell_is_by_kappa_softly_and_by_hand():
    here = make_pool([str(i) for i in range(120)], ["t"] * 120, [1.0] * 60 + [2.0] * 60, answers=list(map(str, range(120))))
    place = scene(here)
    selector = Difficulty()
    for cell in (0, 1):
        place.ledger.recent.start(cell, 0.5, 256)
    place.ledger.answers.start(1, 0.4, None)
    selector.begin(place)
    both, alike = np.array([0, 1]), 0.3  # nothing is known of how alike the rollouts of a prompt are
    # at .55 kappa is .55 and (.55 - .4) / .6 = .25; at .4 it is .4 and 0, which leaves the weight of a cell under the band
    assert selector.draw_weight(np.array([0.55, 0.55]), both) == pytest.approx([0.99 * (1 - alike), 0.75 * (1 - alike)])
    assert selector.draw_weight(np.array([0.4, 0.4]), both) == pytest.approx([0.96 * (1 - alike), selector.weight_below])
    # the band is of plain success, whatever S is
    assert selector.draw_weight(np.array([0.09, 0.91]), both) == pytest.approx(
        [selector.weight_below, selector.weight_above]
    )


def test_a_batch_draws_no_example_twice_while_candidates_allow():
    place = scene(make_pool([str(i) for i in range(400)], ["t"] * 400))
    for index in range(0, 400, 7):
        place.ledger.add(index, 0, 4, 8)  # the best candidates, drawn by everybody
    selector, rng = Difficulty(explore=0.0), np.random.default_rng(0)
    selector.begin(place)
    for _ in range(20):
        drawn = selector.pick(np.zeros(32, dtype=int), rng)
        assert len(set(drawn.tolist())) == 32


def test_a_batch_is_drawn_as_one_by_one():
    """Same distribution: shares of cells agree within sampling error."""
    here = make_pool([str(i) for i in range(400)], ["t"] * 400, [1.0] * 200 + [2.0] * 200)
    place = scene(here)
    for index in range(400):
        place.ledger.add(index, 0, float(index % 9 if index < 200 else 4 * (index % 3)), 8)
    selector, rng = Difficulty(), np.random.default_rng(3)
    selector.begin(place)
    single = np.array([pick(selector, 0, rng) for _ in range(3000)])
    batch = np.concatenate([selector.pick(np.zeros(500, dtype=int), rng) for _ in range(6)])
    one, other = here.cell_of[single].astype(float), here.cell_of[batch].astype(float)
    error = np.sqrt(one.var() / 3000 + other.var() / 3000)
    assert abs(one.mean() - other.mean()) < 4 * error + 1e-9


def test_unmeasured_cells_are_tried():
    here = make_pool([str(i) for i in range(100)], ["t"] * 100, [1.0] * 50 + [2.0] * 50)
    place = scene(here)
    place.ledger.recent.start(0, 0.5, 256)
    selector, rng = Difficulty(explore=0.0), np.random.default_rng(0)
    selector.begin(place)
    assert 0.2 < np.mean([here.cell_of[pick(selector, 0, rng)] for _ in range(1000)]) < 0.6


def group(task="t", level=None, wins=0) -> GroupOutcome:
    return GroupOutcome("0", task, level, 0, (1.0,) * wins + (0.0,) * (8 - wins))


def refused_share(success: float, rollouts: int, rho: float, cells: int = 600, group_size: int = 8) -> float:
    """Share of simulated cells that the gate refuses after that many rollouts of prompts that differ by rho."""
    ids = [f"t{i}" for i in range(cells)]
    here = make_pool(ids, ids)
    place, rng = scene(here), np.random.default_rng(5)
    gate = TooHard()
    gate.begin(place)
    for step in range(rollouts // group_size):
        varied = 0 < success < 1 and rho > 0
        each = rng.beta(success * (1 / rho - 1), (1 - success) * (1 / rho - 1), cells) if varied else success
        wins = rng.binomial(group_size, each, cells).astype(float)
        place.ledger.lasting.add(np.arange(cells), step, wins, np.full(cells, group_size))
    return float(np.mean([not gate.admit(group(cell.task)).admitted for cell in here.cells]))


@pytest.mark.parametrize(
    ("success", "rollouts", "rho", "least", "most"),
    [
        (0.0, 128, 0.0, 0.0, 0.0),  # 0 of 16 prompts: at most 14 %
        (0.0, 256, 0.0, 1.0, 1.0),  # 0 of 32 prompts: at most 8 %
        (0.02, 512, 0.2, 0.8, 1.0),
        (0.1, 256, 0.0, 0.0, 0.075),  # at the floor: the one-sided 5 %, + 3 standard errors of 600 cells
        (0.1, 256, 0.5, 0.0, 0.075),
        (0.1, 512, 0.2, 0.0, 0.075),
        (0.2, 128, 0.5, 0.0, 0.01),
    ],
)
def test_the_gates_error_rates_are_as_stated(success, rollouts, rho, least, most):
    assert least <= refused_share(success, rollouts, rho) <= most


@pytest.mark.parametrize("group_size", [16, 64])
def test_the_gate_has_its_power_in_groups_of_any_size(group_size):
    assert refused_share(0.0, 32 * group_size, 0.0, 50, group_size) == 1
    assert refused_share(0.02, 64 * group_size, 0.2, 200, group_size) > 0.8
    assert refused_share(0.1, 64 * group_size, 0.2, 200, group_size) < 0.1


def test_gate_admits_the_unknown_and_takes_cells_back():
    here = make_pool(["0", "1"], ["hard", "other"])
    place, gate = scene(here), TooHard()
    gate.begin(place)
    assert gate.admit(group("hard")) == (True, "no evidence yet: 0 of 24 rollouts")
    place.ledger.lasting.start(0, 0.0, 256, 32)
    place.ledger.lasting.start(1, 0.38, 512)
    answer = gate.admit(group("hard"))
    assert not answer.admitted
    assert answer.reason.startswith("too hard: 0% right in 256 rollouts")
    answer = gate.admit(group("other"))
    assert answer.admitted
    assert answer.reason.startswith("not ruled out: 38% right in 512 rollouts")
    admitted = []
    for _ in range(2):
        place.ledger.lasting.add(0, 1, 4, 8)
        admitted.append(gate.admit(group("hard", wins=4)).admitted)
    assert admitted == [False, True]


def test_a_lucky_cell_s_groups_are_admitted_in_the_share_of_its_expected_kappa():
    """Plain success .384 against S = .36 is kappa .0375: three groups in eight are let in, evenly."""
    here = make_pool([str(i) for i in range(40)], ["t"] * 40, answers=list(map(str, range(40))))
    place, gate = scene(here), TooHard()
    gate.begin(place)
    place.ledger.lasting.start(0, 0.384, 512)
    place.ledger.answers.start(0, 0.36, 0.08)
    answers = [gate.admit(group()) for _ in range(8)]
    assert [answer.admitted for answer in answers] == [False, False, True, False, False, True, False, True]
    assert all(answer.reason.startswith("lucky") for answer in answers)
    assert "kappa at most 8%" in answers[0].reason
    assert "38% of such groups are admitted" in answers[0].reason
    again = TooHard()
    again.begin(place)
    assert gate.admit(group()).admitted is False  # .375 saved up
    again.restore(json_round_trip(gate.state()))
    assert [again.admit(group()).admitted for _ in range(8)] == [gate.admit(group()).admitted for _ in range(8)]
    for swapped, share in ((0.4, 0.0), (0.3, 1.0)):  # none of it depends on the prompt; kappa .12 is over the line
        place.ledger.answers.start(0, swapped, 0.08)
        fresh = TooHard()
        fresh.begin(place)
        assert np.mean([fresh.admit(group()).admitted for _ in range(8)]) == share
    place.ledger.answers.start(0, 0.36, 0.1)
    assert gate.admit(group()).reason.startswith("not ruled out")  # not ruled out that .10 depends on the prompt


@pytest.mark.parametrize("lucky", [0.0, 0.1])
def test_with_a_threshold_of_0_no_cell_is_lucky_even_where_kappa_is_shown_to_be_negative(lucky):
    here = make_pool([str(i) for i in range(40)], ["t"] * 40, answers=list(map(str, range(40))))
    place, gate, selector = scene(here), TooHard(lucky_kappa=lucky), Difficulty(lucky_kappa=lucky)
    place.ledger.lasting.start(0, 0.3, 512)
    place.ledger.recent.start(0, 0.3, 512)
    place.ledger.answers.start(0, 0.5, -0.05)
    gate.begin(place)
    selector.begin(place)
    assert gate.admit(group()).reason.startswith("lucky" if lucky else "not ruled out")
    selector.observe(0, read_rewards([group()], (0.0, 1.0)))
    assert set(selector._states.cell_state.tolist()) == {LUCKY if lucky else ACTIVE}


def test_with_an_anchor_of_0_mastered_cells_are_still_drawn_alike():
    """Tasks of one and of three cells: a weight of 0 everywhere once drew the last column, another task's cell."""
    names = [f"a{i}" for i in range(10)] + [f"b{level}-{i}" for level in (1, 2, 3) for i in range(10)]
    here = make_pool(names, ["a"] * 10 + ["b"] * 30, [1.0] * 10 + [1.0] * 10 + [2.0] * 10 + [3.0] * 10)
    place, rng = scene(here), np.random.default_rng(0)
    for cell in range(4):
        place.ledger.recent.start(cell, 1.0, 512)
        place.ledger.lasting.start(cell, 1.0, 512)
    selector = Difficulty(weight_above=0.0, explore=0.0, review_share=0.0)
    selector.begin(place)
    tasks = np.tile([0, 1], 300)
    drawn = selector.pick(tasks, rng)
    assert (here.task_of[drawn] == tasks).all()
    counts = np.bincount(here.cell_of[drawn], minlength=4)[1:]
    assert counts.min() > 60
