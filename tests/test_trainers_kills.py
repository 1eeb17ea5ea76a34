"""A run killed anywhere in a save, or in the middle of a line, resumes to the files and weights of the undisturbed run."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import forked
import pytest

pytestmark = pytest.mark.slow
FILES = ("decisions.jsonl", "steps.jsonl", "draws.parquet", "proof.json")
FIVE = ("inside our state", "inside TRL's files", "before our move", "inside a line", "after the last save")
POINTS = (
    "before our state",
    "inside our state",
    "before TRL's first file",
    "inside TRL's files",
    "inside TRL's last file",
    "before the older one goes",
    "before our move",
    "inside our move",
    "inside a line",
    "after the last save",
)
CASES = [("grpo", point) for point in POINTS] + [(kind, point) for kind in ("sft", "dpo") for point in FIVE]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs, made once by a copy of this process that forks."""
    folder = tmp_path_factory.mktemp("kills")
    done = forked.run(lambda: import_module("_kills_run").main(folder))
    assert done.code == 0, done.err[-3000:]
    return folder


def codes(runs: Path) -> dict[str, str]:
    return dict(line.split(": ") for line in (runs / "codes.txt").read_text().splitlines())


def test_all_runs_ended_as_meant(runs: Path) -> None:
    found = codes(runs)
    assert {found.pop(kind) for kind in ("grpo", "sft", "dpo")} == {"0"}
    assert set(found) == {f"{kind} {point}" for kind, point in CASES}
    assert set(found.values()) == {"-9 0"}, "killed, then resumed to the end"


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_the_resumed_run_equals_the_undisturbed_one(runs: Path, kind: str, point: str) -> None:
    whole, killed = runs / kind, runs / f"{kind} {point}"
    for name in FILES:
        assert (killed / "steering" / name).read_bytes() == (whole / "steering" / name).read_bytes(), name
    last = "checkpoint-6/model.safetensors"
    assert (killed / last).read_bytes() == (whole / last).read_bytes()
    assert not (killed / "steering" / "saving").exists()


def test_the_runs_were_steered(runs: Path) -> None:
    """Otherwise equal files would say little."""
    text = (runs / "grpo" / "steering" / "decisions.jsonl").read_text()
    assert "refuse.letters@1" in text
    assert "lr_factor" in text or "skip_step" in text
