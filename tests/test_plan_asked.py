"""What a user asks of a plan's stages is laid over what was planned, and wrong fields are refused."""

import pytest

from mixwright.errors import InputError
from mixwright.plan.overrides import apply_overrides
from mixwright.records import Plan, Stage

STAGE = Stage(
    "training",
    "grpo",
    10,
    {"a": 0.5, "b": 0.5},
    gates=("too_hard",),
    options={"gates.too_hard": {"z": 2.0}, "engine": {"canaries": 8}},
)
WHY = {"stages.0.weights.a": "half", "stages.0.gates": "planned", "stages.0.steps": "asked for"}
PLAN = Plan("p", (STAGE,), why=WHY)


def test_nothing_asked_is_nothing_changed():
    assert apply_overrides(PLAN, {}) is PLAN


def test_fields_are_replaced_and_say_who_asked():
    plan = apply_overrides(PLAN, {"selector": "equal_levels", "gates": [], "monitors": ["canary"]})
    assert (plan.stages[0].selector, plan.stages[0].gates, plan.stages[0].monitors) == ("equal_levels", (), ("canary",))
    assert plan.stages[0].weights == STAGE.weights
    assert plan.why["stages.0.gates"] == "set in plan.stage"
    assert plan.why["stages.0.weights.a"] == "half"


def test_reasons_for_replaced_weights_go():
    plan = apply_overrides(PLAN, {"weights": {"a": 1.0}})
    assert "stages.0.weights.a" not in plan.why
    assert plan.why["stages.0.weights"] == "set in plan.stage"


def test_options_are_laid_over_plug_in_by_plug_in():
    plan = apply_overrides(
        PLAN, {"options": {"gates.too_hard": {"min_rollouts": 8.0}, "selectors.difficulty": {"explore": 0.1}}}
    )
    assert plan.stages[0].options == {
        "gates.too_hard": {"z": 2.0, "min_rollouts": 8.0},
        "engine": {"canaries": 8},
        "selectors.difficulty": {"explore": 0.1},
    }


@pytest.mark.parametrize("asked", [{"gate": ["too_hard"]}, {"steps": "many"}, {"options": 3}, {"options": {"engine": 3}}])
def test_what_a_stage_cannot_have_is_refused(asked):
    with pytest.raises(InputError):
        apply_overrides(PLAN, asked)
