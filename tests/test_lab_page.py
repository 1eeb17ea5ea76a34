"""The laboratory's page and texts: figures by hand, hostile texts, missing and stale results, and the committed files."""

from __future__ import annotations

import contextlib
import dataclasses
import html as markup
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_call import Call
from project_files import ROOT
from scipy import stats
from test_page_browser import CHROMIUM, look

from mixwright import catalog
from mixwright.errors import InputError
from mixwright.verbs.laboratory import describe_support, read_features
from mixwright_lab import result_files
from mixwright_lab.cards import Card, collect, format_card, number, unknown
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.judging import Judged, Row
from mixwright_lab.page import html, lines
from mixwright_lab.promises import check_finding
from mixwright_lab.report import write
from mixwright_lab.result_files import Result, result_of
from mixwright_lab.text_page import lab, marks

HOME = ROOT / "mixwright_lab"
EVIL = "<script>alert(1)</script> | `x` \u202e[a](javascript:b) <!-- /findings -->"


class Made(Finding):
    """Two arms that differ by 0.3 of one reading."""

    CLAIM, SOURCE, WHAT_IT_SHOWS, POPULAR_READING = "a is more than b.", "Nobody, Made up.", "Nothing.", "That it is."
    FEATURES = {"planners/proportional": ("a - b",)}  # noqa: RUF012
    RUN_TWICE = ("b",)
    SCALES = {"smoke": dataclasses.make_dataclass("S", [])(), "laptop": dataclasses.make_dataclass("S", [])()}  # noqa: RUF012
    EXPECT = (Expectation("a - b", difference("a", "b", "x"), 0.1, "a is not more."),)
    PRIMARY = "a - b"
    PLOTS = (Plot("x of both", "place", "share", (Curve("a", ((1.0, "a", "x"), (2.0, "b", "x"), (3.0, "gone", "x"))),)),)

    def arms(self, settings: Any) -> tuple[str, ...]:
        return ("a", "b")

    def run(self, arm: str, seed: int, settings: Any, *, again: bool = False) -> dict[str, float]:
        return {"x": 0.5}


def rows(shift: float = 0.3) -> list[Row]:
    found = [Row("a", seed, {"x": 0.5 + shift + 0.01 * seed}, 30.0) for seed in range(5)]
    return found + [Row("b", seed, {"x": 0.5}, 30.0, again) for seed in range(5) for again in (False, True)]


def card(cls: type[Finding] = Made, result: Result | None = None, name: str = "made") -> Card:
    return Card(name, cls, result)


def made(shift: float = 0.3, scale: str = "laptop", cls: type[Finding] = Made) -> Result:
    return result_of("made", cls(), scale, rows(shift), 0.0)


def edited(**texts: object) -> type[Finding]:
    return type("Made", (Made,), texts)


def judged(word: Any, value: float, least: float, noise: float | None = None, unit: str = "points") -> Judged:
    return Judged(f"{word} {value}", unit, value, value - 0.01, value + 0.01, 0.01, least, noise, word, (value,))


def test_numbers_by_hand() -> None:
    assert number(0.03179, "points", sign=True) == "+3.18"
    assert number(-0.5, "points") == "\u221250"
    assert number(-1.234, "nats") == "\u22121.23"
    assert number(None, "points") == "\u2013"


def test_a_card_tells_the_published_contrast_and_counts_the_others() -> None:
    expect = tuple(
        Expectation(f"{name} - b", difference(name, "b", "x"), least, "no") for name, least in (("a", 0.1), ("c", 0.9))
    )
    cls, alone = (edited(EXPECT=expect, PRIMARY="c - b", CONTROL=control) for control in ("a - b", ""))
    found = [*rows(), *(Row("c", seed, {"x": 0.9 + 0.01 * seed}, 1.0) for seed in range(5))]
    own = card(cls, result_of("made", cls(), "laptop", found, 0.0))
    assert own.word == "not reproduced"
    told = format_card(own)
    assert told.startswith("Published: c - b, +42 [")
    assert own.fired
    assert "at least 90 is required. Positive control: a - b." in told, "a control is none of our contrasts"
    without = card(alone, result_of("made", alone(), "laptop", found, 0.0))
    assert not without.fired
    assert "Our own: 1 of 1 reproduced. It has no positive control." in format_card(without)
    late = card(cls, dataclasses.replace(own.result, primary="")) if own.result else own
    assert format_card(late).endswith("was written after this run.")


