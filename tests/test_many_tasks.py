"""Thousands of tasks: what a run writes and logs grows with its batches, not with the number of its tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_call import Call, write

from mixwright import catalog
from mixwright.records import GroupOutcome, Plan, Stage
from mixwright.steer.beside.files import SteeringFiles
from mixwright.steer.beside.run import RunSteering
from mixwright.steer.engine import Engine
from mixwright.steer.pool import make_pool

TASKS = 1500
NAMES = [f"task{number}" for number in range(TASKS)]
POOL = make_pool([f"row{number}" for number in range(2 * TASKS)], NAMES * 2)


def engine() -> Engine:
    weights = {name: (1 + number % 7) / sum(1 + n % 7 for n in range(TASKS)) for number, name in enumerate(NAMES)}
    return Engine(Plan("test", (Stage("s", "grpo", 10, weights),)), POOL, seed=0)


def test_lines_and_metrics_speak_of_the_tasks_of_the_batch(tmp_path: Path) -> None:
    run = RunSteering(engine(), POOL, SteeringFiles(tmp_path), beta=0.0)
    run.files.clear()
    rows = run.draws.read_or_draw(0, 8)
    groups = [GroupOutcome(POOL.ids[row], POOL.tasks[POOL.task_of[row]], None, 1, (1.0, 0.0)) for row in rows]
    run.observe(1, groups, rows=8, completions=16, kl=None)
    run.finish_step(kl=None, entropy=None)
    (text,) = (tmp_path / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    line = json.loads(text)
    drawn = {group.task for group in groups}
    assert set(line["wanted"]) == set(line["states"]) == set(line["cells"]) == set(line["drawn"]) == drawn
    assert run.metrics["steering/tasks_drawn"] == [len(drawn)]
    assert len(run.metrics) < 20


def test_plug_ins_are_read_once_and_tasks_are_told_in_a_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(catalog, "_read", lambda kind, path, own=catalog._read: read.append(path) or own(kind, path))
    rows = [{"task": name, "prompt": f"{name}: {n}+1=", "answer": str(n + 1)} for name in NAMES[:300] for n in range(10, 18)]
    write("many.jsonl", rows)
    code, _, err = call("run", "--init", "many.jsonl")
    assert code == 0, err
    assert len(read) == len(set(read)), "a file of the catalogue was read again for another task"
    assert "and 292 more" in err
    assert len(err) < 1000
