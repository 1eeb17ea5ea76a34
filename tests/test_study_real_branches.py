"""The study of the gate on branches of SFT: what is true of a branch, and which goals follow."""

import math
from typing import Any

import pytest

from mixwright_lab.studies import real_branches
from mixwright_lab.studies.real_models import TRUTH_TASKS


def answers(right: dict[str, int], of: int = 100) -> dict[str, Any]:
    """A row in which so many of the further items of each task are right, and none of those that the gate sees."""
    seen = [[task, "test-0", 0.0, "", False] for task in TRUTH_TASKS]
    return {"answers": seen + [[task, f"truth-{n}", float(n < right[task]), "", False] for task in right for n in range(of)]}


def test_the_truth_is_of_items_that_the_gate_does_not_see() -> None:
    before, after = answers(dict.fromkeys(TRUTH_TASKS, 60)), answers(dict.fromkeys(TRUTH_TASKS, 60) | {"sums": 20})
    changes = real_branches.true_changes(before, after)
    assert {task: round(change.value, 6) for task, change in changes.items()} == dict.fromkeys(TRUTH_TASKS, 0.0) | {
        "sums": -40.0
    }
    assert changes["sums"].high < -real_branches.MARGIN_POINTS
    mean = real_branches.mean_of(list(changes.values()))
    assert mean.value == pytest.approx(-10.0)
    half = [change.high - change.value for change in changes.values()]
    assert mean.high - mean.value == pytest.approx(math.sqrt(sum(width**2 for width in half)) / 4)


def branch(gate: str, truth: str, gain: float) -> dict[str, Any]:
    return {"gate": gate, "truth": truth, "gain": gain}


def test_goals_count_the_models_that_learnt_and_are_harmless() -> None:
    rows = [branch("damaged", "damaged", 90.0)] * 3 + [branch("passed", "harmless", 0.0)] * 4
    assert [goal.reached for goal in real_branches.goals_of(rows)] == [True, True, False]  # none of them had learnt the task
    useful = [branch("passed", "harmless", 60.0), branch("cannot tell", "harmless", 60.0)]
    assert [goal.reached for goal in real_branches.goals_of(rows + useful)] == [True, True, True]
    alarm, miss = branch("damaged", "harmless", 60.0), branch("passed", "damaged", 60.0)
    assert [goal.reached for goal in real_branches.goals_of([*rows, *useful, alarm])] == [True, False, False]
    assert [goal.reached for goal in real_branches.goals_of([*rows, *useful, miss])] == [False, True, True]
