"""Study of commands that are killed: what counts as written twice, and when its goals are reached."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright_lab.studies.kills import (
    EARLIEST,
    LATEST,
    Call,
    Command,
    answer,
    begun_last,
    figures_of,
    goals_of,
    kills_of,
    total,
)


def row(**given: Any) -> dict[str, Any]:
    counts = {"undisturbed": 100, "twice": 12, "begun": 12}
    return {"command": "measure", "equal": True, "struck": True, "written": counts, "read": counts} | given


def test_what_was_begun_is_the_last_batch_of_each_process() -> None:
    call = Call(-9, "", 1.0, {7: [12, 12, 4], 8: [12, 6]}, {})
    assert (total([call, call], "written"), begun_last(call, "written")) == (92, 10)
    assert (total([call], "read"), begun_last(call, "read")) == (0, 0)


def test_one_kill_falls_into_each_part_of_the_time_and_is_the_same_again() -> None:
    found = kills_of(Command("run", ()), 4)
    part = (LATEST - EARLIEST) / 4
    assert [int((share - EARLIEST) / part) for share in found] == [0, 1, 2, 3]
    assert found == kills_of(Command("run", ("other",)), 4) != kills_of(Command("measure", ()), 4)


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ({}, [True, True, True]),
        ({"equal": False}, [False, True, True]),
        ({"struck": False}, [False, True, True]),
        ({"written": {"undisturbed": 100, "twice": 13, "begun": 12}}, [True, False, True]),
        ({"read": {"undisturbed": 100, "twice": 1, "begun": 0}}, [True, True, False]),
    ],
)
def test_every_kill_must_reach_each_goal(given: dict[str, Any], reached: list[bool]) -> None:
    rows = [row(), row(**given)]
    assert [goal.reached for goal in goals_of(rows)] == reached
    figures = figures_of(rows)
    assert figures["kills"] == 2
    assert figures["written"]["twice"] == [one["written"]["twice"] for one in rows]


def test_answers_of_the_made_up_tasks() -> None:
    assert [answer(task, 21) for task in ("copy", "double", "next")] == ["21", "42", "22"]
