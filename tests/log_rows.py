"""What tests of evaluation logs share: rows of a plain log, and what a comparison of two logs left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.answers.score import read_scores
from mixwright.records import Observation
from mixwright.run.folder import RunFolder, read_list

FOLDER = Path("runs/comparison")


def plain_rows(right: Sequence[bool], task: str = "sum", **more: Any) -> list[dict[str, Any]]:
    """A row per item, numbered from 0; `n+1=` with its answer, and a wrong one where it is not right."""
    return [
        {"task": task, "id": n, "prompt": f"{task} {n}+1=", "answer": str(n + 1), "score": int(hit)}
        | {"completion": str(n + 1) if hit else f"{n + 2}", **more}
        for n, hit in enumerate(right)
    ]


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def success(name: str = "greedy") -> tuple[dict[str, float], dict[str, float]]:
    """Item -> success before, and after."""
    sides = (read_scores(RunFolder(FOLDER).measurements(when)) for when in ("before", "after"))
    before, after = ({item[2]: value for item, value in side.by_item(name).items()} for side in sides)
    return before, after


def notes() -> list[Observation]:
    return read_list(RunFolder(FOLDER).notes, Observation)


def verdict() -> dict[str, Any]:
    return json.loads((FOLDER / "verdict.json").read_text(encoding="utf-8"))
