"""Study of the gate on general requests: the true change, the peer's rule and simulated verdicts, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright.verbs.general import REPLAYED, SEALED
from mixwright_lab.studies.general_gate import (
    MODELS,
    RUINED,
    Simulation,
    change,
    falls_by_peer,
    goals_of,
    pairs_by_kind,
    simulate,
)

KINDS = {REPLAYED: ("a", "b"), SEALED: ("x",)}


def answers(right: dict[str, int], count: int = 40) -> list[list[Any]]:
    """So many right answers of each kind, spread over its items."""
    rows = [(ring, kind) for ring, kinds in KINDS.items() for kind in kinds]
    return [
        [ring, kind, f"{kind}{n}", float(n * right[kind] % count < right[kind])] for ring, kind in rows for n in range(count)
    ]


BEFORE = answers({"a": 20, "b": 20, "x": 30})


def test_the_change_of_a_group_is_the_mean_over_its_kinds() -> None:
    row = {"fresh": answers({"a": 10, "b": 20, "x": 24})}
    assert change(row, BEFORE, REPLAYED).value == pytest.approx((-25 + 0) / 2)
    found = change(row, BEFORE, SEALED)
    assert found.value == pytest.approx(-15)
    assert found.low < found.value < found.high


def test_the_peer_reads_twenty_items_and_two_of_them_decide() -> None:
    assert falls_by_peer({"fresh": BEFORE}, BEFORE) == []
    one, two = ([[*row[:3], 0.0 if row[2] in lost else row[3]] for row in BEFORE] for lost in ({"a0"}, {"a0", "a2"}))
    assert (falls_by_peer({"fresh": one}, BEFORE), falls_by_peer({"fresh": two}, BEFORE)) == ([], ["a"])


def test_an_unchanged_model_passes_and_a_ruined_one_is_damaged_in_simulated_verdicts() -> None:
    same, ruined = (pairs_by_kind({"fresh": after}, BEFORE) for after in (BEFORE, answers({"a": 0, "b": 0, "x": 0})))
    assert [simulate(Simulation(same, seed)) for seed in range(3)] == ["passed"] * 3
    assert [simulate(Simulation(ruined, seed)) for seed in range(3)] == ["damaged"] * 3


def test_no_goal_is_reached_before_all_models_were_judged() -> None:
    line = {"kind": RUINED, "code": 3, "items": 131}
    count = sum(model[0] == RUINED for model in MODELS)
    reached = [{goal.name: goal.reached for goal in goals_of([line] * size)} for size in (count - 1, count)]
    assert [one["ruined: exit code 3"] for one in reached] == [False, True]
