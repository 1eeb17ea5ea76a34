"""Growth of `audit` and `verdict --gate` with rows, tasks, levels and cells: CPU seconds of the commands, one thread.

Each command runs in a process of its own, the larger size after the smaller. `verdict` judges a folder again whose models
were measured before, so that no model is in its time: a tiny model, and the same with noise on its weights, on twelve items
of each cell. Linear means: between two sizes the seconds grow at most 1.5 times as much as the size does. Goals were fixed
after one round of sizes like these by a script (`mixwright_lab/log.md`, 2026-11-25), which had found 1.5, 5.3 and 38 seconds
for `verdict`, and 18, 172, 8.5 and 100 for `audit`.

    python -m mixwright_lab.studies.growth [--quick]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.studies.report import Goal, Result, run

CELLS = (100, 400, 2000)
ITEMS, LEVELS = 12, 10
AUDITS = ((100_000, 12, 1), (1_000_000, 12, 1), (100_000, 5_000, 1), (1_000_000, 50_000, 1), (100_000, 1, 100_000))
"""Rows, tasks, and levels of a task."""
MOST_SECONDS = 60.0
"""Of 2,000 cells."""
STEEPEST = 1.5
WORDS = tuple(f"{one}{other}" for one in ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti") for other in "abdegilmnorstu")


def cpu_of(arguments: list[str]) -> float:
    """CPU seconds, user and system, of a command line of mixwright that must end without a traceback.

    Raises:
        RuntimeError: it ended with another exit code than 0, 3 or 4.
    """
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "mixwright", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3, 4):
        raise RuntimeError(f"mixwright {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-500:]}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def write_rows(path: Path, rows: int, tasks: int, levels: int) -> None:
    """Questions with short answers, all different, tasks and levels in turn."""
    rng = random.Random(rows + tasks)
    with path.open("w", encoding="utf-8") as out:
        for number in range(rows):
            words = " ".join(rng.choice(WORDS) for _ in range(6))
            row: dict[str, Any] = {
                "task": f"task{number % tasks}",
                "prompt": f"{words} {number}?",
                "answer": rng.choice(WORDS),
            }
            if levels > 1:
                row["level"] = number // tasks % levels
            out.write(json.dumps(row) + "\n")


def write_models(place: Path, texts: list[str]) -> tuple[Path, Path]:
    """A tiny model, and one whose weights differ a little."""
    import torch

    from mixwright.config import ModelConfig
    from mixwright.learner.tiny import build_tiny

    learner = build_tiny(texts, ModelConfig(width=32, depth=1), seed=0)
    learner.save(place / "before")
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in learner.model.parameters():
            weights.add_(0.1 * torch.randn_like(weights))
    learner.save(place / "after")
    return place / "before", place / "after"


def judge_cells(place: Path, cells: int) -> float:
    """CPU seconds of judging so many cells, ten of each task."""
    path, folder = place / f"cells-{cells}.jsonl", place / f"cells-{cells}"
    write_rows(path, ITEMS * cells, cells // LEVELS, LEVELS)
    texts = [json.loads(line)["prompt"] for line in path.read_text(encoding="utf-8").splitlines()[:500]]
    before, after = write_models(place / f"models-{cells}", texts)
    how = ["--items", str(ITEMS), "--samples", "1", "--max-new-tokens", "4", "--gate"]
    cpu_of(["verdict", str(before), str(after), "--corpus", str(path), "--folder", str(folder), *how])
    seconds = cpu_of(["verdict", str(folder), "--gate"])
    judged = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    print(f"{cells} cells: {len(judged)} claims", file=sys.stderr, flush=True)
    return seconds


def measure(quick: bool) -> Result:
    """Every size once."""
    cells, audits = ((10, 40), ((1_000, 12, 1), (5_000, 12, 1))) if quick else (CELLS, AUDITS)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for count in cells:
            rows.append({"verb": "verdict", "cells": count, "seconds": judge_cells(place, count)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        for count, tasks, levels in audits:
            write_rows(path := place / "audited.jsonl", count, tasks, levels)
            seconds = cpu_of(["audit", str(path)])
            rows.append({"verb": "audit", "rows": count, "tasks": tasks, "levels": levels, "seconds": seconds})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    by_cells = [(row["cells"], row["seconds"]) for row in rows if row["verb"] == "verdict"]
    by_rows = [(row["rows"], row["seconds"]) for row in rows if row["verb"] == "audit"][:2]
    by_tasks = [(row["rows"], row["seconds"]) for row in rows if row["verb"] == "audit"][2:4]
    largest = by_cells[-1][1]
    goals = [
        Goal(f"CPU seconds of {by_cells[-1][0]} cells", _exact(largest), f"< {MOST_SECONDS:g}", largest < MOST_SECONDS),
        _linear("verdict, cells", by_cells[-2:]),
        _linear("audit, rows of 12 tasks", by_rows),
        *([_linear("audit, 20 rows of each task", by_tasks)] if by_tasks else []),
    ]
    unit = "CPU seconds of judging the most cells"
    return Result(_exact(largest), unit, (0,), rows, settings={"items of a cell": ITEMS}, goals=goals)


def _linear(name: str, sizes: list[tuple[int, float]]) -> Goal:
    """Growth of the seconds over growth of the size."""
    (small, quick), (large, slow) = sizes
    ratio = slow / quick / (large / small)
    return Goal(f"{name}: growth of seconds over growth of size", _exact(ratio), f"<= {STEEPEST:g}", ratio <= STEEPEST)


def _exact(value: float) -> Interval:
    """A figure that was taken once and has no interval."""
    return Interval(value, value, value, 1)


if __name__ == "__main__":
    run("growth", __doc__, measure)
