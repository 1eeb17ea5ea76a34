"""The planner `rare_tasks` on made-up retention measurements, against shares worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.errors import InputError
from mixwright.plan.validate import validate_plan
from mixwright.records import Cell, Measurement, TrainingSetup
from mixwright_extras.planners.rare_tasks import RareTasks

CELLS = [Cell("common", None, 900, 0.0), Cell("middle", None, 80, 0.0), Cell("rare", None, 20, 0.0)]


def row(task: str, name: str, value: float, low: float | None = None) -> Measurement:
    return Measurement("retention", task, name, value, value if low is None else low, value + 1, 32, "unit")


def measured(
    *,
    gain: float = 1.0,
    low: float = 0.5,
    kept: float = 0.5,
    life: float = 40.0,
    losses: tuple[float, ...] = (0.0, 1.0, 2.0),
) -> list[Measurement]:
    """Only `rare` was probed: a burst of 500 rows gained `gain` of its loss; `kept` of it was left after 40 steps."""
    found = [row(task, "loss", loss) for task, loss in zip(("common", "middle", "rare"), losses, strict=True)]
    found += [row("rare", "burst_gain", gain, low), row("rare", "burst_rows", 500.0)]
    if low > 0:
        found += [
            row("rare", "retained@10", 0.9),
            row("rare", "retained@25", kept),
            row("rare", "retained@40", kept),
            row("rare", "half_life", life),
        ]
    return found


def planned(measurements: list[Measurement], steps: int = 200, batch: int = 100, left: float = 0.0):
    plan = RareTasks(left=left).plan(CELLS, measurements, TrainingSetup(steps, "sft", batch))
    validate_plan(plan, CELLS)
    return plan.stages[0].weights, plan.why


def test_weights_are_rows_needed_over_rows_of_the_run_and_the_rest_is_natural():
    weights, why = planned(measured())
    rare = 500 * 2.0 / 1.0 / 0.5 / 20_000  # 2000 rows of 20000
    middle = 1.0 * 1000 / 20_000  # one nat at 1000 rows per nat
    rest = 1 - rare - middle
    assert weights == pytest.approx(
        {"common": 0.9 * rest, "middle": middle + 0.08 * rest, "rare": rare + 0.02 * rest}, abs=1e-4
    )
    assert "10.00%" in why["stages.0.weights.rare"]
    assert "50%" in why["stages.0.weights.rare"]
    assert "1000 rows per nat" in why["stages.0.weights.middle"]
    assert "needs 15%" in why["stages.0.weights"]
    assert "capacity" not in why["stages.0.weights"]


def test_the_largest_safe_gap_is_the_half_life_over_2_ln_2_and_no_task_waits_longer():
    _, why = planned(measured(life=40.0))
    assert f"largest safe gap {40 / (2 * math.log(2)):.0f} steps" in why["stages.0.weights.rare"]
    assert "largest safe gap unknown" in why["stages.0.weights.middle"]
    # A half-life of a tenth of a step asks for 13.9 rows per step of 100, more than the 10 that learning it needs.
    weights, _ = planned(measured(life=0.1))
    gap = 0.1 / (2 * math.log(2))
    need = 1 / (100 * gap)
    assert weights["rare"] == pytest.approx(need + 0.02 * (1 - need - 0.05), abs=1e-4)


def test_needs_over_the_whole_run_are_told_as_capacity_and_scaled_down():
    weights, why = planned(measured(losses=(2.0, 2.0, 2.0)), steps=50)
    assert "120% of the 5000 rows" in why["stages.0.weights"]  # 2000 rows each
    assert "may not fit" in why["stages.0.weights"]
    assert "capacity" not in why["stages.0.weights"]
    assert weights == pytest.approx({"common": 0.3 + 0.09, "middle": 0.3 + 0.008, "rare": 0.3 + 0.002}, abs=1e-4)
    same, why = planned(measured(losses=(2.0, 2.0, 2.0)), steps=29)
    assert same == pytest.approx(weights, abs=1e-3)
    assert "capacity, not frequency, seems to be the limit: learning every task needs 207%" in why["stages.0.weights"]


def test_a_burst_that_teaches_nothing_is_told_and_given_nothing():
    weights, why = planned(measured(gain=0.01, low=-0.1))
    assert weights["rare"] == pytest.approx(0.02 + 0.02 * 0.98, abs=1e-3)
    assert "frequency is not the limit" in why["stages.0.weights.rare"]


def test_an_odd_share_kept_is_believed_within_bounds_only():
    wild, least = planned(measured(kept=-3.0))[0], planned(measured(kept=0.1))[0]
    assert wild == least
    assert planned(measured(kept=7.0))[0] == planned(measured(kept=1.0))[0]


def test_loss_that_remains_whatever_is_done_is_not_to_be_learnt():
    weights, why = planned(measured(), left=1.0)
    assert "1.00 of 1.00 nats" in why["stages.0.weights.rare"]
    assert weights["rare"] < planned(measured())[0]["rare"]


def test_a_task_whose_loss_is_unknown_keeps_its_share():
    known = [found for found in measured() if found.task != "middle"]
    weights, why = planned(known)
    assert weights["middle"] == pytest.approx(0.08 + 0.08 * (1 - 0.1 - 0.08), abs=1e-3)
    assert "was not measured" in why["stages.0.weights.middle"]


def test_without_the_probe_it_says_what_is_missing():
    with pytest.raises(InputError, match="Add retention to measure"):
        RareTasks().plan(CELLS, [], TrainingSetup(10))
    with pytest.raises(InputError, match="Correct plan"):
        RareTasks(left=-1.0)


@settings(deadline=None, max_examples=60)
@given(
    gain=st.floats(1e-3, 5), kept=st.floats(-2, 3), life=st.floats(0.5, 400), steps=st.integers(1, 5000),
    losses=st.tuples(*[st.floats(0, 6)] * 3),
)  # fmt: skip
def test_whatever_was_measured_the_weights_are_shares_and_the_common_task_keeps_a_part(gain, kept, life, steps, losses):
    weights, why = planned(measured(gain=gain, low=gain / 2, kept=kept, life=life, losses=losses), steps=steps, batch=8)
    assert sum(weights.values()) == pytest.approx(1, abs=1e-3)
    assert weights["common"] >= 0.09 - 1e-3
    assert all(f"stages.0.weights.{task}" in why for task in weights)


@settings(deadline=None, max_examples=30)
@given(st.floats(0.1, 2), st.floats(0.1, 2), st.floats(0.1, 1), st.floats(0.1, 1))
def test_what_learns_slower_or_is_forgotten_faster_gets_no_less(gain, other, kept, more):
    low, high = sorted((gain, other))
    assert planned(measured(gain=low, low=0.05))[0]["rare"] >= planned(measured(gain=high, low=0.05))[0]["rare"] - 1e-4
    least, most = sorted((kept, more))
    assert planned(measured(kept=least))[0]["rare"] >= planned(measured(kept=most))[0]["rare"] - 1e-4
