"""The laboratory runs findings: kept rows, a run that was killed, edited expectations, its command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import lab

from mixwright import catalog
from mixwright_lab import result_files
from mixwright_lab.conditions import closure, digest_of
from mixwright_lab.contracts import Expectation, difference
from mixwright_lab.running import run, tasks_of

LAB = [sys.executable, "-m", "mixwright_lab"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIXWRIGHT_LAB_ROWS", str(tmp_path / "rows"))
    return tmp_path / "rows"


def test_a_second_run_reads_what_the_first_kept(rows: Path) -> None:
    first = run("pruning", "smoke", worker_count=2)
    made = {path: path.stat().st_mtime_ns for path in rows.rglob("*.json")}
    shared, tasks = tasks_of("pruning", catalog.create("findings", "pruning"), "smoke", 0)
    assert len(made) == len(shared) + len(tasks)
    assert run("pruning", "smoke", worker_count=2).rows == first.rows
    assert {path: path.stat().st_mtime_ns for path in rows.rglob("*.json")} == made
    assert first.word == "inconclusive", "two seeds decide nothing"
    assert [row for row in first.rows if row.again], "the noise arm is run twice"


def test_rows_do_not_depend_on_workers_or_order(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("pruning", "smoke", worker_count=2)
    monkeypatch.setenv("MIXWRIGHT_LAB_ROWS", str(rows.with_name("others")))
    for mine, other in zip(first.rows, run("pruning", "smoke", worker_count=1).rows, strict=True):
        assert (mine.arm, mine.seed, mine.readings) == (other.arm, other.seed, other.readings)


@pytest.mark.slow
def test_a_killed_run_goes_on(rows: Path, tmp_path: Path) -> None:
    words = [*LAB, "run", "pruning", "--scale", "laptop", "--out", str(tmp_path / "out"), "--workers", "1"]
    process = subprocess.Popen(words, env=os.environ | {"MIXWRIGHT_LAB_ROWS": str(rows)}, stderr=subprocess.DEVNULL)
    while len(list(rows.rglob("*.json"))) < 12:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    kept = {path: path.stat().st_mtime_ns for path in rows.rglob("*.json")}
    assert process.returncode == -signal.SIGKILL
    assert len(kept) < 100
    done = lab("run", "pruning", "--scale", "laptop", "--out", str(tmp_path / "out"))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    result = result_files.read("pruning", folder=tmp_path / "out")
    assert done.code == 0, done.err
    assert result is not None
    assert result.word == "reproduced"
    assert len(result.rows) == len(tasks_of("pruning", catalog.create("findings", "pruning"), "laptop", 0)[1])


def test_edited_expectations_make_a_result_stale_and_keep_its_rows(rows: Path, tmp_path: Path) -> None:
    result = run("pruning", "smoke", worker_count=2)
    path = tmp_path / "pruning.json"
    result_files.write(path, result)
    assert result_files.read("pruning", folder=tmp_path) == result
    finding = catalog.load("findings", "pruning")
    assert result.expectations == result_files.digest(finding)
    other = type("Other", (finding,), {"EXPECT": (Expectation("a", difference("a", "b", "x"), 0.1, "no"),)})
    assert result.expectations != result_files.digest(other)


def test_the_digest_of_code_leaves_texts_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mixwright_lab import conditions

    def digest(text: str) -> str:
        (tmp_path / "mixwright_lab").mkdir(exist_ok=True)
        (tmp_path / "mixwright_lab" / "made.py").write_text(text)
        monkeypatch.setattr(conditions, "ROOT", tmp_path)
        conditions._code.cache_clear()
        return digest_of("mixwright_lab.made", 1)

    first = digest('"""Text."""\nclass A:\n    CLAIM = "x"\n    EXPECT = (1,)\n    rate = 0.1\n')
    assert digest('"""Another."""\nclass A:\n    CLAIM = "y"\n    EXPECT = (2,)\n    # why\n    rate = 0.1\n') == first
    assert digest('"""Text."""\nclass A:\n    CLAIM = "x"\n    EXPECT = (1,)\n    rate = 0.2\n') != first
    conditions._code.cache_clear()


def test_the_closure_follows_imports_inside_the_lab() -> None:
    assert {"mixwright_lab.running", "mixwright_lab.judging", "mixwright_lab.result_files"} <= closure(
        "mixwright_lab.running"
    )


def test_the_command_line(rows: Path, tmp_path: Path) -> None:
    done = lab("run", "pruning", "--scale", "smoke", "--out", str(tmp_path / "out"))
    line = json.loads(done.out.splitlines()[-1])
    assert (done.code, line["name"], line["scale"]) == (0, "pruning", "smoke")
    assert {"name", "value", "low", "high", "goal", "reached"} <= set(line["goals"][0])
    assert (tmp_path / "out" / "pruning.json").is_file()
    listed = json.loads(lab("list", "--json").out)
    assert "pruning" in [one["name"] for one in listed]
