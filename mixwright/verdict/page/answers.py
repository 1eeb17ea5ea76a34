"""Answers of the checkpoints of a run, item by item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.measure.bases import read_completion_rows

T = TypeVar("T")
ItemAnswers = dict[str, Mapping[str, Any]]
"""What the checkpoints wrote for one item: before, after (or the name of a third one) -> row of completions.parquet."""
COLUMNS = ("when", "example", "task", "level", "prompt", "answer", "completion", "score")


def read_answers(path: Path) -> list[ItemAnswers]:
    """The items that were answered before and after, in the table's order; none without one. Raises InputError."""
    rows = read_completion_rows(path)
    if rows and not rows[0].keys() >= set(COLUMNS):
        got = f"one with {', '.join(rows[0])}"[:120]
        raise InputError(f"a table with columns {', '.join(COLUMNS)}", got, "Measure again.", file=path)
    return list(pair_answers(rows).values())


def pair_answers(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], ItemAnswers]:
    """(Task, example) -> its rows, of those that were answered before and after; the first row of a checkpoint counts."""
    items: dict[tuple[str, str], ItemAnswers] = defaultdict(dict)
    for row in rows:
        items[str(row["task"] or ""), str(row["example"] or "")].setdefault(str(row["when"]), row)
    return {key: item for key, item in items.items() if {"before", "after"} <= item.keys()}


def is_right(row: Mapping[str, Any]) -> bool:
    """Whether an answer earned what counts as right."""
    return float(row["score"] or 0.0) >= RIGHT_FROM_SCORE


def interleave_groups(rows: Sequence[T], group_of: Callable[[T], str]) -> list[T]:
    """The rows with their groups taking turns, each group in its own order."""
    groups: dict[str, list[T]] = defaultdict(list)
    for row in rows:
        groups[group_of(row)].append(row)
    return [row for turn in zip_longest(*groups.values()) for row in turn if row is not None]
