"""Rows held back as canaries: measured ones wherever a lever may read them, others only where they were asked for."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright.records import CellAssessment, Plan, Stage
from mixwright.steer.canaries import WHY_UNMEASURED
from mixwright.steer.engine import Engine
from mixwright.steer.pool import make_pool

POOL = make_pool([f"r{row}" for row in range(80)], ["a"] * 40 + ["b"] * 40)
MEASURED = (CellAssessment("a", None, "hopeless", 0.02, 0.0, 64, 40),)
NAMED = (CellAssessment("a", None, "mastered", None, 0.0, 0, 40),)
"""A state that somebody wrote down, and no success."""
GATED: dict[str, Any] = {"gates": ("too_hard",)}


def held(cells: tuple[CellAssessment, ...] = (), objective: Any = "grpo", **stage: Any) -> tuple[dict[str, int], str]:
    """Canaries per task, and why there are none."""
    made = Stage("s", objective, 9, {"a": 0.5, "b": 0.5}, **stage)
    engine = Engine(Plan("p", (made,), cells), POOL, seed=0)
    tasks = [POOL.tasks[POOL.task_of[row]] for row in engine.canaries]
    return {task: tasks.count(task) for task in sorted(set(tasks))}, engine.why_unwatched


@pytest.mark.parametrize(
    ("stage", "found"),
    [
        (GATED, {}),
        ({"controllers": ("drift",)}, {}),  # in GRPO the trainer measures the KL
        ({"monitors": ("canary",)}, {"a": 10, "b": 10}),  # a quarter of 40
        (GATED | {"options": {"engine": {"canaries": 3}}}, {"a": 3, "b": 3}),
        (GATED | {"options": {"engine": {"canaries": 0}}}, {}),
        ({"monitors": ("canary",), "options": {"engine": {"canaries": 0}}}, {}),
    ],
)
def test_rows_that_nobody_measured_are_watched_only_where_it_was_asked_for(stage: Any, found: dict[str, int]) -> None:
    assert held(**stage)[0] == found
    assert held(NAMED, **stage)[0] == ({"a": found["a"]} if found else {}), "a state without a success is no measurement"


@pytest.mark.parametrize("stage", [GATED, {"controllers": ("drift",)}])
def test_measured_rows_are_watched_wherever_a_lever_may_read_them(stage: Any) -> None:
    assert held(MEASURED, **stage) == ({"a": 10}, "")


def test_a_named_monitor_watches_the_best_rows_measured_or_not() -> None:
    """Rows of which nothing is known come before hopeless ones."""
    assert held(MEASURED, monitors=("canary",))[0] == {"b": 10}


def test_why_there_are_none() -> None:
    assert "GateCallback" in held(MEASURED, "sft", monitors=("canary",))[1]
    assert held()[1] == "no gate, controller or monitor of the stage uses them"
    assert held(**GATED)[1] == WHY_UNMEASURED
    assert "canaries: 0" in held(**GATED, options={"engine": {"canaries": 0}})[1]
    few = Engine(Plan("p", (Stage("s", "grpo", 9, {"t": 1.0}, monitors=("canary",)),)), make_pool(["x"], ["t"]), seed=0)
    assert (few.canaries, few.why_unwatched) == ((), "there are too few rows to hold any back")
