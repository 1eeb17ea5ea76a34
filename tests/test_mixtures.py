"""Mixtures alone against hand values, and in the engine: what they raise, how seldom, and that a save continues."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.catalog import create
from mixwright.contracts import Scene
from mixwright.errors import InputError
from mixwright.records import GroupOutcome, Outcome, Plan, Signals, Stage
from mixwright.steer._engine import Engine
from mixwright.steer._ledger import Ledger
from mixwright.steer._pool import make_pool
from mixwright.steer.mixtures._steady import Steady, raised
from mixwright.steer.mixtures.floor import Floor
from mixwright.steer.mixtures.learnable import Learnable
from mixwright.steer.mixtures.starved import Starved


def scene(shares: dict[str, float], *, selector: str = "uniform", levels: int = 1) -> Scene:
    """Twenty rows per task and level; `shares` are the stage's weights."""
    rows = [(task, float(level)) for task in sorted(shares) for level in range(levels) for _ in range(20)]
    ids = [f"{task}@{level:g}#{place}" for place, (task, level) in enumerate(rows)]
    pool = make_pool(ids, [task for task, _ in rows], [level for _, level in rows])
    stage = Stage("s", "sft", 10, {task: share for task, share in shares.items() if share}, selector=selector)
    return Scene(pool, Ledger(pool), stage, {})


def test_a_floor_raises_the_rare_and_scales_the_others_by_hand():
    mixture = Floor(share=0.1)
    mixture.begin(scene({"a": 0.8, "b": 0.18, "c": 0.02}))
    assert mixture.weights(0) == pytest.approx({"a": 0.8 * 0.9 / 0.98, "b": 0.18 * 0.9 / 0.98, "c": 0.1})


def test_a_task_that_falls_under_the_floor_when_others_are_raised_is_raised_too():
    found = raised(np.array([0.85, 0.105, 0.02, 0.025]), 0.1)
    assert found == pytest.approx([0.7, 0.1, 0.1, 0.1])


def test_a_floor_is_lowered_where_the_tasks_are_many_and_leaves_out_what_the_stage_leaves_out():
    mixture = Floor(share=0.3, most=0.5)
    mixture.begin(scene({"a": 0.7, "b": 0.29, "c": 0.01, "d": 0.0}))
    weights = mixture.weights(0)
    assert weights["c"] == pytest.approx(0.5 / 3)
    assert weights["d"] == 0.0


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20).filter(any), st.floats(0, 1))
def test_raised_shares_are_shares_over_the_floor_in_the_same_order(parts, part):
    shares = np.array(parts) / sum(parts)
    floor = part / np.count_nonzero(shares)
    found = raised(shares, floor)
    assert found.sum() == pytest.approx(1)
    assert np.all(found[shares > 0] >= floor - 1e-9)
    assert not found[shares == 0].any()
    assert np.all(np.diff(found[np.argsort(shares)]) >= -1e-9)


@pytest.mark.parametrize("name", ["floor", "learnable", "starved"])
def test_options_that_make_no_sense_are_refused(name):
    wrong = {"floor": {"share": 1.5}, "learnable": {"explore": 0.0}, "starved": {"rise": 1.0}}[name]
    with pytest.raises(InputError, match="Correct"):
        create("mixtures", name, wrong)


def test_weights_move_seldom_and_only_for_enough_of_a_change():
    steady = Steady(np.array([0.5, 0.5]), every=10, change=0.2)
    assert not steady.due(9)
    assert steady.due(10)
    assert not steady.due(19)
    steady.move(np.array([0.45, 0.55]))
    assert steady.shares.tolist() == [0.5, 0.5]
    steady.move(np.array([0.35, 0.65]))
    assert steady.shares.tolist() == [0.35, 0.65]


def rewarded(place: Scene, task: str, level: float, success: float, groups: int = 40) -> list[GroupOutcome]:
    """Groups of eight whose rewards are drawn with that success, put into the ledger."""
    rng = np.random.default_rng(7)
    cell = next(n for n, cell in enumerate(place.pool.cells) if (cell.task, cell.level) == (task, level))
    index = int(np.flatnonzero(place.pool.cell_of == cell)[0])
    made = []
    for _ in range(groups):
        rewards = tuple(float(win) for win in rng.random(8) < success)
        place.ledger.add(index, 5, sum(rewards), 8)
        made.append(GroupOutcome(place.pool.ids[index], task, level, 5, rewards))
    return made


