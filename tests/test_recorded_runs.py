"""Recordings of runs: what is compared and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import compare, differences, values


def write(folder: Path, **changed: object) -> Path:
    """The files of a run, as a recording reads them."""
    runs = folder / "runs" / "grpo"
    runs.mkdir(parents=True)
    (runs / "plan.yaml").write_text(json.dumps({"stages": [{"steps": 4}]}))
    line = {"step": 1, "because": changed.get("because", "3 of 4, 1.5 CPU seconds"), "seconds": changed.get("seconds", 2.0)}
    (runs / "decisions.jsonl").write_text(json.dumps(line) + "\n")
    vectors = [[changed.get("number", 0.25)] * 20, [0.0] * 20]
    pq.write_table(pa.table({"id": ["a", "b"], "hidden": vectors}), runs / "scan.parquet")
    (runs / "model.safetensors").write_bytes(b"weights")
    (runs / "verdict.html").write_text(f"<style>b{{}}</style><p>{changed.get('page', 'it helps')}</p>")
    found = values(folder / "runs")
    (folder / "values.json").write_text(json.dumps(found))
    return folder


def test_times_and_places_are_left_out(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b", seconds=9.0, because="3 of 4, 9.75 CPU seconds")
    found = values(one / "runs")
    assert found["grpo/decisions.jsonl/0/because"] == "3 of 4, # CPU seconds"
    assert "grpo/decisions.jsonl/0/seconds" not in found
    assert found["grpo/verdict.html/it helps"] == 1
    assert compare(one, other) == 0


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"because": "2 of 4, 1.5 CPU seconds"}, "grpo/decisions.jsonl/0/because"),
        ({"number": 0.2500001}, "grpo/scan.parquet/hidden/0"),
        ({"page": "it harms"}, "grpo/verdict.html/it harms"),
    ],
)
def test_a_value_that_changed_is_found(
    changed: dict[str, object], path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(write(tmp_path / "a"), write(tmp_path / "b", **changed)) == 1
    assert path in capsys.readouterr().out


def test_whole_numbers_and_truth_values_are_no_equals() -> None:
    assert differences({"a": 1, "b": 1.0}, {"a": True, "b": 1.0}) == {"a": (1, True)}