def test_a_plot_has_t_intervals_over_seeds_and_leaves_out_what_nobody_ran() -> None:
    (series,) = lines(Made.PLOTS[0], made()).series
    values = [0.8 + 0.01 * seed for seed in range(5)]
    low, high = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert series.x == (1.0, 2.0)
    assert (series.y[0], series.low[0], series.high[0]) == pytest.approx((np.mean(values), low, high), abs=1e-6)
    assert (series.y[1], series.low[1], series.high[1]) == (0.5, 0.5, 0.5), "the twins of the noise arm are left out"


def test_hostile_texts_are_escaped() -> None:
    texts = dict.fromkeys(("CLAIM", "SOURCE", "WHAT_IT_SHOWS", "POPULAR_READING", "REMARKS"), EVIL)
    expect = (Expectation(EVIL, difference("a", "b", "x"), 0.1, EVIL),)
    plot = Plot(EVIL, EVIL, EVIL, (Curve(EVIL, ((1.0, "a", "x"),)),))
    cls = edited(**texts, EXPECT=expect, PRIMARY=EVIL, PLOTS=(plot,), FEATURES={EVIL: (EVIL,)})
    cards = [card(cls, name=EVIL), card(cls, made(cls=cls), name=EVIL)]
    page, empty = html(cards, [EVIL]), "\n".join(("", *marks("words"), *marks("findings"), ""))
    assert page.count("<script") == 1, "the page's own"
    assert "javascript:b" not in re.findall(r'href="([^"]*)"', page)
    assert "\u202e" not in page
    text = lab(empty, cards)
    assert "<script" not in text
    assert "\u202e" not in text
    assert "[a](" not in text
    assert lab(lab(empty, cards), cards) == lab(empty, cards), "a text of a finding is no marker"


