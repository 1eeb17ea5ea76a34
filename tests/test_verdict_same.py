"""What a verdict must not depend on: order of rows, names of items; and an item that stands twice is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_rows import plain_rows, write_lines

from mixwright.errors import InputError
from mixwright.records import Verdict
from mixwright.verbs.verdict import verdict

Rows = list[dict[str, Any]]
FEW = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def _here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sides(seed: int) -> tuple[Rows, Rows]:
    """Three tasks of 24 items, of which each side gets some right."""
    rng = random.Random(seed)
    shares = [{task: rng.random() for task in "abc"} for _ in range(2)]
    before, after = (
        [row for task, share in side.items() for row in plain_rows([rng.random() < share for _ in range(24)], task)]
        for side in shares
    )
    return before, after


def judge(before: Rows, after: Rows) -> Verdict:
    """The verdict on two logs, without what says when and of which files it was made."""
    found = verdict(write_lines("before.jsonl", before), write_lines("after.jsonl", after))
    return replace(found, manifest=None)


@FEW
@given(st.integers(0, 10**6))
def test_order_of_rows_and_names_of_items_change_nothing(seed: int) -> None:
    before, after = sides(seed)
    expected, rng = judge(before, after), random.Random(seed)
    mixed = [rng.sample(rows, len(rows)) for rows in (before, after)]
    assert judge(mixed[0], mixed[1]) == expected
    named = [[row | {"id": f"x{row['id']}"} for row in rows] for rows in (before, after)]
    assert judge(named[0], named[1]) == expected


@FEW
@given(st.integers(0, 10**6))
def test_another_name_of_a_task_changes_its_name_alone(seed: int) -> None:
    before, after = sides(seed)
    expected = judge(before, after)
    renamed = [[row | {"task": f"{row['task']}x"} for row in rows] for rows in (before, after)]
    found = judge(renamed[0], renamed[1])
    assert [replace(change, task=change.task.removesuffix("x")) for change in found.tasks] == list(expected.tasks)
    assert (found.outcome, found.reason, found.exit_code, found.total) == (
        expected.outcome,
        expected.reason,
        expected.exit_code,
        expected.total,
    )


def test_an_item_that_stands_twice_is_refused() -> None:
    before, after = sides(1)
    with pytest.raises(InputError, match="twice"):
        judge([*before, before[0]], [*after, after[0]])