def learned(place: Scene, successes: dict[str, float], **options: float) -> dict[str, float]:
    mixture = Learnable(**options)
    mixture.begin(place)
    for task, success in successes.items():
        mixture.observe(5, rewarded(place, task, 0.0, success))
    return mixture.weights(20)


def test_what_can_be_learnt_now_is_drawn_more_than_what_is_mastered_or_out_of_reach():
    weights = learned(scene({"half": 0.2, "known": 0.4, "never": 0.4}), {"half": 0.5, "known": 1.0, "never": 0.0})
    assert weights["half"] > 0.7
    assert min(weights["known"], weights["never"]) >= 0.2 / 3 - 1e-9


def test_what_any_prompt_s_answer_would_earn_is_not_learnable():
    place = scene({"blind": 0.5, "half": 0.5})
    for cell in (0, 1):
        place.ledger.answers.start(cell, 0.5, None)
    weights = learned(place, {"blind": 0.45, "half": 0.75})
    assert weights["blind"] == pytest.approx(0.1, abs=0.03)


def test_a_handful_of_examples_is_not_drilled():
    rows = [("few", 0.0)] * 16 + [("many", 0.0)] * 640
    pool = make_pool([str(n) for n in range(len(rows))], [task for task, _ in rows], [level for _, level in rows])
    place = Scene(pool, Ledger(pool), Stage("s", "grpo", 10, {"few": 0.5, "many": 0.5}), {})
    weights = learned(place, {"few": 0.5, "many": 0.5}, explore=0.01)
    assert weights["few"] / weights["many"] == pytest.approx((16 / 80) / (640 / 704), rel=0.25)


def test_a_task_is_worth_its_best_cell_only_where_the_selector_looks_for_it():
    found = {}
    for selector in ("difficulty", "uniform"):
        place = scene({"mixed": 0.5, "even": 0.5}, selector=selector, levels=2)
        mixture = Learnable()
        mixture.begin(place)
        for task, level, success in (("mixed", 0.0, 0.5), ("mixed", 1.0, 0.0), ("even", 0.0, 0.5), ("even", 1.0, 0.5)):
            mixture.observe(5, rewarded(place, task, level, success))
        found[selector] = mixture.weights(20)["mixed"]
    assert found["difficulty"] == pytest.approx(0.5, abs=0.02)
    assert found["uniform"] < 0.4


def test_without_rewards_the_stage_decides():
    mixture = Learnable()
    mixture.begin(scene({"a": 0.9, "b": 0.1}))
    mixture.observe(5, [Outcome("a@0#0", "a", 0.0, 5, 1.0, 3)])
    assert mixture.weights(50) == pytest.approx({"a": 0.9, "b": 0.1})


def losses(task: str, step: int, values: list[float], drop: float | None = None) -> list[Outcome]:
    return [Outcome(f"{task}@0#0", task, 0.0, step, value, 1, drop) for value in values]


def starving(**options) -> tuple[Starved, Scene]:
    place = scene({"kept": 0.9, "lost": 0.1})
    mixture = Starved(**{"memory": 16, "every": 10, "gap": 1000, **options})
    mixture.begin(place)
    return mixture, place


def test_a_task_whose_loss_is_over_its_own_best_is_raised_within_bounds_and_relaxed_after():
    mixture, _ = starving(most=3.0, rise=1.5)
    noise = np.random.default_rng(0).normal(0, 0.05, 64)
    for step in (1, 2, 3, 4):
        for task in ("kept", "lost"):
            mixture.observe(step, losses(task, step, list(0.5 + noise)))
    assert mixture.weights(10) == pytest.approx({"kept": 0.9, "lost": 0.1})
    mixture.observe(11, losses("lost", 11, list(1.5 + noise)))
    factors = [w["lost"] / w["kept"] * 9 for w in (mixture.weights(step) for step in (20, 25, 30, 40, 50, 60))]
    assert factors == pytest.approx([1.5, 1.5, 2.25, 3.0, 3.0, 3.0])
    for _ in range(4):
        mixture.observe(61, losses("lost", 61, list(0.5 + noise)))
    factors = [w["lost"] / w["kept"] * 9 for w in (mixture.weights(step) for step in (70, 80, 90, 100))]
    assert factors == pytest.approx([2.0, 4 / 3, 1.0, 1.0])