def test_missing_smoke_and_unknown_results(tmp_path: Path) -> None:
    names = list(catalog.listing("findings"))
    assert [one.word for one in collect(tmp_path)] == ["not run"] * len(names)
    result_files.write(tmp_path / "pruning.json", dataclasses.replace(made(scale="smoke"), finding="pruning"))
    result_files.write(tmp_path / "gone.json", made())
    cards = collect(tmp_path)
    assert {one.word for one in cards} == {"not run"}, "smoke says nothing about a claim"
    assert unknown(tmp_path) == ["gone.json"]
    assert "gone.json" in html(cards, unknown(tmp_path))
    (tmp_path / "pruning.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"pruning\.json"):
        write(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_stale_result_is_called_stale_and_counted_nowhere() -> None:
    cls = edited(EXPECT=(Expectation("a - b", difference("a", "b", "x"), 0.2, "a is not more."),))
    old = card(cls, made())
    assert old.word == "stale"
    assert "earlier version: reproduced." in format_card(old)
    assert "made: stale" in html([old])
    assert card(edited(REMARKS="Because."), made()).word == "reproduced", "remarks may be written after the run"


def test_a_page_without_markers_is_left_alone(tmp_path: Path) -> None:
    page = "\n".join(("", *marks("words"), *marks("findings"), ""))
    for broken in (page.replace(marks("words")[1], ""), page + marks("findings")[0]):
        with pytest.raises(InputError, match="markers"):
            lab(broken, [card()])
    (tmp_path / "README.md").write_text("Mine", encoding="utf-8")
    with pytest.raises(InputError, match="markers"):
        write(result_files.RESULTS_FOLDER, tmp_path)
    assert not (tmp_path / "lab.html").exists()


def words_of(page: str) -> str:
    """What a page says, without charts and looks."""
    return markup.unescape(re.sub(r"<[^>]*>|\s+", " ", re.sub(r"<(style|svg).*?</\1>", "", page, flags=re.DOTALL)))


def test_the_committed_pages_are_those_of_the_committed_results() -> None:
    """After a run, or an edit of a finding: `python -m mixwright_lab report`."""
    cards = collect()
    text = (HOME / "README.md").read_text(encoding="utf-8")
    assert lab(text, cards) == text
    assert words_of((HOME / "lab.html").read_text(encoding="utf-8")) == words_of(html(cards, unknown()))


def test_no_committed_result_is_stale() -> None:
    """`mixwright explain` reads their words alone. Run an edited finding again, or take its result away."""
    kept = [(one, one.result) for one in collect() if one.result]
    assert [one.name for one, result in kept if not one.current(result)] == []
    assert unknown() == []


@pytest.mark.parametrize("name", catalog.listing("findings"))
def test_features_are_read_from_the_source(name: str) -> None:
    assert read_features(ROOT / "mixwright_lab" / "findings" / f"{name}.py") == catalog.load("findings", name).FEATURES


def test_a_feature_that_does_not_exist_breaks_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    pruning = catalog.load("findings", "pruning")
    for feature, real in (("planners/proportional", True), ("planners/none", False), ("planner/proportional", False)):
        monkeypatch.setattr(pruning, "FEATURES", {feature: ()})
        with contextlib.nullcontext() if real else pytest.raises(AssertionError, match=f"FEATURES, {feature}"):
            check_finding(pruning)


KEPT = {"word": "refuted", "scale": "laptop", "contrasts": []}
WON = {"name": "a - b", "unit": "points", "value": 0.15, "low": 0.06, "high": 0.24, "least": 0.02, "noise": None}
SUPPORTS = "reproduced, +15 points [+6.0, +24]"


@pytest.mark.parametrize(
    ("features_of", "kept", "told"),
    [
        (("a - b",), WON | {"word": "reproduced"}, f"a - b: {SUPPORTS}."),
        (
            ("-b - a",),
            WON | {"name": "b - a", "word": "refuted", "value": -0.15, "low": -0.24, "high": -0.06},
            "b - a (subtracts it): refuted, \u221215 points [\u221224, \u22126.0].",
        ),
        (
            ("-a - b",),
            WON | {"word": "reproduced"},
            f"a - b (subtracts it): {SUPPORTS}; so the laboratory does not",
        ),
        (
            ("a - b",),
            WON | {"word": "inconclusive"},
            "+24]; so the laboratory cannot tell whether it helps, and has not shown that it does not.",
        ),
        (("a - b",), WON | {"word": "not reproduced"}, "+24]; so the laboratory does not support it."),
        (("a - b", "gone"), WON | {"word": "in part"}, "gone: not run."),
        (("gone",), WON | {"word": "in part"}, "gone: not run; so the laboratory does not support it."),
    ],
)
def test_a_plugin_gets_the_word_of_its_own_contrast(
    features_of: tuple[str, ...], kept: dict[str, object], told: str, tmp_path: Path
) -> None:
    lab = laboratory(tmp_path, {"selectors/equal_levels": features_of}, json.dumps(KEPT | {"contrasts": [kept]}))
    (said,) = describe_support(catalog.find_entry("selectors", "equal_levels"), lab)
    assert told in said
    assert said.startswith("Rests on the finding difficulty: ")
    assert describe_support(catalog.find_entry("findings", "difficulty"), lab) == ["Result: refuted."]


def laboratory(folder: Path, named: dict[str, tuple[str, ...]], text: str | None) -> Path:
    for name in ("findings", "results/findings"):
        (folder / name).mkdir(parents=True)
    (folder / "findings" / "difficulty.py").write_text(f"class Difficulty:\n    FEATURES = {named!r}\n", encoding="utf-8")
    if text is not None:
        (folder / "results" / "findings" / "difficulty.json").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"word": "reproduced", "scale": "smoke"}', "not run"),
        (None, "not run"),
    ],
)
def test_what_was_not_run_supports_nothing(text: str | None, told: str, tmp_path: Path) -> None:
    lab = laboratory(tmp_path, {"selectors/equal_levels": ("a - b",)}, text)
    said = f"Rests on the finding difficulty: {told}; so the laboratory does not support it."
    assert describe_support(catalog.find_entry("selectors", "equal_levels"), lab) == [said]
    assert describe_support(catalog.find_entry("planners", "temperature"), lab) == []
    assert describe_support(catalog.find_entry("findings", "difficulty"), lab) == [f"Result: {told}."]


