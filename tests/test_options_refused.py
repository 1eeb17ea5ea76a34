"""Options of steering that make no sense are refused with a remedy when the engine is made, and before a run measures."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import plugin_samples as samples
import pytest
import yaml
from steer_world import SUCCESS, outcome, pool

from mixwright import catalog
from mixwright.errors import InputError
from mixwright.plan.validate import validate_plan
from mixwright.records import Cell, CellAssessment, PairOutcome, Plan, Signals, Stage, from_data, to_data
from mixwright.run.folder import read_plan
from mixwright.steer.engine import Engine

EVEN = dict.fromkeys(("chain", "count", "gcd", "lcm", "prime", "spell"), 1 / 6)
CELLS = (Cell("a", 1.0, 10, 0.0), Cell("b", None, 10, 0.0))
NAN = float("nan")


def planned(weights: dict[str, float], **changes: Any) -> Plan:
    """A plan that knows the world's success."""
    cells = [
        CellAssessment(
            task, float(level), "unknown", success, 0.0, 256, 60, max(0.0, success - 0.04), min(1.0, success + 0.04)
        )
        for (task, _, level), success in ((key.partition("@"), success) for key, success in SUCCESS.items())
    ]
    return Plan("hand", (Stage("s", "grpo", 10, weights, **changes),), tuple(cells))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gates.too_hard", {"floor": NAN}),  # nothing is at or over it: every group would be refused
        ("monitors.displacement", {"standard_errors": NAN}),  # nothing exceeds it: no alarm, ever
        ("gates.too_hard", {"floor": 1.5}),
        ("gates.too_hard", {"z": float("inf")}),
        ("selectors.difficulty", {"candidates": 0}),
        ("selectors.difficulty", {"candidates": 10**9}),
        ("selectors.difficulty", {"weight_below": 0.0}),
        ("selectors.difficulty", {"memory": -1.0}),
        ("selectors.difficulty", {"explore": 2.5}),
        ("controllers.drift", {"dead_band": 0.0}),
        ("controllers.drift", {"smooth": 2.5}),
        ("controllers.drift", {"steps_between_moves": -1}),
        ("monitors.displacement", {"window": -1}),
        ("gates.too_hard", {"floor": -1}),
        ("gates.too_hard", {"min_rollouts": 0}),  # nothing would be divided by nothing
        ("monitors.displacement", {"standard_errors": -1}),
        ("monitors.displacement", {"steps_between_alarms": -5}),
        ("probes.retention", {"rare": -1}),
        ("planners.temperature", {"temperature": True}),
        ("planners.difficulty", {"band": [False, True]}),
        ("selectors.difficulty", {"candidates": True}),
    ],
)
def test_an_option_that_would_mislead_or_crash_later_is_refused(name: str, options: dict[str, Any]) -> None:
    kind, _, plugin = name.partition(".")
    with pytest.raises(InputError):
        catalog.create(kind, plugin, options)


def test_a_reward_range_of_texts_is_one_of_numbers_for_every_plug_in() -> None:
    import numpy as np

    here, rng = pool(), np.random.default_rng(0)
    engine = Engine(planned(EVEN, selector="difficulty", options={"engine": {"reward_range": ["0", "1"]}}), here, seed=0)
    engine.observe([outcome(here, index, 1, SUCCESS, rng) for index in engine.draw(8)], Signals(1))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"gates.too_hard": {"flor": 0.1}}, "flor"),
        ({"gates.too_hard": {"floor": 1.5}}, "floor"),
        ({"engine": {"anchr": 0.2}}, "anchr"),
        ({"engine": 3}, "engine"),
        ({"engine": {"reward_range": [1, 1]}}, "low < high"),
        ({"engine": {"reward_range": [0, float("inf")]}}, "reward_range"),
        ({"engine": {"min_informative_share": 2.0}}, "min_informative_share between 0 and 1"),
    ],
)
def test_a_plan_edited_by_hand_is_refused_for_its_options_before_a_model_is_loaded(options: Any, told: str) -> None:
    plan = to_data(planned(EVEN, selector="difficulty", gates=("too_hard",), options=options))
    with pytest.raises(InputError, match=told):
        validate_plan(from_data(Plan, plan), pool().cells)


def test_a_state_that_was_taken_does_not_move_with_the_run() -> None:
    monitor = catalog.create("monitors", "displacement", {"window": 4, "min_pairs": 4})
    pairs = [PairOutcome("p", "t", None, 0, -20.0, -40.0) for _ in range(4)]
    taken = monitor.state()
    before = copy.deepcopy(taken)
    for step in range(20):
        monitor.observe(step, [*samples.groups(step), *pairs])
        monitor.inspect(Signals(step))
    assert taken == before
    assert monitor.state() != before


CELL = {"task": "gcd", "level": 1.0, "state": "unknown", "success": 0.5, "chance": 0.1, "n": 8, "examples": 10}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"success": 5.0}, r"cells\.0\.success: a number less than"),
        ({"success": NAN}, r"cells\.0\.success: a finite number, got nan"),
        ({"chance": NAN}, r"cells\.0\.chance: a finite number, got nan"),
        ({"chance": 7}, r"cells\.0\.chance: a number less than"),
        ({"n": -5}, r"cells\.0\.n: a number greater than"),
        ({"examples": -5}, r"cells\.0\.examples: a number greater than"),
        ({"kappa": NAN}, "cells.0.kappa: a finite number"),
    ],
)
def test_a_cell_of_a_plan_that_makes_no_sense_is_refused_with_its_line(
    wrong: dict[str, Any], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    plan = to_data(planned(EVEN)) | {"cells": [CELL | wrong]}
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    with pytest.raises(InputError, match=told) as caught:
        read_plan(path)
    assert caught.value.line


def test_a_plan_names_each_cell_once_and_trains_no_longer_than_anybody_could_wait() -> None:
    plan = to_data(planned(EVEN))
    lost = CELL | {"level": 99.0}  # data may have lost a level since
    validate_plan(from_data(Plan, plan | {"cells": [CELL, lost]}), pool().cells)
    with pytest.raises(InputError, match="'gcd@1' twice"):
        validate_plan(from_data(Plan, plan | {"cells": [CELL, CELL]}), pool().cells)
    with pytest.raises(InputError, match="at most 10,000,000"):
        validate_plan(from_data(Plan, plan | {"stages": [{**plan["stages"][0], "steps": 10**11}]}), pool().cells)
