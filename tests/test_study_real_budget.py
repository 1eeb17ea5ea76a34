"""The study of budgets: goals fail where a job ends late, promises less, or does not say that it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright_lab.studies.real_budget import goals_of, tiny_rows

GOOD: list[dict[str, Any]] = [
    {"possible": True, "minutes": 10, "seconds": 640, "code": 0, "seeds": 6, "items": 9, "told": []},
    {"possible": True, "minutes": 5, "seconds": 230, "code": 3, "seeds": None, "items": 8, "told": []},
    {"possible": False, "minutes": 1, "seconds": 80, "code": 1, "told": ["error: expected a budget of about 4 min or more"]},
]


def test_all_goals_are_reached_where_every_job_keeps_its_word() -> None:
    assert [goal.reached for goal in goals_of(GOOD)] == [True] * 3


@pytest.mark.parametrize(
    ("job", "change", "goal"),
    [
        (0, {"seconds": 760}, 0),
        (1, {"seconds": 220}, 0),
        (0, {"code": 1}, 0),
        (0, {"seeds": 4}, 1),
        (1, {"items": 7}, 1),
        (2, {"code": 0}, 2),
        (2, {"told": ["error: something else"]}, 2),
    ],
)
def test_a_goal_is_missed_where_one_job_does_not(job: int, change: dict[str, Any], goal: int) -> None:
    rows = [{**row, **change} if place == job else row for place, row in enumerate(GOOD)]
    assert [each.reached for each in goals_of(rows)] == [place != goal for place in range(3)]


def test_no_rows_reach_no_goal() -> None:
    assert not any(goal.reached for goal in goals_of([]))


def test_rows_of_the_tiny_model_are_right_and_none_stands_twice() -> None:
    rows = tiny_rows(60, 3)
    assert len({row["prompt"] for row in rows}) == 60
    for row in rows:
        if row["task"] == "sums":
            one, other = row["prompt"].rstrip("=").split("+")
            assert int(one) + int(other) == int(row["answer"])
        else:
            assert row["prompt"].split()[0] == row["answer"][::-1]
