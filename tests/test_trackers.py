"""Reports in a tracker: a stand-in takes what is sent, and the real packages where they are installed."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call

from mixwright.run import trackers

STAND_IN = """
import json
class Table:
    def __init__(self, columns, data): self.columns, self.data = columns, data
class Html:
    def __init__(self, page, inject): self.columns, self.data = [], page.read_text()
def say(*told):
    print("noise")
    with open("sent.jsonl", "a") as file:
        file.write(json.dumps(told, default=vars, allow_nan=False) + "\\n")
def init(project, name): say("init", project, name)
def log(shown): say("log", shown)
def alert(title, text): say("alert", text)
def finish(): say("finish")
"""


@pytest.fixture(params=["trackio", "wandb"])
def tracker(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a package that notes what it is sent."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / f"{request.param}.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.delitem(sys.modules, request.param, raising=False)
    yield request.param
    sys.modules.pop(request.param, None)


def sent() -> dict[str, list[Any]]:
    return {line[0]: line[1:] for line in map(json.loads, Path("sent.jsonl").read_text().splitlines())}


def test_a_verdict_sends_the_page_and_the_answers_lost_ones_first(tracker: str, call: Call) -> None:
    code, out, _ = call("verdict", "--example", "--log-to", tracker, "--json")
    verdict, told = json.loads(out), sent()
    assert (code, told["init"], list(told)) == (3, ["mixwright", "verdict-tuned.jsonl"], ["init", "log", "alert", "finish"])
    (shown,) = told["log"]
    assert shown["gate/change"] == verdict["gate"]["mean"]["value"]
    assert shown["page"]["data"] == Path("runs/example/verdict.html").read_text()
    grades = [row[-1] for row in shown["table"]["data"]]
    assert len(grades) == verdict["total"]["items"]
    assert (grades.count("lost"), grades.count("gained")) == (verdict["total"]["lost"], verdict["total"]["gained"])
    assert set(grades[: verdict["total"]["lost"]]) == {"lost"}
    assert told["alert"] == [verdict["headline"]]


def test_a_diagnosis_sends_its_findings(tracker: str, call: Call) -> None:
    assert call("init", "f")[0] == 0
    code, out, _ = call("diagnose", "f/rollouts.jsonl", "--log-to", tracker, "--json")
    (shown,) = sent()["log"]
    assert [row[1] for row in shown["table"]["data"]] == [seen["check"] for seen in json.loads(out)["observations"]]
    assert (code, shown["diagnose/findings"], "alert" in sent()) == (0, len(shown["table"]["data"]), False)


def test_a_tracker_that_fails_changes_no_verdict(tracker: str, tmp_path: Path, call: Call) -> None:
    (tmp_path / "packages" / f"{tracker}.py").write_text("def init(**_): raise OSError('no\\nnetwork')")
    code, out, err = call("verdict", "--example", "--log-to", tracker, "--quiet")
    assert (code, out.startswith("DO NOT SHIP")) == (3, True)
    assert err == f"warning: {tracker} took nothing, or not all: OSError: no network\n"


@pytest.mark.parametrize("found", [None, ModuleSpec("wandb", None)], ids=["nothing", "a folder of its name"])
def test_a_missing_package_is_named_before_anything_is_judged(
    found: ModuleSpec | None, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: found)
    code, _, err = call("verdict", "--example", "--log-to", "wandb")
    assert (code, "Run: pip install wandb" in err) == (1, True)
    assert not Path("runs").exists()


def test_trackio_itself_keeps_them(call: Call) -> None:
    pytest.importorskip("trackio")
    utils = importlib.import_module("trackio.utils")
    code, out, _ = call("verdict", "--example", "--log-to", "trackio", "--json")
    assert (code, json.loads(out)["outcome"]) == (3, "damaged")
    with sqlite3.connect(utils.TRACKIO_DIR / "mixwright.db") as database:
        ((shown,),) = database.execute("select metrics from metrics").fetchall()
        assert [row["grade"] for row in json.loads(shown)["table"]["_value"]].count("lost") == json.loads(out)["total"][
            "lost"
        ]
        assert database.execute("select text from alerts").fetchall() == [(json.loads(out)["headline"],)]


def test_wandb_itself_keeps_them_offline(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    code, out, _ = call("verdict", "--example", "--log-to", "wandb", "--json")
    assert (code, json.loads(out)["outcome"]) == (3, "damaged")
    (table,) = Path("wandb").glob("offline-run-*/files/media/table/*.json")
    assert [row[-1] for row in json.loads(table.read_text())["data"]].count("lost") == json.loads(out)["total"]["lost"]
    (page,) = Path("wandb").glob("offline-run-*/files/media/html/*.html")
    assert page.read_text() == Path("runs/example/verdict.html").read_text()
