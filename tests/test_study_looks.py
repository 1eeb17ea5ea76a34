"""The study of planned looks: its checkpoints lose what they say, and its goals can be missed."""

import numpy as np
import pytest

from mixwright_lab.studies.judgement.precision import (
    CALM,
    CELLS,
    LOST,
    LOST_BY_ONE,
    answered,
    figures_of_looks,
    goals_of_looks,
    looks_of_cells,
)


@pytest.mark.parametrize(("loss", "churn"), [(0.0, 0.05), (0.0, 0.2), (0.05, 0.2), (0.4, 0.4)])
def test_as_much_is_lost_and_changed_as_was_asked(loss: float, churn: float) -> None:
    success = np.repeat([[0.5], [0.8]], 40_000, axis=1)
    old, new = answered(success, loss, churn, np.random.default_rng(0))
    assert old.mean(axis=1) == pytest.approx([0.5, 0.8], abs=0.01)
    assert old.mean(axis=1) - new.mean(axis=1) == pytest.approx([loss, loss], abs=0.01)
    assert (old != new).mean(axis=1) == pytest.approx([churn, churn], abs=0.01)


def test_each_world_ends_within_its_items_and_is_counted_by_its_name() -> None:
    rows = looks_of_cells(2)
    assert [row["times"] for row in rows] == [2] * 4
    assert {row["world"] for row in rows} == {CALM, "unharmed, 20 % churned", LOST, LOST_BY_ONE}
    assert all(row["items"] <= 2 * CELLS[0] * CELLS[1] for row in rows)
    assert set(figures_of_looks(rows)["looks of cells"]) == {row["world"] for row in rows}


def test_goals_of_looks_can_be_missed() -> None:
    def rows(part: str, world: str, passed: int, damaged: int = 0) -> list[dict[str, object]]:
        return [
            {"part": part, "world": world, "times": 1, "passed": place < passed, "damaged": place >= 100 - damaged}
            for place in range(100)
        ]

    good = rows("looks", LOST, 2) + rows("looks of cells", LOST, 2) + rows("looks of cells", LOST_BY_ONE, 0)
    bad = rows("looks", LOST, 3) + rows("looks of cells", LOST, 3) + rows("looks of cells", LOST_BY_ONE, 4)
    assert [goal.reached for goal in goals_of_looks(good + rows("looks of cells", CALM, 90, 5))] == [True] * 5
    missed = goals_of_looks(bad + rows("looks of cells", CALM, 89, 6))
    assert [goal.reached for goal in missed] == [False] * 5
    assert [round(goal.found.value, 2) for goal in missed] == [0.03, 0.03, 0.04, 0.89, 0.06]
