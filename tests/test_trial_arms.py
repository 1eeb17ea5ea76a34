import pytest

from mixwright import catalog
from mixwright.records import Cell, CellPlan, Plan, Stage

CELLS = (Cell("gcd", 1.0, 30, 0.3), Cell("gcd", 2.0, 10, 0.3), Cell("sum", 1.0, 60, 0.1))
PLAN = Plan(
    planner="difficulty",
    stages=(
        Stage(
            "main",
            "grpo",
            60,
            {"gcd": 0.9, "sum": 0.1},
            mixture="adaptive",
            selector="difficulty",
            gates=("too_hard",),
            controllers=("drift",),
            monitors=("canary",),
            options={"selectors.difficulty": {"candidates": 4}},
        ),
    ),
    cells=(CellPlan("gcd", 1.0, "mastered", 0.95, 0.3, 256, 30),),
    why={"stages.0.weights.gcd": "reachable"},
)


def branch(name):
    return catalog.create("arms", name).branch(PLAN, CELLS)


def test_four_arms_and_which_are_nulls():
    arms = {name: catalog.load("arms", name) for name in catalog.listing("arms")}
    assert {"uniform", "steered", "permuted", "permuted_uniform"} <= arms.keys()
    assert [arms[name].NULL for name in ("uniform", "steered", "permuted", "permuted_uniform")] == [False, False, True, True]
    assert [arms[name].AGAINST for name in ("uniform", "steered", "permuted", "permuted_uniform")] == ["", *["uniform"] * 3]


def test_uniform_is_proportional_and_has_no_lever():
    plan = branch("uniform").plan
    stage = plan.stages[0]
    assert stage.weights == {"gcd": 0.4, "sum": 0.6}
    assert (stage.mixture, stage.selector, stage.gates, stage.controllers, stage.monitors) == (None, "uniform", (), (), ())
    assert stage.options == {}
    assert (stage.steps, stage.objective) == (60, "grpo")
    assert plan.cells == PLAN.cells
    assert plan.why["stages.0.weights.gcd"] == "40 of 100 training examples"


def test_steered_and_the_nulls_differ_in_one_thing_each():
    assert branch("steered").plan == PLAN
    assert not branch("steered").permute_rewards
    assert branch("permuted").plan == PLAN
    assert branch("permuted").permute_rewards
    assert branch("permuted_uniform").plan == branch("uniform").plan
    assert branch("permuted_uniform").permute_rewards
    assert not branch("uniform").permute_rewards


def test_no_examples_is_an_error():
    with pytest.raises(ValueError, match="no training examples"):
        catalog.create("arms", "uniform").branch(PLAN, ())
