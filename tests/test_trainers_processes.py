"""Two processes draw and decide as one does, notice when they do not, and leave a folder that resumes when one dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import forked
import pyarrow.parquet as pq
import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow
FILES = ("decisions.jsonl", "steps.jsonl", "draws.parquet", "proof.json")
OWN = ("entropy", "kl_nats")
"""Fields of a step that depend on completions, which every process samples for itself."""
TAPES = ("tape_grpo", "tape_accumulated", "tape_sft", "tape_dpo")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs, made once by a copy of this process that forks."""
    folder = tmp_path_factory.mktemp("processes")
    done = forked.run(lambda: import_module("_processes_run").main(folder))
    assert done.code == 0, done.err[-3000:]
    return folder


def codes(runs: Path) -> dict[str, str]:
    return dict(line.split(": ") for line in (runs / "codes.txt").read_text().splitlines())


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "steering" / name).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in OWN} for line in found]


def same(one: Any, two: Any) -> bool:
    """Equal, numbers up to rounding: sums over a batch are made in another order."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return one == pytest.approx(two, rel=1e-4, abs=1e-6) if isinstance(one, float) else one == two


def test_all_runs_ended_as_meant(runs: Path) -> None:
    found = codes(runs)
    assert {found[f"{tape}-1"] for tape in TAPES} == {"0"}
    assert {found[f"{tape}-2"] for tape in TAPES} == {"0 0"}
    assert [found["dying"], found["dying_in_a_save"]] == ["1 -9", "1 -9"]
    assert [found[name] for name in ("learning", "dying resumed", "dying_in_a_save resumed")] == ["0 0"] * 3


@pytest.mark.parametrize("tape", TAPES)
def test_two_processes_draw_and_decide_as_one(runs: Path, tape: str) -> None:
    one, two = runs / f"{tape}-1", runs / f"{tape}-2"
    assert pq.read_table(one / "steering" / "draws.parquet") == pq.read_table(two / "steering" / "draws.parquet")
    assert same(lines(one, "decisions.jsonl"), lines(two, "decisions.jsonl"))
    assert same(lines(one, "steps.jsonl"), lines(two, "steps.jsonl"))
    if tape not in ("tape_sft", "tape_dpo"):
        assert lines(one, "steps.jsonl") == lines(two, "steps.jsonl"), "rewards are fixed, so to the bit"


def test_the_tape_made_the_engine_act(runs: Path) -> None:
    """Refusals and skipped steps are among what was equal."""
    found = {line["what"] for line in lines(runs / "tape_grpo-2", "decisions.jsonl")}
    assert {"refuse.letters@1", "skip_step"} <= found
    assert any(line["refused"] for line in lines(runs / "tape_grpo-2", "steps.jsonl"))


def test_saves_of_two_processes_wait_for_the_generation_batch(runs: Path) -> None:
    assert sorted(path.name for path in (runs / "tape_accumulated-2").glob("checkpoint-*")) == [
        path.name for path in sorted((runs / "tape_accumulated-1").glob("checkpoint-*"))
    ]


@pytest.mark.parametrize("death", ["dying", "dying_in_a_save"])
def test_a_dead_process_leaves_a_folder_that_resumes(runs: Path, death: str) -> None:
    whole, resumed = runs / "learning", runs / death
    for name in FILES:
        assert (whole / "steering" / name).read_bytes() == (resumed / "steering" / name).read_bytes(), name
    last = "checkpoint-6/model.safetensors"
    assert (whole / last).read_bytes() == (resumed / last).read_bytes()


def test_a_checkpoint_without_all_random_states_is_passed_over(runs: Path) -> None:
    told = (runs / "dying_in_a_save" / "rank0.txt").read_text()
    assert "checkpoint-2" in told
    assert "checkpoint-3 (rng_state_1.pth" in told


def test_processes_that_draw_differently_are_stopped(runs: Path) -> None:
    assert codes(runs)["diverging"] == "1 1"
    for number in (0, 1):
        assert "the processes no longer sample and decide alike" in (runs / "diverging" / f"rank{number}.txt").read_text()


def test_processes_with_other_data_are_refused(runs: Path) -> None:
    assert codes(runs)["other_data"] == "1 1"
    assert (
        "expected the same train_dataset, plan and seed on every process" in (runs / "other_data" / "rank0.txt").read_text()
    )


def test_one_process_measures_for_the_gate_and_all_stop(runs: Path) -> None:
    """The first process answers the items before training and at the look that shows a loss; the second only hears of it."""
    assert codes(runs)["gated"] == "0 0"
    first, second = (json.loads((runs / "gated" / f"gate-{rank}.json").read_text()) for rank in (0, 1))
    assert first["answered"] == [12] * (1 + len(first["looks"]))
    assert second == first | {"answered": []}
    assert first["looks"][-1] == "lost"
    assert first["steps"] == 5 * len(first["looks"]) < 100


@pytest.mark.slow
def test_under_a_launcher(runs: Path, tmp_path: Path) -> None:
    """`torchrun`, with a port that it finds itself, ends as the forked processes do."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {
        "ACCELERATE_USE_CPU": "true",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}",
    }
    subprocess.run([*command, str(HERE / "_processes_run.py"), str(tmp_path)], env=environment, check=True, timeout=600)
    for name in FILES:
        assert (runs / "learning" / "steering" / name).read_bytes() == (tmp_path / "steering" / name).read_bytes(), name
