"""Answers of tests: a row per item, with the names that pages have for its columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mixwright.answers.table import Answers

NAMES = {"example": "item", "completion": "text", "answer": "gold"}


def to_answers(rows: Iterable[Mapping[str, Any]]) -> Answers:
    first = {"decoding": "greedy", "sample": 0, "text": "?", "cut": False}
    return Answers.from_rows(first | {NAMES.get(name, name): value for name, value in row.items()} for row in rows)


def write_sides(folder: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with `when` as the answers of each side."""
    sides: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        sides[row["when"]].append(row)
    for side, own in sides.items():
        to_answers(own).write(folder / f"{side}.answers.parquet")
