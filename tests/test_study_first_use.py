"""The study of a first use: rows of both sides share nothing, and a command is timed, judged and kept as it came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mixwright.errors import InputError
from mixwright_lab.studies import first_use


def pairs(folder: Path) -> Path:
    for file, _ in first_use.TASKS.values():
        rows = [{"input": f"{file[:3]} {number}", "output": str(number)} for number in range(400)]
        (folder / file).write_text(json.dumps(rows), encoding="utf-8")
    return folder


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_no_held_out_prompt_is_learnt_from(tmp_path: Path) -> None:
    first_use.write_rows(pairs(tmp_path), tmp_path, quick=False)
    train, asked, held_out = (read(tmp_path / f"{name}.jsonl") for name in ("train", "asked", "eval"))
    assert len(held_out) == 5 * first_use.HELD_OUT_ROWS
    assert [row["task"] for row in train].count("french") == first_use.NEW_ROWS
    assert not {row["prompt"] for row in train} & {row["prompt"] for row in held_out}
    assert [row["completion"] for row in train] == [row["answer"] for row in asked]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="english-french"):
        first_use.write_rows(tmp_path, tmp_path, quick=True)


def test_commands_are_timed_and_judged(tmp_path: Path) -> None:
    talk = "import time\nprint('price: 3 items', flush=True)\ntime.sleep(0.3)\nraise ValueError('x')"
    row = first_use.do_step(first_use.Step("dry run, x", talk), tmp_path)
    assert row["first word"] < row["seconds"] - 0.2
    assert (row["code"], row["traceback"], row["told"]) == (1, True, ["price: 3 items"])
    assert "ValueError" in (tmp_path / "dry-run-x.txt").read_text(encoding="utf-8")
    words, dry_runs, tracebacks = first_use.goals_of([row, row | {"seconds": 121.0}])
    assert (words.reached, dry_runs.reached, tracebacks.reached) == (True, False, False)
