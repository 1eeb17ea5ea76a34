"""The mixture `floor` against hand values, and in the engine: what it raises, and that a save continues."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.catalog import create
from mixwright.contracts import Scene
from mixwright.errors import InputError
from mixwright.records import Outcome, Plan, Signals, Stage
from mixwright.steer.engine import Engine
from mixwright.steer.ledger import Ledger
from mixwright.steer.mixtures.floor import Floor, raised
from mixwright.steer.pool import make_pool


def scene(shares: dict[str, float]) -> Scene:
    """Twenty rows per task; `shares` are the stage's weights."""
    tasks = [task for task in sorted(shares) for _ in range(20)]
    pool = make_pool([f"{task}#{place}" for place, task in enumerate(tasks)], tasks)
    stage = Stage("s", "sft", 10, {task: share for task, share in shares.items() if share})
    return Scene(pool, Ledger(pool), stage)


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


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="Correct"):
        create("mixtures", "floor", {"share": 1.5})


def test_in_the_engine_weights_are_drawn_logged_once_and_continue_after_a_save():
    place = scene({"kept": 0.99, "lost": 0.01})
    stage = Stage("s", "sft", 200, {"kept": 0.99, "lost": 0.01}, mixture="floor")

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
    assert [decision.what for decision in decisions] == ["weights.kept", "weights.lost"]
    other = engine()
    other.restore(saved)
    assert follow(one, range(300, 330)) == follow(other, range(300, 330))
    assert one.wanted()["lost"] == pytest.approx(0.02)
    json.dumps(saved["plugins"])
