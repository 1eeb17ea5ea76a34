"""Change of success by other columns: gaps by hand, columns that only name a task, and clean tables."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mixwright.answers.table import Answers, short_columns
from mixwright.verdict.rules.columns import compare_columns


def sides(rows: list[tuple[str, dict[str, str], float, float]]) -> tuple[Answers, Answers]:
    """Tables of items: task, columns, success before and after."""

    def table(place: int) -> Answers:
        made: list[dict[str, Any]] = [
            {"item": f"i{n}", "task": row[0], "decoding": "greedy", "sample": 0, "right": row[place], "columns": row[1]}
            for n, row in enumerate(rows)
        ]
        return Answers.from_rows(made)

    return table(2), table(3)


def test_a_source_whose_items_were_lost_is_named_with_its_gap() -> None:
    """20 of 30 items of b are lost, and 3 of 30 of a, in each of two tasks: 57 points more."""
    lost = {"a": 3, "b": 20}
    rows = [(task, {"source": name}, 1.0, float(n >= lost[name])) for task in "xy" for name in lost for n in range(30)]
    (worst, best) = compare_columns(*sides(rows), "greedy")
    assert (worst.column, worst.value, worst.items) == ("source", "b", 60)
    assert worst.gap.value == pytest.approx(-17 / 30)
    assert worst.change == pytest.approx(-2 / 3)
    assert worst.gap.high < -0.3
    assert (best.value, best.gap.value) == ("a", pytest.approx(17 / 30))


def test_a_column_that_only_names_the_task_says_nothing() -> None:
    rows = [(task, {"kind": task}, 1.0, float(task == "x")) for task in "xy" for _ in range(40)]
    assert compare_columns(*sides(rows), "greedy") == []


def test_columns_without_relation_are_seldom_named() -> None:
    """60 tables with three columns: a value is named in two of them at most."""
    named = 0
    for seed in range(60):
        rng = random.Random(seed)
        names = ("source", "author", "kind")
        drawn = [(rng.choice("xyz"), {name: rng.choice("abcd") for name in names}, rng.random()) for _ in range(300)]
        rows = [(task, columns, 1.0, float(luck < 0.6)) for task, columns, luck in drawn]
        named += bool(compare_columns(*sides(rows), "greedy"))
    assert named <= 2


def test_long_values_and_structures_are_no_groups() -> None:
    assert short_columns({"source": "a", "year": 1999, "text": "x" * 41, "list": ["a"], "none": None, "is_new": True}) == {
        "source": "a",
        "year": "1999",
        "is_new": "True",
    }
