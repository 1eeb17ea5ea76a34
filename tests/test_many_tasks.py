"""Thousands of tasks: what a run writes and logs grows with its batches, not with the number of its tasks."""

from __future__ import annotations

import gc
import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cli_call import Call, write
from log_rows import plain_rows, write_lines

from mixwright import catalog
from mixwright.corpus import Corpus, identity
from mixwright.corpus import cells as corpus_cells
from mixwright.estimates.outcome import ItemScores, estimate_change
from mixwright.records import Example, GroupOutcome, Plan, Stage
from mixwright.steer.beside.files import SteeringFiles
from mixwright.steer.beside.run import RunSteering
from mixwright.steer.engine import Engine
from mixwright.steer.pool import make_pool
from mixwright.verdict import judge
from mixwright.verdict.rules import cells, gate
from mixwright.verdict.rules.cells import compare_cells

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
    assert set(line["scored"]) == drawn
    assert run.metrics["steering/tasks_scored"] == [len(drawn)]
    assert len(run.metrics) < 20


def test_plug_ins_are_read_once_and_tasks_are_told_in_a_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(catalog, "_read_entry", lambda *of, own=catalog._read_entry: read.append(of[:2]) or own(*of))
    rows = [{"task": name, "prompt": f"{name}: {n}+1=", "answer": str(n + 1)} for name in NAMES[:300] for n in range(10, 18)]
    write("many.jsonl", rows)
    code, _, err = call("run", "--init", "many.jsonl")
    assert code == 0, err
    assert len(read) == len(set(read)), "a file of the catalogue was read again for another task"
    assert "and 292 more" in err
    assert len(err) < 1000


def test_rows_of_small_cells_are_put_together_once_for_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level for each row has as many small cells as rows; their task's rows are joined once, not once for each."""
    joined: list[int] = []
    real = np.concatenate

    def count_joins(parts: Any, *rest: Any, **more: Any) -> Any:
        joined.append(1)
        return real(parts, *rest, **more)

    rows = [Example(f"r{n}", "ab"[n % 2], f"{n}+1=", answer=str(n + 1), level=float(n)) for n in range(60)]
    corpus = Corpus.from_examples(rows)
    monkeypatch.setattr(corpus_cells.np, "concatenate", count_joins)
    assert len(corpus_cells.find_cells(corpus)) == 60
    assert len(joined) < 10, "once for each of two tasks, and what numpy itself joins"


def test_a_comparison_split_by_task_is_that_of_each_task_alone() -> None:
    rng = np.random.default_rng(0)

    def side() -> ItemScores:
        items = [(f"t{n}", float(level), f"e{row}") for n in range(9) for level in range(2) for row in range(10)]
        names = ("greedy", "greedy.swapped", "pass@1", "pass@1.swapped", "chance")
        return ItemScores.of({name: {item: float(rng.random() < 0.5) for item in items} for name in names})

    before, after = side(), side()
    found = {(part.task, part.level, part.whole): part.judged for part in compare_cells(([before], [after]), "greedy")}
    assert len(found) == 27
    for (task, level, whole), estimate in found.items():
        alone = estimate_change(
            [before],
            [after],
            included=lambda items, own=(task, level, whole): (
                items.of_tasks(own[:1]) if own[2] else items.of_cells([own[:2]])
            ),
        )
        assert alone is not None
        assert alone.estimate == estimate


def test_a_verdict_on_logs_works_each_task_out_once(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate, claims, sections and the data of a page ask for the same of thousands of tasks."""
    for folder, right in (("before", {0, 1, 2}), ("after", {0, 3})):
        rows = [row for name in NAMES[:200] for row in plain_rows([n in right for n in range(5)], name)]
        write_lines(f"{folder}.jsonl", rows)
    counts: Counter[str] = Counter()

    def count(module: ModuleType, name: str) -> None:
        own = getattr(module, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return own(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)

    count(cells, "estimate_change")
    count(judge, "chance_level")
    count(gate, "check_protected")
    count(identity, "build_table")
    code, out, err = call("verdict", "before.jsonl", "after.jsonl", "--gate")
    assert code == 3, out + err
    assert counts == {"estimate_change": 200, "chance_level": 200, "check_protected": 1}
    assert gc.isenabled()
