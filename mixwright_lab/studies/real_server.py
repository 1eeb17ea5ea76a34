"""Study of SmolLM2-135M-Instruct behind a server of llama.cpp, beside the same weights in this process.

Of the demo's held-out questions 60 of six kinds are answered greedily with up to 24 tokens, by `llama_cpp.server` (which
computes with the Q4_1 weights and activations of eight bits) and here (the same weights, dequantised, float32). Compared are
texts, grades, and completions per second, one after the other, three times. Equal texts are not expected: near ties are
decided by the precision, and one token changes the rest. The committed run compared log-probabilities of equal texts, too.

Expectation, written before the run: at least 90 % of the grades are equal.

    pip install 'llama-cpp-python[server]'     # in another environment: it compiles for some minutes
    python -m llama_cpp.server --model SmolLM2-135M-Instruct.Q4_1.gguf --logits_all true --n_ctx 1024 --n_threads 2
    MIXWRIGHT_SERVER=http://127.0.0.1:8000/v1 python -m mixwright_lab.studies.real_server [--quick]
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError
from mixwright.learner.load import load_learner
from mixwright.measure.served import Asking, Reply, Request, ServedModel, find_model
from mixwright.records import Example
from mixwright_lab.studies.questions import write_files
from mixwright_lab.studies.report import Goal, Result, interval, run

SEED, TOKENS, PARALLEL, ROUNDS = 5, 24, 8, 3
MIN_EQUAL_GRADES = 0.9


def served_replies(url: str, items: list[Example]) -> tuple[list[Reply], float]:
    """Answers of the server in the order of the items, and the seconds that they took."""
    model = ServedModel(Asking(url, find_model(url), TOKENS))
    requests = [Request((item.task, item.id, 0), item.prompt) for item in items]
    began = time.monotonic()
    found = {request.key: reply for request, reply in model.answer(requests, parallel=PARALLEL)}
    seconds = time.monotonic() - began
    model.close()
    replies = [found[request.key] for request in requests]
    return [reply for reply in replies if isinstance(reply, Reply)], seconds


def measure(quick: bool) -> Result:
    """Both, in turn."""
    url = os.environ.get("MIXWRIGHT_SERVER")
    if not url:
        raise InputError("the address of a server", "none", "Set MIXWRIGHT_SERVER.")
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), SEED)
        held_out, graders = f"{folder}/held_out.jsonl", {"tool_calls": "exact"}
        corpus = read_corpus(CorpusConfig(held_out, eval_share=0.0, grader="includes", graders=graders))
        items = list(corpus)[:: 15 if quick else 3]
        learner = load_learner("smollm2")
        rows: list[dict[str, Any]] = []
        speeds: list[tuple[float, float]] = []
        for turn in range(1 if quick else ROUNDS):
            told, served_seconds = served_replies(url, items)
            began = time.monotonic()
            here = learner.sample([i.prompt for i in items], count=1, temperature=0, max_new_tokens=TOKENS, seed=0)
            seconds = time.monotonic() - began
            speeds.append((len(items) / served_seconds, len(items) / seconds))
            if turn == 0:
                rows = [
                    {
                        "task": item.task,
                        "item": item.id,
                        "served": reply.text,
                        "here": own.text,
                        "grades": [corpus.grade(item, reply.text, cut=reply.cut), corpus.grade(item, own.text)],
                        "tokens": [reply.tokens, len(own.token_ids)],
                    }
                    for item, reply, (own,) in zip(items, told, here, strict=True)
                ]
    grades = interval([float(row["grades"][0] == row["grades"][1]) for row in rows])
    texts = interval([float(row["served"] == row["here"]) for row in rows])
    ratio = interval([served / own for served, own in speeds]) if len(speeds) > 1 else None
    figures = {
        "share of equal texts": texts,
        "completions per second, served and here": speeds,
        "completions per second, served / here": ratio,
    }
    goals = [Goal.at_least("share of equal grades", grades, MIN_EQUAL_GRADES)]
    settings = {"tokens": TOKENS, "parallel": PARALLEL, "items": len(items)}
    return Result(grades, "share of equal grades", (SEED,), rows, figures, settings, goals=goals)


if __name__ == "__main__":
    run("real_server", __doc__, measure)
