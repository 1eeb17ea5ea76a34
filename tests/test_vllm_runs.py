"""Runs of run.yaml that the released vLLM writes for, beside transformers: local workers, Ray, LoRA, a kill, memory."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, sums, write
from first_answers import read_first_answers

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.learner.vllm_engine import run_engine
from mixwright_extras.tiny.model import build_tiny

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM (make vllm)"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # its own
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.spawned,
]
SETTINGS = """
corpus: {train: train.jsonl, eval: eval.jsonl}
model: {path: "tiny:", width: 64, depth: 2, heads: 2, vocabulary: 270, warmup: {steps: 40, batch_size: 16}}
measure: {items: 10, samples: 2, max_new_tokens: 5, probes: [competence]}
train: {objective: sft, steps: 25, prompts: 8, learning_rate: 2.0e-2}
trial: {arms: [uniform, lora], nulls: [], seeds: 1, workers: 1}
"""
WEIGHTS = ("uniform-0/model/model.safetensors", "lora-0/adapter/adapter_model.safetensors")
ENGINES = 5
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows = [row | {"target": row["answer"]} for row in sums(60)]
        write("train.jsonl", rows[:40])
        write("eval.jsonl", rows[40:])
        (folder / "run.yaml").write_text(SETTINGS)
    return folder


def command(folder: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "mixwright", "run", "run.yaml", "--folder", folder, *options]


def run(files: Path, folder: str, *options: str) -> Path:
    done = subprocess.run(command(folder, *options), cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return files / folder


@pytest.fixture(scope="module")
def plain(files: Path) -> Path:
    """By transformers."""
    return run(files, "plain")


@pytest.fixture(scope="module")
def served(files: Path) -> Path:
    """By vLLM, in one worker that lives as long as the run."""
    return run(files, "served", "--engine", "vllm")


def answers(folder: Path) -> dict[str, Any]:
    """Greedy completions of each branch, before and after."""
    return {
        path.parent.name: [
            (row["example"], row["when"], row["tokens"], row["score"]) for row in read_first_answers(path.parent)
        ]
        for path in folder.glob("trial/*/after.answers.parquet")
    }


def measured(folder: Path) -> dict[str, bytes]:
    """What was measured, sampled answers among it, to the byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*/after.parquet")}


def test_all_weights_and_lora_write_what_transformers_writes(plain: Path, served: Path) -> None:
    assert set(answers(served)) == {"frozen-0", "uniform-0", "lora-0"}
    assert answers(served) == answers(plain)
    for arm in ("uniform-0", "lora-0"):
        rows = {when: [row[2] for row in answers(served)[arm] if row[1] == when] for when in ("before", "after")}
        assert rows["before"] != rows["after"], "trained weights write otherwise"
    for name in WEIGHTS:  # trained after an engine of another branch had ended in the same process
        assert (served / "trial" / name).read_bytes() == (plain / "trial" / name).read_bytes()
    assert json.loads((served / "manifest.json").read_text())["settings"]["engine"].startswith("vllm ")


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray")
def test_workers_of_a_ray_cluster_write_the_same(files: Path, served: Path) -> None:
    clustered = run(files, "clustered", "--engine", "vllm", "--cluster", "ray")
    assert answers(clustered) == answers(served)
    assert measured(clustered) == measured(served)
    assert all((clustered / "trial" / name).read_bytes() == (served / "trial" / name).read_bytes() for name in WEIGHTS)


def test_a_run_that_was_killed_goes_on_to_the_same(files: Path, served: Path) -> None:
    killed, until = files / "killed", time.monotonic() + 300
    process = subprocess.Popen(
        command("killed", "--engine", "vllm"), cwd=files, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not list(killed.glob("trial/.*.partial/trained.json")) or not list(killed.glob("trial/*-0/branch.json")):
        assert process.poll() is None and time.monotonic() < until, "not killed in time"  # noqa: PT018
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "trial" / "result.json").exists()
    run(files, "killed", "--engine", "vllm")
    assert answers(killed) == answers(served)
    assert measured(killed) == measured(served)


def test_engines_that_ended_leave_no_memory_taken(call: Call) -> None:
    """A worker writes for one branch after another; keys and values alone take a gibibyte each time."""
    config = RunConfig(CorpusConfig("unused"), measure=MeasureConfig(engine="vllm"))
    sizes: list[int] = []
    for seed in range(ENGINES):
        learner = build_tiny(["1+1="] * 20, ModelConfig("tiny:", width=64, depth=2, heads=2, vocabulary=270), seed=seed)
        with run_engine(config, learner, None):
            learner.sample(["1+1="], count=2, temperature=1.0, max_new_tokens=5, seed=0)
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES)
    assert sizes[-1] - sizes[1] < 2**28
