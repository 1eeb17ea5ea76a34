"""Planners: states of cells, weights, reasons, and plans that do not fit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steer_world import cells, competence, row

from mixwright.catalog import create
from mixwright.config import PlanConfig, TrainConfig
from mixwright.errors import InputError
from mixwright.plan.baseline import as_shares
from mixwright.plan.cells import attainable_gain
from mixwright.plan.stage import make_plan
from mixwright.plan.validate import validate_plan
from mixwright.records import Cell, CellAssessment, TrainingSetup
from mixwright.run.folder import read_plan, write_plan


def plan_of_world(**options):
    return create("planners", "difficulty", options).plan(cells(), competence(np.random.default_rng(0)), TrainingSetup(60))


def test_difficulty_names_the_states_and_puts_weight_where_there_is_room():
    plan = plan_of_world()
    states = {cell.key: cell.state for cell in plan.cells}
    assert [key for key, state in states.items() if state == "mastered"] == ["chain@1", "gcd@1", "spell@1"]
    assert [key for key, state in states.items() if state == "reachable"] == ["chain@2", "spell@2"]
    assert states["count@1"] == states["count@2"] == "lucky"
    assert states["prime@1"] == "hopeless"
    blind = next(cell for cell in plan.cells if cell.key == "count@1")
    assert (blind.swapped, blind.kappa) == (pytest.approx(0.3, abs=0.01), pytest.approx(0, abs=0.01))
    assert blind.kappa_high is not None
    assert blind.kappa_high < 0.1
    assert blind.p is not None
    assert blind.p >= 0.05
    assert blind.chance == 0.3
    weights = plan.stages[0].weights
    assert weights["chain"] > weights["spell"] > weights["gcd"] > weights["prime"] == weights["count"] == 0.02
    assert weights["gcd"] == pytest.approx(0.02 + 0.1, abs=1e-4)  # the floor and the whole rehearsal share
    assert "lucky" in plan.why["stages.0.weights.count"]
    for task in weights:
        assert plan.why[f"stages.0.weights.{task}"]
    for place in range(len(plan.cells)):
        assert plan.why[f"cells.{place}.state"]


def test_weights_by_hand():
    data = [Cell("a", None, 10), Cell("b", None, 10), Cell("c", None, 10)]
    rows = [row("a", None, 0.5, 0.44, 0.56), row("b", None, 0.6, 0.54, 0.66), row("c", None, 0.0, 0.0, 0.02)]
    rows.append(row("b", None, 0.5, 0.4, 0.6, name="pass@1.swapped"))
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    # worth 4 * 0.5 * 0.5 = 1 and, kappa of 0.6 being 0.2 where S is 0.5, 4 * 0.2 * 0.8 = 0.64; 0.94 is shared
    assert plan.stages[0].weights == {"a": 0.5932, "b": 0.3868, "c": 0.02}


def test_few_examples_count_less_by_hand():
    # rooms of 1, halved by 64 examples and cut to three quarters by 192
    data = [Cell("a", None, 64), Cell("b", None, 192)]
    rows = [row(task, None, 0.5, 0.44, 0.56) for task in "ab"]
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert plan.stages[0].weights == {"a": 0.404, "b": 0.596}  # 0.02 + 0.96 * 0.5 / 1.25


def test_the_best_cell_of_a_task_is_the_one_worth_most():
    # a room of .96 with 448 examples (worth .84) goes before a room of 1 with 64 (worth .5)
    data = [Cell("a", 1.0, 64), Cell("a", 2.0, 448), Cell("b", None, 64)]
    rows = [row("a", 1.0, 0.5, 0.44, 0.56), row("a", 2.0, 0.4, 0.34, 0.46), row("b", None, 0.5, 0.44, 0.56)]
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert plan.why["stages.0.weights.a"].startswith("floor 0.02; worth 0.84 from its best cell a@2 (448 examples)")
    assert plan.stages[0].weights == {"a": 0.6218, "b": 0.3782}  # 0.02 + 0.96 * 0.84 / 1.34


@pytest.mark.parametrize(
    "wrong", [{"floor": 1.01}, {"floor": -0.01}, {"mastered_share": 0.81}, {"band": (0.5, 0.5)}, {"band": (0, 1.1)}]
)
def test_shares_and_bands_outside_their_range_are_refused(wrong):
    create("planners", "difficulty", {"floor": 1.0, "mastered_share": 0.8, "band": (0.0, 1.0)})
    with pytest.raises(InputError):
        create("planners", "difficulty", wrong)


def test_nothing_within_reach_says_so():
    data = [Cell("a", None, 30, 0.0), Cell("b", None, 10, 0.0)]
    rows = [row("a", None, 0.0, 0.0, 0.02), row("b", None, 0.0, 0.0, 0.02)]
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert plan.stages[0].weights == {"a": 0.74, "b": 0.26}  # floors, the rest by examples
    rows[1] = row("b", None, 0.99, 0.97, 1.0)
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert plan.stages[0].weights == {"a": 0.02, "b": 0.98}


def test_thin_evidence_is_unknown():
    data = [Cell("a", None, 10, 0.0), Cell("b", 1.0, 10, 0.0), Cell("b", 2.0, 10, 0.0)]
    rows = [row("a", None, 0.0, 0.0, 0.3, n=8), row("b", 1.0, 0.5, 0.44, 0.56)]
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert [(c.key, c.state) for c in plan.cells] == [("a", "unknown"), ("b@1", "unknown"), ("b@2", "unknown")]
    rows.append(row("b", 1.0, 0.04, 0.04, 0.04, name="pass@1.permutation"))
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert [c.state for c in plan.cells] == ["unknown", "reachable", "unknown"]


def test_unknown_cells_are_treated_like_reachable_ones():
    data = [Cell("a", None, 10), Cell("b", None, 10)]
    rows = [row("a", None, 0.5, 0.44, 0.56), row("b", None, 0.5, 0.44, 0.56)]
    rows.append(row("b", None, 0.001, 0.001, 0.001, name="pass@1.permutation"))
    plan = create("planners", "difficulty").plan(data, rows, TrainingSetup(10))
    assert [cell.state for cell in plan.cells] == ["unknown", "reachable"]
    assert plan.stages[0].weights == {"a": 0.5, "b": 0.5}
    assert attainable_gain(plan.cells[0]) == attainable_gain(plan.cells[1]) == 0.25


def test_room_is_that_of_kappa_and_of_what_varies_within_a_prompt():
    known = CellAssessment("a", None, "reachable", 0.6, 0.0, 256, 10, swapped=0.5)
    assert attainable_gain(known) == pytest.approx(0.2 * 0.8)
    assert attainable_gain(replace(known, learnability=0.06)) == pytest.approx(0.2 * 0.8 * 0.06 / 0.24)
    assert attainable_gain(replace(known, success=0.4)) == 0  # below S
    assert attainable_gain(replace(known, state="lucky")) == attainable_gain(replace(known, state="mastered")) == 0
    assert attainable_gain(replace(known, state="unknown", success=None)) == 0.125


def test_a_cell_of_few_prompts_is_judged_with_its_task():
    """Its success is its task's; its dependence was measured with the other small cells."""
    data = [Cell("a", 1.0, 4), Cell("a", 2.0, 90)]
    rows = [row("a", 1.0, 1.0, 0.6, 1.0, 24), row("a", 1.0, 0.2, 0.0, 1.0, 3, "chance")]
    rows += [row("a", 2.0, 0.5, 0.44, 0.56), row("a", 2.0, 0.1, 0.0, 0.2, 32, "chance")]
    rows += [row("a", None, 0.52, 0.46, 0.58, 280), row("a", None, 0.1, 0.0, 0.2, 35, "chance")]
    rows.append(row("a", 1.0, 0.3, 0.1, 0.5, 35, "pass@1.swapped"))
    small, large = create("planners", "difficulty").plan(data, rows, TrainingSetup(10)).cells
    assert (small.success, small.n, small.chance, small.swapped) == (0.52, 280, 0.2, 0.3)
    assert (large.success, large.n, large.chance, large.swapped) == (0.5, 256, 0.1, None)


