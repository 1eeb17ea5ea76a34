"""A run on a Ray cluster whose machines share no run folder: each raylet sees its own, beside an S3 server of the tests."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import APART, Cluster, job_processes
from recorded_runs import differences, values
from storages import BUCKET, needs_s3, s3_server

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray (make ray)"),  # it reads settings on import
    needs_s3,
    pytest.mark.skipif(
        subprocess.run([*APART, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode != 0,
        reason="no mounts of one's own on this machine",
    ),
]
STEPS = {"steps": 3, "prompts": 4, "learning_rate": 1e-3, "canary_every": 2}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three branches from a tiny model that a worker builds: nothing but the run folder is needed elsewhere."""
    folder = tmp_path_factory.mktemp("made")
    rows = [
        {"task": task, "prompt": f"{task} {n}", "completion": str(n + step), "answer": str(n + step)}
        for n in range(10, 70)
        for task, step in (("copy", 0), ("next", 1))
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = {"width": 16, "depth": 1, "heads": 2, "vocabulary": 264, "warmup": {"steps": 20, "batch_size": 8}}
    measure = {"items": 6, "samples": 1, "max_new_tokens": 4, "probes": ["competence"]}
    trial = {"arms": ["uniform", "steered"], "seeds": 1}
    made = {"corpus": {"train": str(folder / "rows.jsonl")}, "model": model, "measure": measure, "trial": trial}
    (folder / "run.yaml").write_text(json.dumps(made | {"train": {"objective": "sft"} | STEPS}))
    return folder / "run.yaml"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A head without cores, and two machines that have nothing of the run's folder."""
    with pytest.MonkeyPatch.context() as patch, s3_server(patch):
        (tmp_path / "work").mkdir()
        with Cluster(cores=0, environment={"RAY_memory_monitor_refresh_ms": "0"}) as started:
            for number in (1, 2):
                started.add(cores=1, apart=tmp_path / "work")
                until, log = time.monotonic() + 60, started.folder / f"part{number}.log"
                while "Ray runtime started" not in log.read_text():
                    assert time.monotonic() < until, log.read_text()
                    time.sleep(0.2)
            yield started


def run(folder: Path, *words: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """The command in a folder."""
    folder.mkdir(exist_ok=True)
    program = [sys.executable, "-m", "mixwright", "run", *words, "--folder", "out"]
    with (folder / "said.txt").open("a") as said:
        return subprocess.Popen(program, cwd=folder, env=environment, stdout=said, stderr=said, text=True)


def wait_until(holds: Callable[[], Any], command: subprocess.Popen[str], folder: Path) -> None:
    until = time.monotonic() + 200
    while not holds():
        assert command.poll() is None, (folder / "said.txt").read_text()
        assert time.monotonic() < until, (folder / "said.txt").read_text()
        time.sleep(0.1)


def left(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Values without times and settings of where it ran; bytes of tables and weights."""
    out = folder / "out"
    found = {name: value for name, value in values(out).items() if not name.startswith((".storage", "run.yaml/trial/"))}
    files = [path for path in out.rglob("*") if path.suffix in (".parquet", ".safetensors")]
    return found, {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def test_machines_without_a_shared_folder_leave_what_one_machine_leaves(
    settings: Path, tmp_path: Path, cluster: Cluster
) -> None:
    alone, work = tmp_path / "alone", tmp_path / "work"
    whole = run(alone, str(settings))
    assert whole.wait(timeout=300) == 0, (alone / "said.txt").read_text()
    words = (str(settings), "--cluster", f"ray:{cluster.address}", "--storage", f"s3://{BUCKET}/run")
    command = run(work / "run", *words, environment=cluster.environment)

    def trains() -> int | None:
        branches = ("frozen", "steered", "uniform")
        for pid in job_processes(cluster.folder):
            inside = Path(f"/proc/{pid}/root{work}/run/out/trial")
            if any((inside / f".{arm}-0.partial").is_dir() for arm in branches):
                return pid
        return None

    wait_until(trains, command, work / "run")
    os.kill(trains() or 0, signal.SIGKILL)
    command.wait(timeout=300)
    said = (work / "run" / "said.txt").read_text()
    assert command.returncode == 0, said
    assert "It runs again" in said
    copies = [Path(f"/proc/{part.pid}/root{work}/run/out") for part in cluster.parts[1:]]
    assert all(json.loads((copy / ".storage.json").read_text())["is_copy"] for copy in copies)
    assert not any((copy / "verdict.html").exists() for copy in copies), "it is written here, after the last job"
    (whole_values, whole_bytes), (found, found_bytes) = left(alone), left(work / "run")
    assert found_bytes == whole_bytes
    assert {name.split("/")[0] for name in found_bytes} >= {"bases", "corpus", "measure", "trial"}
    different = differences(whole_values, found)
    assert {name: pair for name, pair in different.items() if "mixwright run" not in f"{name} {pair}"} == {}
