"""Checkpoints and comparisons by hand, for tests of several kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from _example_run import item_rows
from answer_rows import write_measured, write_sides
from trainers_tiny import model, tokenizer

from mixwright.records import RunManifest
from mixwright.run.folder import RunFolder, write_json

FAST = ("--samples", "0", "--max-new-tokens", "4")


def checkpoint(name: str, seed: int = 0) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    model(seed).save_pretrained(name)
    tokenizer().save_pretrained(name)
    return name


def right(count: int, of: int = 30) -> list[float]:
    return [float(place < count) for place in range(of)]


def folder(path: Path, sides: Mapping[str, Mapping[str, Sequence[float]]]) -> RunFolder:
    """A comparison by hand: when -> task -> one value per item."""
    run, rows = RunFolder(path), []
    for when, tasks in sides.items():
        parts = {task: {"greedy": values, "greedy.swapped": [0.0] * len(values)} for task, values in tasks.items()}
        write_measured(run.measurements(when), [row for task in parts for row in item_rows((task, None), parts[task])])
        for task, values in tasks.items():
            for place, score in enumerate(values):
                row = {"when": when, "example": f"{task}-{place}", "task": task, "level": None, "prompt": f"{task} {place}?"}
                rows.append(row | {"answer": "yes", "completion": "yes" if score else f"no <b>{when}</b>", "score": score})
    write_sides(run.path / "measure", rows)
    settings = {"checkpoint after": "models/planned"}
    write_json(run.manifest, RunManifest({}, {}, {}, settings, parent="models/smollm2"))
    return run


def example(path: Path) -> RunFolder:
    before = {"capitals": right(30), "sums": right(24)}
    after = {"capitals": right(29), "sums": right(27)}
    return folder(path, {"before": before, "after": after})