def test_rows_that_cost_no_less_when_seen_again_are_starved_only_while_much_is_left():
    mixture, _ = starving()
    mixture.observe(1, losses("kept", 1, [2.0] * 16) + losses("lost", 1, [2.0] * 16))
    mixture.observe(2, losses("kept", 2, [0.2] * 64, drop=0.0) + losses("lost", 2, [1.9] * 64, drop=0.001))
    mixture.observe(3, losses("lost", 3, [1.9] * 32, drop=-0.001))
    weights = mixture.weights(10)
    assert weights["lost"] / weights["kept"] == pytest.approx(1.5 / 9)


def test_rows_that_keep_getting_cheaper_are_left_alone():
    mixture, _ = starving()
    mixture.observe(1, losses("lost", 1, [2.0] * 16))
    mixture.observe(2, losses("lost", 2, [1.9] * 64, drop=0.1))
    assert mixture.weights(10) == pytest.approx({"kept": 0.9, "lost": 0.1})


def test_a_long_gap_counts_as_starved():
    mixture, _ = starving(gap=30)
    mixture.observe(5, losses("kept", 5, [1.0]) + losses("lost", 5, [1.0]))
    assert mixture.weights(30)["lost"] == pytest.approx(0.1)
    mixture.observe(36, losses("kept", 36, [1.0]))
    assert mixture.weights(40)["lost"] == pytest.approx(0.15 / 1.05)


def test_success_under_its_own_best_is_starved_in_grpo():
    mixture, _ = starving()
    rng = np.random.default_rng(1)

    def groups(step: int, success: float) -> list[GroupOutcome]:
        draws = rng.random((64, 8)) < success
        return [GroupOutcome("lost@0#0", "lost", 0.0, step, tuple(map(float, row))) for row in draws]

    mixture.observe(1, groups(1, 0.8))
    assert mixture.weights(10)["lost"] == pytest.approx(0.1)
    mixture.observe(11, groups(11, 0.3))
    assert mixture.weights(20)["lost"] > 0.14


@pytest.mark.parametrize("name", ["floor", "learnable", "starved"])
def test_in_the_engine_weights_are_drawn_logged_seldom_and_continue_after_a_save(name):
    place = scene({"kept": 0.99, "lost": 0.01})
    stage = Stage("s", "sft", 200, {"kept": 0.99, "lost": 0.01}, mixture=name)

    def engine() -> Engine:
        return Engine(Plan("p", (stage,)), place.pool, seed=3)

    def follow(one: Engine, steps: range) -> list[list[int]]:
        drawn = []
        for step in steps:
            rows = one.draw(32)
            drawn.append(rows)
            tasks = [place.pool.tasks[place.pool.task_of[row]] for row in rows]
            told = [
                Outcome(place.pool.ids[row], task, 0.0, step, 0.1 if task == "kept" else 2.0, 1, 0.0)
                for row, task in zip(rows, tasks, strict=True)
            ]
            one.observe(told, Signals(step + 1))
        return drawn

    one = engine()
    follow(one, range(300))
    saved = one.state()
    decisions = [decision for decision in one.take_decisions() if decision.what.startswith("weights.")]
    assert len(decisions) <= 2 * 300 // 10
    other = engine()
    other.restore(saved)
    assert follow(one, range(300, 330)) == follow(other, range(300, 330))
    wanted = one.wanted()["lost"]
    assert wanted == pytest.approx({"floor": 0.02, "learnable": 0.01, "starved": 0.04 / 1.03}[name], rel=0.01)
    json.dumps(saved["plugins"])
