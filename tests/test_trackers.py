"""Reports in a tracker: a stand-in takes what is sent, and the real packages where they are installed."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
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
    changes = [row[-1] - row[-2] for row in shown["table"]["data"]]
    assert len(changes) == verdict["total"]["items"]
    assert (changes.count(-1), changes.count(1)) == (verdict["total"]["lost"], verdict["total"]["gained"])
    assert changes == sorted(changes), "lost ones first"
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


@pytest.mark.parametrize("name", ["trackio", "wandb"])
def test_the_packages_themselves_keep_them_offline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip(name)
    environment = os.environ | {"TRACKIO_DIR": str(Path("kept").resolve()), "WANDB_MODE": "offline"}
    command = [sys.executable, "-m", "mixwright", "verdict", "--example", "--log-to", name, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["outcome"]) == (3, "damaged")
    if name == "trackio":
        with sqlite3.connect("kept/mixwright.db") as database:
            ((shown,),) = database.execute("select metrics from metrics").fetchall()
            assert database.execute("select text from alerts").fetchall() == [(verdict["headline"],)]
        scores = [(row["score_before"], row["score_after"]) for row in json.loads(shown)["table"]["_value"]]
        (page,) = Path("kept/media").glob("**/*.html")
    else:
        (table,) = Path("wandb").glob("offline-run-*/files/media/table/*.json")
        scores = [row[-2:] for row in json.loads(table.read_text())["data"]]
        (page,) = Path("wandb").glob("offline-run-*/files/media/html/*.html")
    assert sum(after < before for before, after in scores) == verdict["total"]["lost"]
    assert page.read_text() == Path("runs/example/verdict.html").read_text()
