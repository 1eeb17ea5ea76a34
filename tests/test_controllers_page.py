"""docs/controllers.md speaks of every lever there is, and quotes the committed results."""

import json
import re

from readme_tree import ROOT

from benchmarks import levers
from mixwright.catalog import listing

PAGE = (ROOT / "docs" / "controllers.md").read_text(encoding="utf-8")


def figures(name: str):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def test_every_lever_is_told():
    ours = {
        kind: [name for name, entry in listing(kind).items() if entry.module.startswith("mixwright.")]
        for kind in ("mixtures", "selectors", "gates", "controllers", "monitors")
    }
    missing = [name for names in ours.values() for name in names if not re.search(rf"`{name}`|\b{name}\b", PAGE)]
    assert missing == []


def test_the_table_is_that_of_the_results():
    assert levers.written(PAGE) == PAGE


def test_a_row_of_the_table_by_hand():
    shown = {"success": [0.0123, -0.004, 0.0289]}
    assert levers.cell(shown) == "+1.2 [-0.4, 2.9]"
    assert levers.cell({"all": {"value": -0.5, "low": -0.61, "high": -0.4}}) == "-50.0 [-61.0, -40.0]"
    assert levers.cell(None) == ""


def test_the_page_quotes_the_results():
    race = figures("formats")["forecast"]["race"]
    assert f"{race['hits']} of {race['of']} mixes" in PAGE
    for source, pair in (
        ("overhard/unlabelled/outcome", "default - no gate"),
        ("overhard/unlabelled/outcome", "default - frozen"),
        ("overhard/blind/outcome", "default - no lucky cells"),
        ("rollouts/wide/outcome", "ours, noisy - equal shares, noisy"),
        ("rollouts/wide/outcome", "ours - equal shares"),
        ("leave_one_out/refusing", "steered - without_gates"),
        ("leave_one_out/eight", "steered - frozen"),
    ):
        value, low, high = (f"{100 * number:.1f}" for number in levers.figures(source)[pair]["success"])
        assert f"{value.removeprefix('-')} [" in PAGE or f"{value} [" in PAGE, (pair, value)
        assert f"[{low}, {high}]" in PAGE or f"[{-float(high):.1f}, {-float(low):.1f}]" in PAGE, (pair, low, high)


def test_the_picture_is_there():
    assert (ROOT / "docs" / "controllers.png").stat().st_size > 10_000