def test_a_plugin_that_no_contrast_judges_is_not_called_supported(tmp_path: Path) -> None:
    lab = laboratory(tmp_path, {"selectors/equal_levels": ()}, json.dumps(KEPT))
    (said,) = describe_support(catalog.find_entry("selectors", "equal_levels"), lab)
    assert "no contrast judges it" in said


def test_explain_says_it_without_importing_the_laboratory(call: Call) -> None:
    said = " ".join(call("explain", "adapters/lora")[1].split())
    assert "gain by policy gradient: SVF - LoRA (subtracts it): refuted" in said
    code = "import sys; from mixwright.verbs.plugins import explain, show_entries; "
    code += "show_entries(explain('selectors/equal_levels')); "
    done = subprocess.run(
        [sys.executable, "-c", code + "print('mixwright_lab' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


AS_THE_PAGE_SAYS = """
import sys
from mixwright import catalog
from mixwright_lab.__main__ import main
from mixwright_lab.promises import check_finding
from mixwright_lab.running import run_task, tasks_of
finding = catalog.create("findings", "averages")
check_finding(type(finding))
for task in (task for part in tasks_of("averages", finding, "laptop", 0) for task in part):
    run_task(task)
for words in (["run", "averages", "--out", "results"], ["report", "--results", "results", "--out", "page"]):
    sys.argv = ["mixwright_lab", *words]
    assert main() == 0, words
"""
"""Keeps the promises, and makes every row and both files in one process: that is quicker than a process for each."""


def test_the_example_of_the_page_runs_as_the_page_says(tmp_path: Path) -> None:
    text = (HOME / "README.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mixwright").symlink_to(ROOT / "mixwright")
    shutil.copytree(ROOT / "mixwright_lab", tmp_path / "mixwright_lab", ignore=shutil.ignore_patterns("__pycache__"))
    for other in (tmp_path / "mixwright_lab" / "findings").glob("[!_]*.py"):
        other.unlink()
    (tmp_path / "mixwright_lab" / "findings" / "averages.py").write_text(source, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "MIXWRIGHT_LAB_ROWS": str(tmp_path / "rows")}
    words = [sys.executable, "-c", AS_THE_PAGE_SAYS]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "averages: reproduced" in (tmp_path / "page" / "lab.html").read_text(encoding="utf-8")
    assert "### averages\n\n**Reproduced.**" in (tmp_path / "page" / "README.md").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_reads_well_in_a_browser(tmp_path: Path, scheme: str) -> None:
    page = tmp_path / "lab.html"
    expect = (Expectation("word" * 30, difference("a", "b", "x"), 0.1, "no" * 99),)
    long = edited(CLAIM="unbroken" * 40, PRIMARY="word" * 30, EXPECT=expect)
    cards = [card(result=made(), name="one"), card(long, made(-0.3, cls=long), name="two_" * 9), card(name="three")]
    page.write_text(html([*cards, card(long, made(), name="four")], ["gone.json"]), encoding="utf-8")
    for width, found in look(page, tmp_path, scheme).items():
        assert found["wide"] == int(width)
        assert found["scrolls"] <= int(width), "the page scrolls sideways"
        assert (found["out"], found["pale"], found["small"]) == ([], [], [])
        assert found["fetched"] == []
