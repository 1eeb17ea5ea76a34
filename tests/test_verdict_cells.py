"""Cells of the page: one chance level per cell everywhere, both decodings, terms explained once, and verdict.json."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path

import pytest
from _example_run import build_pair, item_rows
from _scores import scores
from rich.console import Console

from mixwright.catalog import create
from mixwright.estimates.intervals import wilson
from mixwright.records import CellAssessment, Claim, Measurement, Observation, Plan, Stage
from mixwright.run.folder import RunFolder, read_list, write_json, write_measurements, write_plan
from mixwright.verdict.page.blocks import Fold, Headline, HeatMap, Paragraph, Table, Terms
from mixwright.verdict.page.terms import MEANING_BY_TERM, explain_once
from mixwright.verdict.page.text import NO_VALUE_SIGN, format_share
from mixwright.verdict.rules.cells import cells_of, chance_levels
from mixwright.verdict.rules.claims import chance_level
from mixwright.verdict.stage import render, sections, summarise, to_json_ready

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
        write_measurements(run.measurements(name), rows)
    cell = CellAssessment("t", 1.0, "lucky", 0.25, 0.31, 320, 200, swapped=0.25, kappa=0.0, kappa_high=0.05)
    write_plan(run.plan, Plan("difficulty", (Stage("grpo", "grpo", 10, {"t": 1.0}),), (cell,)))
    shown = ({"level": 1.0, "answer": "7", "rows": 88, "chance": 0.44},)
    text = "t@1: 44.0% (± 6 points) are right without the skill (constant 7)."
    write_json(run.audit, [Observation("difficulty", "t", "warning", 88, 200, text, "Vary the answers.", "", shown)])
    return run


def test_the_chance_level_by_hand() -> None:
    side = [scores({CELL: [0] * 40}, chance={CELL: [1] * 10 + [0] * 30})]
    found = chance_level(side, side[0].items)
    assert found is not None
    assert (found.value, found.n) == (0.25, 40)
    assert (found.low, found.high) == pytest.approx(tuple(map(float, wilson(5.0, 20.0))))
    assert chance_level(side, []) is None
    del side[0].scores["chance"]
    assert chance_level(side, side[0].items) is None


def test_the_interval_is_the_measured_one_where_it_is_of_the_same_items(tmp_path: Path) -> None:
    (level,) = {chance_levels(half_right(tmp_path, aggregate=True))["t", 1.0, False]}
    assert (level.low, level.high) == (0.14, 0.40)


def test_one_chance_level_per_cell_on_the_whole_page(tmp_path: Path) -> None:
    run = half_right(tmp_path, aggregate=True)
    text = re.sub(r"<style>.*?</style>", "", render(run).read_text(encoding="utf-8"), flags=re.DOTALL)
    for other in ("31 %", "44", "0.31"):  # the plan's level, and the audit's of training rows
        assert other not in text
    blocks = {name: found for name, _, _, found in sections(run)}
    (heat,) = (block for block in blocks["competence"] if isinstance(block, HeatMap))
    assert heat.rows[0][1][0] is not None
    assert "chance 25 % ± 13" in heat.rows[0][1][0].beside
    (fold,) = (block for block in blocks["audit"] if isinstance(block, Fold))
    assert isinstance(fold.blocks[0], Table)
    said = fold.blocks[0].rows[0][4]
    assert said.endswith(
        "right in 25 % ± 13 points of the held-out items. The majority answer is '7': 88 of 200 training rows."
    )
    (claim,) = read_list(run.claims, Claim)
    assert claim.chance == 0.25


def test_before_and_after_in_both_decodings(tmp_path: Path) -> None:
    (cell,) = cells_of(half_right(tmp_path))
    assert (cell.greedy, cell.sampled) == ((0.25, 0.75), (0.125, 0.375))
    (heat,) = (block for block in create("sections", "competence").blocks(RunFolder(tmp_path)) if isinstance(block, HeatMap))
    (field,) = heat.rows[0][1]
    assert field is not None
    assert field.change == cell.claim.difference
    assert field.beside[0] == "sampled 12 → 38"


def test_share_told() -> None:
    assert format_share(None) == NO_VALUE_SIGN
    level = chance_level([scores({CELL: [0] * 4}, chance=0.0)], [("t", 1.0, f"t-{i}") for i in range(4)])
    assert format_share(level).startswith("0 % ± ")


def test_a_term_is_explained_where_it_first_stands() -> None:
    first = [Paragraph("a"), Terms(("cell", "S", "cell", "no such term"))]
    second = [Fold("f", (Terms(("S", "D")),)), Terms(("D", "cell"))]
    parts = explain_once([("x", "X", 0, first), ("y", "Y", 1, second)])
    assert parts[0][3][1] == Terms(("cell", "S"), (MEANING_BY_TERM["cell"], MEANING_BY_TERM["S"]))
    assert parts[1][3] == [Fold("f", (Terms(("D",), (MEANING_BY_TERM["D"],)),)), Terms(())]


def test_no_term_is_explained_twice_on_a_page(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    text = render(run).read_text(encoding="utf-8")
    counts = {word: text.count(f"<b>{word}</b>: {meaning[:18]}") for word, meaning in MEANING_BY_TERM.items()}
    assert max(counts.values()) == 1
    assert counts["chance level"] == counts["learnt"] == counts["[low, high]"] == 1


def test_a_json_with_everything_stands_beside_the_page(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    render(run)
    data = json.loads(run.verdict_data.read_text(encoding="utf-8"))
    assert data["format"] == 1
    assert data["recommendation"]["advice"] == "do not ship"
    assert data["recommendation"]["next"][0]["text"].startswith("mixwright verdict")
    assert data["rests_on"]["gate"] == "damaged"
    parts = sections(run)
    assert [part["name"] for part in data["sections"]] == [name for name, *_ in parts]
    headline = data["sections"][0]["blocks"][0]
    assert headline["kind"] == "Headline"
    assert headline["text"] == data["recommendation"]["sentence"]
    assert len(data["cells"]) == len(data["claims"]) == len(read_list(run.claims, Claim))
    cell = next(cell for cell in data["cells"] if (cell["task"], cell["level"]) == ("products", 1.0))
    assert cell["word"] == "damaged"
    assert cell["greedy"]["after"] < cell["greedy"]["before"]
    assert cell["chance_level"]["value"] == pytest.approx(1 / 32)


def test_the_terminal_begins_with_the_recommendation(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    console = Console(record=True, width=120, file=io.StringIO())
    summarise(run, console)
    assert console.export_text().startswith("Do not ship AFTER: products level 1 is damaged.\n")


def test_what_is_no_number_is_null() -> None:
    assert to_json_ready({"a": float("nan"), "b": (1.0, None)}) == {"a": None, "b": [1.0, None]}
    assert to_json_ready(Headline("t"))["kind"] == "Headline"
    claim = Claim("learnt", "t", None, 0.0, 1.0, dataclasses.replace(chance_level(*_one()), value=0.5), "e")  # type: ignore[type-var]
    assert "kind" in to_json_ready(claim)
    assert to_json_ready(claim)["kind"] == "learnt"


def _one() -> tuple:
    side = scores({CELL: [1.0]})
    return [side], side.items
