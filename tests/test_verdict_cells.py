"""Cells of the page: one chance level per cell everywhere, both decodings, terms explained once, and verdict.json."""

from __future__ import annotations

from pathlib import Path

import pytest
from _example_run import item_rows
from _scores import scores, without
from answer_rows import write_measured
from verdicts import judge_run

from mixwright.estimates.intervals import wilson
from mixwright.estimates.items import Items
from mixwright.records import CellAssessment, Measurement, Observation, Plan, Stage
from mixwright.run.folder import RunFolder, write_json, write_plan
from mixwright.verdict.page.blocks import Headline
from mixwright.verdict.rules.cells import chance_level
from mixwright.verdict.stage import to_json_ready

ITEMS = 40
CELL = ("t", 1.0)


def half_right(folder: Path, *, aggregate: bool = False) -> RunFolder:
    """One cell of 40 items, 10 of which a constant answer gets; the plan and the audit have levels of other rows."""
    run = RunFolder(folder)
    chance = [1.0] * 10 + [0.0] * 30
    for name, right in (("before", 10), ("after", 30)):
        greedy = [1.0] * right + [0.0] * (ITEMS - right)
        values = {"greedy": greedy, "pass@1": [right / ITEMS / 2] * ITEMS, "chance": chance}
        rows = item_rows(CELL, values | {"greedy.swapped": [0.0] * ITEMS, "pass@1.swapped": [0.0] * ITEMS})
        if aggregate:
            rows.append(Measurement("competence", "t", "chance", 0.25, 0.14, 0.40, ITEMS, "share", 1.0))
        write_measured(run.measurements(name), rows)
    cell = CellAssessment("t", 1.0, "lucky", 0.25, 0.31, 320, 200, swapped=0.25, kappa=0.0, kappa_high=0.05)
    write_plan(run.plan, Plan("difficulty", (Stage("grpo", "grpo", 10, {"t": 1.0}),), (cell,)))
    shown = ({"level": 1.0, "answer": "7", "rows": 88, "chance": 0.44},)
    text = "t@1: a rule without the skill gets 44.0% (± 6 points) right (constant 7)."
    write_json(run.audit, [Observation("difficulty", "t", "warning", 88, 200, text, "Vary the answers.", "", shown)])
    return run


def test_the_chance_level_by_hand() -> None:
    side = [scores({CELL: [0] * 40}, chance={CELL: [1] * 10 + [0] * 30})]
    found = chance_level(side, side[0].items)
    assert found is not None
    assert (found.value, found.n) == (0.25, 40)
    assert (found.low, found.high) == pytest.approx(tuple(map(float, wilson(5.0, 20.0))))
    assert chance_level(side, Items()) is None
    side = [without(side[0], "chance")]
    assert chance_level(side, side[0].items) is None


def test_the_interval_is_the_measured_one_where_it_is_of_the_same_items(tmp_path: Path) -> None:
    (task,) = judge_run(half_right(tmp_path, aggregate=True)).tasks
    assert task.chance is not None
    assert (task.chance.low, task.chance.high) == (0.14, 0.40)


def test_before_and_after_in_both_decodings(tmp_path: Path) -> None:
    (task,) = judge_run(half_right(tmp_path)).tasks
    assert (task.before, task.after, task.sampled) == (0.25, 0.75, (0.125, 0.375))


def test_what_is_no_number_is_null() -> None:
    assert to_json_ready({"a": float("nan"), "b": (1.0, None)}) == {"a": None, "b": [1.0, None]}
    assert to_json_ready(Headline("t"))["kind"] == "Headline"
