"""Answers of the checkpoints of a run, item by item, and how they stand side by side on the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from mixwright.corpus.chosen_graders import CUT_MARK
from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.measure.bases import read_completion_rows
from mixwright.verdict.page.blocks import Answer, Pair
from mixwright.verdict.page.text import format_level

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


def make_pair(
    item: ItemAnswers, names: tuple[str, str] = ("before", "after"), between: Mapping[str, str] | None = None
) -> Pair:
    """The answers of an item for the page; one that ran into the limit of tokens is marked.

    Args:
        item: what was written.
        names: what before and after are called.
        between: further checkpoints, each with what it is called.
    """
    before_row, name_by_time = item["before"], {"before": names[0], "after": names[1], **(between or {})}
    texts = {checkpoint: str(row["completion"] or "") for checkpoint, row in item.items()}
    scores = {checkpoint: float(row["score"] or 0.0) for checkpoint, row in item.items()}
    label_by_time = {
        checkpoint: name + CUT_MARK * bool(item[checkpoint].get("cut")) for checkpoint, name in name_by_time.items()
    }
    other_answers = tuple(
        Answer(label_by_time[checkpoint], texts[checkpoint], scores[checkpoint]) for checkpoint in between or {}
    )
    title = " · ".join(text for text in (before_row["task"] or "", format_level(before_row["level"])) if text)
    labels = label_by_time["before"], label_by_time["after"]
    prompt, gold = str(before_row["prompt"] or ""), str(before_row["answer"] or "")
    return Pair(
        title, prompt, gold, texts["before"], texts["after"], scores["before"], scores["after"], labels, other_answers
    )


def interleave_groups(rows: Sequence[T], group_of: Callable[[T], str]) -> list[T]:
    """The rows with their groups taking turns, each group in its own order."""
    groups: dict[str, list[T]] = defaultdict(list)
    for row in rows:
        groups[group_of(row)].append(row)
    return [row for turn in zip_longest(*groups.values()) for row in turn if row is not None]
