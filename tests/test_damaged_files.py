"""Damaged files of a run folder are refused by name, and nothing senseless in them is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixwright.answers.table import Answers
from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.records import Interval, Measurement, SeedRow, TrialResult
from mixwright.run.folder import (
    read_json,
    read_json_lines,
    read_measurements,
    read_plan,
    read_yaml,
    write_json,
    write_measurements,
)
from mixwright.trial.seed_rows import BranchInfo, read_branch

ROWS = [Measurement("competence", "a", "pass@1", 0.5, 0.4, 0.6, 8, "share", 1.0)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_result_with_a_number_that_is_not_finite_is_refused(value: float, tmp_path: Path) -> None:
    row = SeedRow("uniform", 0, "success", 0.5)
    result = TrialResult(("uniform",), (), (), (0,), (row,), (), (), {})
    path = tmp_path / "result.json"
    write_json(path, result)
    damaged = json.loads(path.read_text(encoding="utf-8"))
    damaged["rows"][0]["value"] = value
    path.write_text(json.dumps(damaged), encoding="utf-8")
    with pytest.raises(InputError, match=r"result\.json: expected rows\.0\.value: a finite number"):
        read_json(path, TrialResult)
    path.write_text(f'{{"value": {value}, "low": 0, "high": 1, "n": 3}}'.replace("nan", "NaN").replace("inf", "Infinity"))
    with pytest.raises(InputError, match="finite"):
        read_json(path, Interval)


@pytest.mark.parametrize(
    ("field", "place"), [({"rollouts": {"uniform": "640"}}, r"rollouts\.uniform"), ({"margin": "0.05"}, "margin")]
)
def test_a_number_that_a_result_has_as_a_text_is_refused(field: dict[str, Any], place: str, tmp_path: Path) -> None:
    row = SeedRow("uniform", 0, "success", 0.5)
    path = tmp_path / "result.json"
    write_json(path, TrialResult(("uniform",), (), (), (0,), (row,), (), (), {"uniform": 640}))
    assert read_json(path, TrialResult).rollouts == {"uniform": 640}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | field), encoding="utf-8")
    with pytest.raises(InputError, match=f"{place}: a number, got a text"):
        read_json(path, TrialResult)


def test_a_number_that_yaml_reads_as_a_text_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("corpus: {train: a.jsonl}\ntrain: {learning_rate: 3e-4}\n", encoding="utf-8")
    assert read_yaml(path, RunConfig).train.learning_rate == 3e-4


STAGE = "planner: p\nstages:\n- {name: s, objective: sft, steps: 3, weights: {nan: 1.0}}\n"
CELL = "cells:\n- {task: nan, level: null, state: unknown, success: 0.5, chance: 0.1, n: 3, examples: 4}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ": expected a mapping with cells, planner, stages, why, got nothing."),
        ("planner: p\nstages:\n", ", line 2: expected stages: a list, got nothing."),
        (STAGE.replace("steps: 3, ", ""), ", line 3: expected stages.0.steps: a value, got nothing."),
        (STAGE.replace("steps: 3", "steps: -.inf"), ", line 3: expected stages.0.steps: a finite number, got -inf."),
        (STAGE.replace("1.0", "1e999"), ", line 3: expected stages.0.weights.nan: a finite number, got '1e999'."),
        (
            STAGE + CELL.replace("success: 0.5", "success: .nan"),
            ", line 5: expected cells.0.success: a finite number, got nan.",
        ),
        (STAGE + CELL.replace("0.1", "9e999"), ", line 5: expected cells.0.chance: a finite number, got '9e999'."),
    ],
)
def test_a_plan_that_is_empty_or_not_finite_is_refused_in_our_words(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_plan(path)
    assert f"plan.yaml{told}" in str(caught.value)
    assert "nput should" not in str(caught.value)


def test_a_task_may_be_called_nan(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(STAGE + CELL, encoding="utf-8")
    plan = read_plan(path)
    assert plan.stages[0].weights == {"nan": 1.0}
    assert plan.cells[0].task == "nan"


@pytest.mark.parametrize(
    "line",
    ["{broken", "[1]", "7", "[" * 100_000, "1" * 5000, '{"step": -1}'],
    ids=["broken", "list", "number", "deep", "long", "refused"],
)
def test_a_broken_line_of_json_is_named_with_its_number(line: str, tmp_path: Path) -> None:
    def check(item: Any) -> None:
        if item["step"] < 0:
            raise ValueError("a step below 0")

    path = tmp_path / "lines.jsonl"
    assert list(read_json_lines(path)) == []
    path.write_text(f'{{"step": 0}}\n\n{line}\n', encoding="utf-8")
    lines = read_json_lines(path, check=check, remedy="Do it again.")
    assert next(lines) == {"step": 0}
    with pytest.raises(InputError, match=r"lines\.jsonl, line 3: expected one JSON object per line.*Do it again"):
        next(lines)


@pytest.mark.parametrize(
    "line",
    [[1], {"rollouts": -5}, {"groups": "a"}, {"groups": 2, "mixed": {"a@1": -1}}, {"groups": 2, "mixed": [1]}],
)
def test_a_line_of_a_branch_that_makes_no_sense_is_refused_with_its_number(line: Any, tmp_path: Path) -> None:
    write_json(tmp_path / "branch.json", BranchInfo("uniform", 0, "tiny", "grpo", False, "d"))
    for name in ("before", "after"):
        Answers.from_rows(()).write(tmp_path / f"{name}.answers.parquet")
    good = {"rollouts": 5, "success": {"a@1": [4.0, 8]}, "groups": 2, "mixed": {"a@1": 1}}
    (tmp_path / "steps.jsonl").write_text(f"{json.dumps(good)}\n", encoding="utf-8")
    assert read_branch(tmp_path).info.seed == 0
    (tmp_path / "steps.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(line)}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"steps\.jsonl, line 2: "):
        read_branch(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 0.7},
        {"high": 0.45},
        {"null": float("inf")},
        {"level": float("inf")},
    ],
)
def test_a_measurement_that_makes_no_sense_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "before.parquet"
    write_measurements(path, ROWS)
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist([{**table.to_pylist()[0], **wrong}], table.schema), path)
    with pytest.raises(InputError, match=r"before\.parquet"):
        read_measurements(path)
