"""Details of lighteval in, verdict out; rows have the form of its `Detail`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call
from log_rows import FOLDER, success

from mixwright.logs.lighteval import read_lighteval
from mixwright.logs.reading import read_log
from mixwright.run.folder import RunFolder, read_measurements

DATE = "2026-05-01T10-00-00.123456"
CHOICES = ["red", "green", "blue"]


def written(right: Sequence[bool]) -> list[dict[str, Any]]:
    """Answers in words."""
    return [
        {
            "doc": {
                "query": f"What is {n}+7?",
                "choices": [str(n + 7)],
                "gold_index": [0],
                "instruction": None,
                "id": str(n),
                "task_name": "sums|0",
                "num_samples": 1,
                "generation_size": 32,
            },
            "model_response": {
                "input": f"<user>What is {n}+7?",
                "input_tokens": [1, 2],
                "text": [str(n + 7) if hit else "0"],
                "output_tokens": [[3]],
                "logprobs": [],
                "logits": None,
            },
            "metric": {"em": float(hit)},
        }
        for n, hit in enumerate(right)
    ]


def chosen(places: Sequence[int], golds: Sequence[int]) -> list[dict[str, Any]]:
    """Log-probabilities of options."""
    return [
        {
            "doc": {"query": f"Colour {n}?", "choices": CHOICES, "gold_index": gold, "id": str(n), "num_samples": 1},
            "model_response": {
                "input": f"Colour {n}?",
                "text": [],
                "logprobs": [-0.5 if place == option else -2.0 for option in range(3)],
            },
            "metric": {"acc": float(place == gold)},
        }
        for n, (place, gold) in enumerate(zip(places, golds, strict=True))
    ]


def details(folder: str, tasks: dict[str, list[dict[str, Any]]], general: dict[str, Any] | None = None) -> str:
    """Details, and the results beside them, as lighteval writes them under its --output-dir."""
    for task, rows in tasks.items():
        path = Path(folder, "details", "org", "small", DATE, f"details_{task}_{DATE}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
    if general is not None:
        path = Path(folder, "results", "org", "small", f"results_{DATE}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"config_general": general, "results": {}, "versions": dict.fromkeys(tasks, 0)}))
    return folder


def test_written_answers_are_compared(call: Call) -> None:
    general = {"model_name": "org/small", "generation_parameters": {"temperature": 0.0, "max_new_tokens": None}}
    before = details("before", {"lighteval|sums|0": written([True] * 20)}, general)
    after = details("after", {"lighteval|sums|0": written([True] * 11 + [False] * 9)}, general)
    code, out, err = call("verdict", before, after, "--protect", "lighteval|sums")
    assert code == 3, out + err
    old, new = success()
    assert (sum(old.values()), sum(new.values())) == (20.0, 11.0)
    value = {row.name: row.value for row in read_measurements(RunFolder(FOLDER).measurements("before"))}
    assert value["greedy.dependence"] == pytest.approx(1.0)
    log = read_log("before")
    assert (log.model, log.tasks["lighteval|sums"].sampled) == ("org/small", False)
    assert log.tasks["lighteval|sums"].settings["few-shot examples"] == "0"


def test_options_are_compared(call: Call) -> None:
    golds = [n % 3 for n in range(30)]
    before, after = (
        details("before", {"colours|0": chosen(golds, golds)}),
        details("after", {"colours|0": chosen([0] * 30, golds)}),
    )
    assert call("verdict", before, after, "--protect", "colours")[0] == 3
    value = {row.name: row.value for row in read_measurements(RunFolder(FOLDER).measurements("after"))}
    assert value["greedy"] == pytest.approx(1 / 3)
    assert value["greedy.dependence"] == pytest.approx(0.0, abs=1e-9)


def test_columns_with_underscores_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / f"details_sums|0_{DATE}.parquet"
    rows = [{f"__{name}__": value for name, value in row.items()} for row in written([True])]
    pq.write_table(pa.Table.from_pylist(rows), path)
    (answer,) = read_lighteval(str(path)).answers
    assert (answer.item, answer.scores, answer.gold, answer.completion) == ("0", {"em": 1.0}, "7", "7")


def test_what_is_better_where_it_is_lower_is_not_judged(tmp_path: Path) -> None:
    """The details have metrics by name; the results file says their order, and that a share of failures is no success."""
    made = written([True, False, True, True])
    for row, failed in zip(made, (0.0, 1.0, 0.0, 0.0), strict=True):
        row["metric"] = {"a_failure": failed, "em": row["metric"]["em"], "another": 1.0}
    folder = details(str(tmp_path / "run" / "deep" / "deeper"), {"sums": made}, {"model_name": "org/small"})
    path = next(Path(folder).rglob("results_*.json"))
    metric = {"metric_name": ["em", "another", "a_failure"], "higher_is_better": {"em": True, "another": True}}
    metric["higher_is_better"]["a_failure"] = False
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"config_tasks": {"sums": {"metrics": [metric]}}}))
    task = read_log(str(tmp_path / "run")).tasks["sums"]
    assert task.metrics == ("em", "another", "a_failure")
    assert task.lower_is_better == {"a_failure"}
