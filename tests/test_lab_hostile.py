"""The laboratory refuses what would give a wrong word: broken findings, rows and results; its command line is brief."""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import lab

from mixwright import catalog
from mixwright.errors import InputError
from mixwright_lab import cards, report, result_files, running
from mixwright_lab.contracts import Expectation, difference
from mixwright_lab.judging import Row, decide, judge
from mixwright_lab.running import Task, load_checked, run, run_task

LAB = [sys.executable, "-m", "mixwright_lab"]
RANDOM = "random, 16 per dimension"
TASK = Task("pruning", "smoke", 0, RANDOM)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIXWRIGHT_LAB_ROWS", str(tmp_path / "rows"))
    return tmp_path / "rows"


def expecting(least: float) -> tuple[Expectation, ...]:
    return (Expectation("a", difference(RANDOM, "hard, 32 per dimension", "error .3"), least, "no"),)


@pytest.mark.parametrize(
    ("name", "value", "promise"),
    [
        ("RUN_TWICE", ("gone",), "RUN_TWICE names some"),
        ("RUN_TWICE", (RANDOM, RANDOM), "each arm once"),
        ("EXPECT", (), "at least one contrast"),
        ("EXPECT", expecting(0.0), "above 0"),
        ("EXPECT", expecting(-1.0), "above 0"),
        ("EXPECT", expecting(math.nan), "above 0"),
        ("EXPECT", (Expectation("a", (), 0.1, "no"),), "terms"),
        ("EXPECT", (Expectation("a", difference("gone", RANDOM, "error .3"), 0.1, "no"),), "arms that exist"),
        ("FEATURES", {"planners/gone": ()}, "FEATURES"),
        ("FEATURES", {"planners/proportional": ("gone",)}, "contrasts of EXPECT"),
        ("PRIMARY", "gone", "PRIMARY and PUBLISHED"),
        ("CONTROL", "gone", "CONTROL names another"),
        ("SEEDS", {"smoke": 0, "laptop": 5}, "a seed"),
        ("SCALES", {}, "SCALES"),
        ("arms", lambda *_: (RANDOM, RANDOM), "names of their own"),
        ("arms", lambda *_: (RANDOM, ""), "names of their own"),
    ],
)
def test_a_finding_that_breaks_a_promise_is_not_run(
    name: str, value: Any, promise: str, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog.load("findings", "pruning"), name, value)
    with pytest.raises(InputError, match=promise):
        run("pruning", "smoke")
    assert not rows.exists()


def test_every_finding_of_the_catalogue_may_run() -> None:
    for name in catalog.listing("findings"):
        assert isinstance(load_checked(name), catalog.load("findings", name))


@pytest.mark.parametrize("wrong", [{"worker_count": -1}, {"seed_base": -1}, {"seed_base": 2**31}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, int], rows: Path) -> None:
    with pytest.raises(InputError, match="Correct --"):
        run("pruning", "smoke", **wrong)
    assert not rows.exists()


def test_a_reading_that_is_not_finite_names_its_arm(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog.load("findings", "pruning"), "run", lambda *_, **__: {"error .3": math.nan})
    with pytest.raises(InputError, match=r"a finite 'error \.3' of pruning random, 16 per dimension seed 0"):
        run_task(TASK)
    assert not list(rows.rglob("*.json"))


def test_readings_whose_squares_overflow_are_refused() -> None:
    expected = Expectation("a - b", difference("a", "b", "x"), 0.1, "no")
    found = [Row(arm, seed, {"x": 1e308 if arm == "a" else -1e308}, 1.0) for arm in "ab" for seed in range(5)]
    with pytest.raises(InputError, match="a finite 'x' of arm 'a'"):
        judge([expected], found, ["b"])


@pytest.mark.parametrize("change", [{"arm": "other"}, {"seed": 7}, {"again": True}, {"seconds": "<b>"}, None])
def test_a_row_of_another_task_is_not_taken_over(change: dict[str, Any] | None, rows: Path) -> None:
    run_task(TASK)
    (path,) = rows.rglob("*.json")
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert running._read(TASK).readings == kept["readings"]
    path.write_text("{" if change is None else json.dumps(kept | change), encoding="utf-8")
    with pytest.raises(InputError, match="Remove the file and give the same command again") as caught:
        running._read(TASK)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: {"finding": "formats"}, "its name"),
        (lambda _: {"word": "inconclusive"}, "a word of its contrasts"),
        (lambda _: {"contrasts": []}, "contrasts"),
        (lambda _: {"seeds": []}, "seeds"),
        (lambda _: {"seeds": [0, 1]}, "the seeds of its rows"),
        (lambda one: {"contrasts": [one | {"least": 0.0}]}, "least sizes"),
        (lambda one: {"contrasts": [one | {"value": 5.0, "low": 4.0}]}, "means of its points"),
        (lambda one: {"contrasts": [one | {"word": "refuted"}], "word": "refuted"}, "the words of its intervals"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]], told: str, tmp_path: Path
) -> None:
    data = json.loads((result_files.RESULTS_FOLDER / "pruning.json").read_text(encoding="utf-8"))
    path = tmp_path / "pruning.json"
    path.write_text(json.dumps(data | change(data["contrasts"][0])), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        result_files.read("pruning", folder=tmp_path)


def test_the_words_of_committed_results_are_what_their_rows_give() -> None:
    for card in cards.collect():
        if result := card.result:
            found = judge(card.finding.EXPECT, result.rows, card.finding.RUN_TWICE)
            assert [one.word for one in found] == [one.word for one in result.contrasts]
            assert decide(found, card.finding.PRIMARY, card.finding.CONTROL) == result.word


def test_a_report_needs_results_and_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder of results"):
        report.write(tmp_path / "gone", tmp_path / "out")
    (tmp_path / "README.md").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"README\.md.*UTF-8"):
        report.write(result_files.RESULTS_FOLDER, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md"]


def test_a_finding_of_another_package_is_kept_by_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign_finding.py").write_text("rate = 0.1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert running._foreign("foreign_finding:Finding") == ("rate = 0.1\n",)
    assert running._foreign("mixwright_lab.findings.pruning") == ()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "pruning", "--seed-base", "text"), "--seed-base"),
        (("run",), "Missing argument"),
        (("frobnicate",), "frobnicate"),
        (("run", "pruningg"), "pruning"),
        (("run", "pruning", "--scale", "smoke", "--out", os.devnull), os.devnull),
        (("report", "--results", "/nowhere"), "/nowhere"),
    ],
)
def test_wrong_words_are_told_without_a_traceback(words: tuple[str, ...], told: str, rows: Path) -> None:
    done = lab(*words)
    assert done.code == 1
    assert told in done.err
    assert "Traceback" not in done.err


def test_control_c_leaves_with_130(rows: Path, tmp_path: Path) -> None:
    words = [*LAB, "run", "pruning", "--workers", "1", "--out", str(tmp_path / "out")]
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    while not list(rows.rglob("*.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()