def test_a_task_that_was_not_measured_is_an_input_error():
    rows = [measured for measured in competence(np.random.default_rng(0)) if measured.task != "lcm"]
    with pytest.raises(InputError, match="measurement of task 'lcm'"):
        create("planners", "difficulty").plan(cells(), rows, TrainingSetup(10))


def test_baselines_by_hand():
    data = [Cell("a", 1.0, 60, 0.0), Cell("a", 2.0, 20, 0.0), Cell("b", None, 20, 0.0)]
    got = {
        name: create("planners", name).plan(data, [], TrainingSetup(5))
        for name in ("proportional", "equal_shares", "temperature")
    }
    assert got["proportional"].stages[0].weights == {"a": 0.8, "b": 0.2}
    assert got["equal_shares"].stages[0].weights == {"a": 0.5, "b": 0.5}
    assert got["temperature"].stages[0].weights == {"a": 0.6667, "b": 0.3333}  # sqrt(80) : sqrt(20)
    for plan in got.values():
        stage = plan.stages[0]
        assert (stage.selector, stage.gates, stage.controllers, stage.monitors) == ("uniform", (), (), ())
    with pytest.raises(InputError, match="temperature"):
        create("planners", "temperature", {"temperature": 0.5}).plan(data, [], TrainingSetup(5))
    with pytest.raises(InputError, match="training examples"):
        create("planners", "equal_shares").plan([], [], TrainingSetup(5))


@given(st.dictionaries(st.text(min_size=1), st.floats(0.001, 1e6), min_size=1, max_size=40))
def test_shares_sum_to_one(weights):
    got = as_shares(weights)
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
        "sum to 1, got sum 0.4": replace(stage, weights={"chain": 0.4}),
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
def test_the_objective_of_training_reaches_the_planner(objective, beta, controllers, gates):
    """Losses fall by moving away from the start; without a KL coefficient there is nothing to hold on to."""
    train, corpus = TrainConfig(objective=objective, beta=beta), SimpleNamespace(cells_with_rehearsal=cells)
    stage = make_plan(PlanConfig(), train, corpus, competence(np.random.default_rng(0))).stages[0]
    assert (stage.objective, stage.controllers, stage.gates) == (objective, controllers, gates)
    assert stage.monitors == {"grpo": (), "sft": (), "dpo": ("displacement",)}[objective]
