"""Planners: states of cells, weights, reasons, forecast, and plans that do not fit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steer_world import cells, competence, row

from mixwright.catalog import create
from mixwright.config import CorpusConfig, RunConfig, TrainConfig
from mixwright.errors import InputError
from mixwright.pipeline import make_plan
from mixwright.plan._baseline import shares
from mixwright.plan._forecast import forecast
from mixwright.plan._states import above_luck, classify
from mixwright.plan._validate import validate_plan
from mixwright.records import Cell, CellPlan
from mixwright.runs import RunFolder, read_plan, write_json, write_measurements, write_plan


@pytest.mark.parametrize(
    ("success", "low", "high", "luck", "n", "state"),
    [
        (0.95, 0.9, 0.98, 0.0, 256, "mastered"),
        (0.5, 0.44, 0.56, 0.0, 256, "reachable"),
        (0.06, 0.04, 0.09, 0.0, 512, "reachable"),  # rarely right, but never by luck
        (0.01, 0.0, 0.03, 0.0, 256, "hopeless"),
        (0.33, 0.28, 0.39, 0.3, 256, "lucky"),
        (0.45, 0.39, 0.51, 0.3, 256, "reachable"),
        (0.44, 0.32, 0.56, 0.33, 64, "unknown"),  # may be above luck: the interval cannot tell
        (0.0, 0.0, 0.2, 0.0, 16, "unknown"),  # thin
        (0.93, 0.88, 0.95, 0.5, 256, "reachable"),  # 0.93 is 0.86 above luck 0.5
    ],
)
def test_states(success, low, high, luck, n, state):
    assert classify(success, low, high, luck, n) == state


def test_above_luck_by_hand():
    assert above_luck(0.65, 0.3) == pytest.approx(0.5)
    assert above_luck(0.3, 0.3) == 0
    assert above_luck(1.0, 1.0) == 0


def plan_of_world(**options):
    return create("planners", "difficulty", options).plan(cells(), [], competence(np.random.default_rng(0)), steps=60)


def test_difficulty_names_the_states_and_puts_weight_where_there_is_room():
    plan = plan_of_world()
    states = {cell.key: cell.state for cell in plan.cells}
    assert [key for key, state in states.items() if state == "mastered"] == ["chain@1", "gcd@1", "spell@1"]
    assert [key for key, state in states.items() if state == "reachable"] == ["chain@2", "spell@2"]
    assert states["count@1"] == states["count@2"] == "lucky"
    assert states["prime@1"] == "hopeless"
    weights = plan.stages[0].weights
    assert weights["chain"] > weights["spell"] > weights["gcd"] > weights["prime"] == weights["count"] == 0.02
    assert weights["gcd"] == pytest.approx(0.02 + 0.1, abs=1e-4)  # the floor and the whole anchor
    assert "lucky" in plan.why["stages.0.weights.count"]
    for task in weights:
        assert plan.why[f"stages.0.weights.{task}"]
    for place in range(len(plan.cells)):
        assert plan.why[f"cells.{place}.state"]


def test_weights_by_hand():
    data = [Cell("a", None, 10, 0.0), Cell("b", None, 10, 0.5), Cell("c", None, 10, 0.0)]
    rows = [row("a", None, 0.5, 0.44, 0.56), row("b", None, 0.6, 0.54, 0.66), row("c", None, 0.0, 0.0, 0.02)]
    plan = create("planners", "difficulty").plan(data, [], rows, steps=10)
    # worth 4 * 0.5 * 0.5 = 1 and, 0.6 being 0.2 above luck 0.5, 4 * 0.2 * 0.8 = 0.64; 0.94 is shared
    assert plan.stages[0].weights == {"a": 0.5932, "b": 0.3868, "c": 0.02}


def test_nothing_within_reach_says_so():
    data = [Cell("a", None, 30, 0.0), Cell("b", None, 10, 0.0)]
    rows = [row("a", None, 0.0, 0.0, 0.02), row("b", None, 0.0, 0.0, 0.02)]
    plan = create("planners", "difficulty").plan(data, [], rows, steps=10)
    assert plan.stages[0].weights == {"a": 0.74, "b": 0.26}  # floors, the rest by examples
    assert "no task is within reach" in plan.why["stages.0.weights.a"]
    rows[1] = row("b", None, 0.99, 0.97, 1.0)
    plan = create("planners", "difficulty").plan(data, [], rows, steps=10)
    assert plan.stages[0].weights == {"a": 0.02, "b": 0.98}


def test_thin_evidence_is_unknown_and_gets_no_forecast():
    data = [Cell("a", None, 10, 0.0), Cell("b", 1.0, 10, 0.0), Cell("b", 2.0, 10, 0.0)]
    rows = [row("a", None, 0.0, 0.0, 0.3, n=8), row("b", 1.0, 0.5, 0.44, 0.56)]
    plan = create("planners", "difficulty").plan(data, [], rows, steps=10)
    assert [(c.key, c.state) for c in plan.cells] == [("a", "unknown"), ("b@1", "reachable"), ("b@2", "unknown")]
    assert plan.forecast == ()


def test_forecast_by_hand():
    known = [CellPlan("a", 1.0, "reachable", 0.5, 0.0, 256, 10), CellPlan("a", 2.0, "hopeless", 0.0, 0.0, 256, 10)]
    rows = [row("a", 1.0, 0.5, 0.402, 0.598), row("a", 2.0, 0.0, 0.0, 0.0)]
    (said,) = forecast(known, rows, {"a": 1.0}, steps=40)
    # gain 0.25 * (1 - 1/e) over two cells; standard error 0.05 of each of two measurements of one cell
    gain, noise = 0.25 * (1 - np.exp(-1)) / 2, 1.28 * 0.05 * np.sqrt(2) / 2 + 0.02
    assert (said.before, said.expected) == (0.25, pytest.approx(0.25 + gain, abs=1e-4))
    assert (said.low, said.high) == (
        pytest.approx(0.25 - noise, abs=1e-4),
        pytest.approx(0.25 + 2 * gain + noise, abs=1e-4),
    )
    (unspent,) = forecast(known, rows, {"a": 0.0}, steps=40)
    assert unspent.expected == unspent.before


def test_a_task_that_was_not_measured_is_an_input_error():
    rows = [measured for measured in competence(np.random.default_rng(0)) if measured.task != "lcm"]
    with pytest.raises(InputError, match="measurement of task 'lcm'"):
        create("planners", "difficulty").plan(cells(), [], rows, steps=10)


def test_baselines_by_hand():
    data = [Cell("a", 1.0, 60, 0.0), Cell("a", 2.0, 20, 0.0), Cell("b", None, 20, 0.0)]
    got = {name: create("planners", name).plan(data, [], [], steps=5) for name in ("proportional", "uniform", "temperature")}
    assert got["proportional"].stages[0].weights == {"a": 0.8, "b": 0.2}
    assert got["uniform"].stages[0].weights == {"a": 0.5, "b": 0.5}
    assert got["temperature"].stages[0].weights == {"a": 0.6667, "b": 0.3333}  # sqrt(80) : sqrt(20)
    for plan in got.values():
        stage = plan.stages[0]
        assert (stage.selector, stage.mixture, stage.gates, stage.controllers, stage.monitors) == (
            "uniform",
            None,
            (),
            (),
            (),
        )
    with pytest.raises(InputError, match="temperature"):
        create("planners", "temperature", {"temperature": 0.5}).plan(data, [], [], steps=5)
    with pytest.raises(InputError, match="training examples"):
        create("planners", "uniform").plan([], [], [], steps=5)


@given(st.dictionaries(st.text(min_size=1), st.floats(0.001, 1e6), min_size=1, max_size=40))
def test_shares_sum_to_one(weights):
    got = shares(weights)
    assert sum(got.values()) == pytest.approx(1, abs=1e-9)
    assert all(0 <= share <= 1 for share in got.values())


def test_a_plan_survives_its_file(tmp_path):
    plan = plan_of_world()
    write_plan(tmp_path / "plan.yaml", plan)
    assert read_plan(tmp_path / "plan.yaml") == plan


def test_plans_that_do_not_fit():
    plan = plan_of_world()
    stage = plan.stages[0]
    validate_plan(plan, cells())
    wrong = {
        "task in the data.*'chian'.*chain": replace(stage, weights={"chian": 1.0}),
        "summing to 1": replace(stage, weights={"chain": 0.4}),
        "a band": replace(stage, band=(0.9, 0.1)),
        "selector.*dificulty.*difficulty": replace(stage, selector="dificulty"),
        "gate": replace(stage, gates=("nothing",)),
        "options of stage": replace(stage, options={"selectors.uniform": {}}),
        "at least 1 step": replace(stage, steps=0),
    }
    for told, bad in wrong.items():
        with pytest.raises(InputError, match=told):
            validate_plan(replace(plan, stages=(bad,)), cells())
    with pytest.raises(InputError, match="at least one stage"):
        validate_plan(replace(plan, stages=()), cells())
    with pytest.raises(InputError, match="count"):
        validate_plan(plan, [cell for cell in cells() if cell.task != "count"])


@pytest.mark.parametrize(
    ("objective", "beta", "controllers", "gates"),
    [
        ("grpo", 0.02, ("drift",), ("too_hard",)),
        ("grpo", 0.0, (), ("too_hard",)),
        ("sft", 0.0, (), ()),
        ("dpo", 0.0, (), ()),
    ],
)
def test_the_objective_of_training_reaches_the_planner(tmp_path, objective, beta, controllers, gates):
    """Losses fall by moving away from the start; without a KL coefficient there is nothing to hold on to."""
    folder = RunFolder(tmp_path)
    write_measurements(folder.measurements("before"), competence(np.random.default_rng(0)))
    write_json(folder.audit, [])
    config = RunConfig(CorpusConfig("rows.jsonl"), train=TrainConfig(objective=objective, beta=beta))
    stage = make_plan(config, folder, SimpleNamespace(cells=cells)).stages[0]
    assert (stage.objective, stage.controllers, stage.gates) == (objective, controllers, gates)
    assert stage.monitors == (("canary", "displacement") if objective == "dpo" else ("canary",))
