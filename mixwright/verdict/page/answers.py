"""Answers of the checkpoints of a run, item by item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import AnswerPair

T = TypeVar("T")
ItemPairs = Mapping[tuple[str, str], AnswerPair]
"""(Task, item) -> its answers before and after."""
SIDES = ("before", "after")


def find_answers(folder: Path) -> dict[str, Path]:
    """Side -> file of its answers in a folder, of those that are there."""
    files = {side: folder / f"{side}.answers.parquet" for side in SIDES}
    return {side: path for side, path in files.items() if path.is_file()}


def pair_answers(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], AnswerPair]:
    """Pair the answers to the items that were answered before and after; the first row of a checkpoint counts.

    Args:
        rows: those of `Answers.first_rows`, each with `when`.
    """
    items: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        items[str(row["task"] or ""), str(row["example"] or "")].setdefault(str(row["when"]), row)
    return {key: _pair(item["before"], item["after"]) for key, item in items.items() if {*SIDES} <= item.keys()}


def _pair(before: Mapping[str, Any], after: Mapping[str, Any]) -> AnswerPair:
    return AnswerPair(
        task=str(before["task"] or ""),
        level=before.get("level"),
        prompt=str(before.get("prompt") or ""),
        gold=str(before.get("answer") or ""),
        before=str(before["completion"] or ""),
        after=str(after["completion"] or ""),
        graded=before.get("score") is not None,
        score_before=float(before.get("score") or 0.0),
        score_after=float(after.get("score") or 0.0),
        cut=(bool(before.get("cut")), bool(after.get("cut"))),
    )


def is_right_after(pair: AnswerPair) -> bool:
    """Whether the later answer is right."""
    return pair.score_after >= RIGHT_FROM_SCORE


def is_lost(pair: AnswerPair) -> bool:
    """Whether the answer was right before and is wrong now."""
    return pair.score_before >= RIGHT_FROM_SCORE > pair.score_after


def is_gained(pair: AnswerPair) -> bool:
    """Whether the answer was wrong before and is right now."""
    return pair.score_after >= RIGHT_FROM_SCORE > pair.score_before


def interleave_groups(rows: Sequence[T], group_of: Callable[[T], str]) -> list[T]:
    """The rows with their groups taking turns, each group in its own order."""
    groups: dict[str, list[T]] = defaultdict(list)
    for row in rows:
        groups[group_of(row)].append(row)
    return [row for turn in zip_longest(*groups.values()) for row in turn if row is not None]
