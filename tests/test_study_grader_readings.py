"""Study of the graders against readers: what is graded, and how far a change is off, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright_lab.studies.grader_readings import compare_changes, judge


def row(model: str, completion: str, readers: tuple[int, int], prompt: str = "What colour is snow?") -> dict[str, Any]:
    known = {"part": 1, "model": model, "task": "colours", "prompt": prompt, "answer": "white", "completion": completion}
    return known | {"cut": False, "readers": readers}


def test_a_change_is_off_by_what_only_one_side_saw() -> None:
    rows = [
        row("before", "Snow is white.", (1, 1)),
        row("terse", "white", (1, 1)),
        row("harmless", "It is as a swan is.", (1, 1)),  # right for a reader
        row("ruined", "black", (0, 1)),  # one reader slipped
    ]
    judged = judge(rows)
    assert [one["score"] for one in judged] == [1.0, 1.0, 0.0, 0.0]
    changes = compare_changes(judged)
    assert {name: values.tolist() for name, values in changes.items()} == {
        "part 1, terse": [0.0],
        "part 1, harmless": [pytest.approx(-100.0)],
        "part 1, ruined": [pytest.approx(-50.0)],
    }
