"""`transformers serve` on a tiny model: the same texts as in this process, and what it lacks is named."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_call import Call, sums, write
from test_sft_chat_families import words
from trainers_tiny import model

from mixwright.learner.load import load_learner

pytest.importorskip("openai")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address of the server, and the checkpoint that it serves."""
    folder = tmp_path_factory.mktemp("served")
    checkpoint = folder / "tiny"
    model(vocab_size=128, max_position_embeddings=1024).save_pretrained(checkpoint)
    words("qwen2_5").save_pretrained(checkpoint)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "transformers"), "serve", str(checkpoint), "--device", "cpu"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        for _ in range(600):
            assert server.poll() is None, (folder / "log").read_text()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                    break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1", checkpoint
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_it_writes_what_the_model_writes_here(call: Call, served: tuple[str, Path]) -> None:
    url, checkpoint = served
    corpus = write("e.jsonl", sums(12))
    code, _, err = call(
        "measure", url, "--served-model", str(checkpoint), "--eval", corpus, "--grader", "exact", "--max-new-tokens", "8"
    )
    assert code == 0, err
    (lacking,) = [line for line in err.splitlines() if "it does not support" in line]
    assert "log-probabilities" in lacking
    assert "control of penalties" in lacking, "it refuses fields that it does not know"
    (log,) = Path("runs/served").glob("*/log.jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    prompts = [({"role": "user", "content": row["prompt"]},) for row in rows]
    here = load_learner(str(checkpoint)).sample(prompts, count=1, temperature=0, max_new_tokens=8, seed=0)
    assert [row["completion"] for row in rows] == [one.text for (one,) in here]
    assert [row["cut"] for row in rows] == [not one.finished for (one,) in here]


def test_it_takes_a_temperature_and_decodes_greedily(call: Call, served: tuple[str, Path]) -> None:
    """Version 5.23 does so, where the model's own settings do not ask for samples: no sampled success may come of it."""
    url, checkpoint = served
    corpus = write("e.jsonl", sums(12))
    code, _, err = call(
        "measure", url, "--served-model", str(checkpoint), "--eval", corpus, "--max-new-tokens", "8", "--sampled"
    )
    assert code == 1
    assert "expected samples that differ" in err
