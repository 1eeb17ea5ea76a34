"""Study of completions by vLLM (`--engine vllm`) beside those of transformers: SmolLM2-135M-Instruct on a CPU.

Every second of the demo's held-out questions of six kinds, 90 in all, is answered by both with the same weights in float32
(Q4_1 weights, dequantised), up to 32 tokens: greedily, twice in turn, and with four samples at temperature 1. Compared are
texts, grades, log-probabilities of the tokens that both chose up to the first difference, and completions per second. Where
two greedy texts part, transformers' own log-probabilities of the two tokens say whether that was a near tie.

Expectations, written before the run: greedy, at least 95 % of the texts and 98 % of the grades are equal; no common token
is more than 0.001 nats apart; wherever texts part the two tokens are less than 0.001 nats apart. Draws are others, and the
interval of the difference of sampled success holds 0, as it does 19 times of 20 where nothing differs. vLLM writes at least
as many completions per second, both having written once before, on the same number of threads.

    make vllm     # makes the environment; its tests run, too
    .venv/vllm/bin/python -m mixwright_lab.studies.vllm_engine [--quick]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.load import load_learner, plain_source
from mixwright.learner.vllm_engine import start_engines
from mixwright.records import Text
from mixwright_lab.studies.questions import write_files
from mixwright_lab.studies.report import Goal, Result, interval, run

SEED, TOKENS, SAMPLES, ROUNDS = 61, 32, 4, 2
MIN_EQUAL_TEXTS, MIN_EQUAL_GRADES, MAX_NATS, MIN_RATIO = 0.95, 0.98, 0.001, 1.0


def write(learner: Learner, prompts: Sequence[Text], samples: int) -> tuple[list[list[Completion]], float]:
    """Completions, greedy for 0 samples, and how many were written a second."""
    began = time.monotonic()
    written = learner.sample(prompts, count=samples or 1, temperature=float(samples > 0), max_new_tokens=TOKENS, seed=SEED)
    return written, len(prompts) * max(samples, 1) / (time.monotonic() - began)


def part(one: Completion, other: Completion) -> int:
    """Tokens that two completions have in common before the first that differs."""
    pairs = zip(one.token_ids, other.token_ids, strict=False)
    return next((n for n, (own, theirs) in enumerate(pairs) if own != theirs), min(len(one.token_ids), len(other.token_ids)))


def gap_at(learner: Learner, prompt: Text, one: Completion, other: Completion) -> float | None:
    """Nats between the two tokens where completions part, by transformers; None where they do not part."""
    common = part(one, other)
    if common == len(one.token_ids) == len(other.token_ids):
        return None
    ((_, table),) = learner.distributions([prompt], [one.token_ids[: common + 1]])
    return float(table[common, one.token_ids[common]] - table[common, other.token_ids[common]])


def measure(quick: bool) -> Result:
    """Both, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), SEED)
        held_out, graders = f"{folder}/held_out.jsonl", {"tool_calls": "exact"}
        corpus = read_corpus(CorpusConfig(held_out, eval_share=0.0, grader="includes", graders=graders))
    items = list(corpus)[:: 15 if quick else 2]
    prompts = [item.prompt for item in items]
    ours, theirs = load_learner("smollm2"), load_learner("smollm2")
    start_engines([theirs], [plain_source("smollm2")])
    for learner in (ours, theirs):
        write(learner, prompts[:8], 0)
    speeds, greedy = list[tuple[float, float]](), list[list[list[Completion]]]()
    for _ in range(1 if quick else ROUNDS):
        greedy, per_second = zip(*(write(learner, prompts, 0) for learner in (ours, theirs)), strict=True)
        speeds.append(per_second)
    sampled, sampled_speeds = zip(*(write(learner, prompts, SAMPLES) for learner in (ours, theirs)), strict=True)
    rows: list[dict[str, Any]] = []
    for place, item in enumerate(items):
        (one,), (other,) = greedy[0][place], greedy[1][place]
        pairs = list(zip(one.logprobs, other.logprobs, strict=False))[: part(one, other)]
        samples = [[corpus.grade(item, written.text) for written in side[place]] for side in sampled]
        rows.append(
            {
                "task": item.task,
                "item": item.id,
                "texts": [one.text, other.text],
                "grades": [corpus.grade(item, one.text), corpus.grade(item, other.text)],
                "equal tokens": one.token_ids == other.token_ids,
                "ended": [one.finished, other.finished],
                "nats apart": max((abs(own - their) for own, their in pairs), default=0.0),
                "nats where they part": gap_at(ours, item.prompt, one, other),
                "sampled success": [sum(grades) / SAMPLES for grades in samples],
            }
        )
    return result(rows, speeds, sampled_speeds, theirs.engine_name)


def result(
    rows: list[dict[str, Any]], speeds: Sequence[tuple[float, float]], sampled: tuple[float, float], engine: str | None
) -> Result:
    """Figures and goals."""
    texts = interval([float(row["equal tokens"]) for row in rows])
    grades = interval([float(row["grades"][0] == row["grades"][1]) for row in rows])
    success = interval([row["sampled success"][1] - row["sampled success"][0] for row in rows])
    apart = max(row["nats apart"] for row in rows)
    gaps = [row["nats where they part"] for row in rows if row["nats where they part"] is not None]
    ratio = interval([theirs / ours for ours, theirs in speeds]) if len(speeds) > 1 else None
    near = interval([float(abs(gap) < MAX_NATS) for gap in gaps]) if len(gaps) > 1 else None
    nats = interval([row["nats apart"] for row in rows])
    goals = [
        Goal.at_least("share of equal greedy completions", texts, MIN_EQUAL_TEXTS),
        Goal.at_least("share of equal greedy grades", grades, MIN_EQUAL_GRADES),
        Goal(
            "nats apart, largest of an answer's common tokens (goal of every one)", nats, f"<= {MAX_NATS}", apart <= MAX_NATS
        ),
        Goal("sampled success, vLLM - transformers", success, "holds 0", success.low <= 0 <= success.high),
    ]
    if near is not None:
        goals.append(Goal.at_least("share of near ties where texts part", near, 1))
    if ratio is not None:
        goals.append(Goal.at_least("completions per second, vLLM / transformers", ratio, MIN_RATIO))
    figures = {
        "answers that part": len(gaps),
        "largest nats apart": apart,
        "nats where they part": gaps,
        "greedy success, transformers and vLLM": [sum(row["grades"][n] for row in rows) / len(rows) for n in range(2)],
        "sampled success, transformers and vLLM": [sum(r["sampled success"][n] for r in rows) / len(rows) for n in range(2)],
        "greedy completions per second, transformers and vLLM": speeds,
        "sampled completions per second, transformers and vLLM": sampled,
    }
    settings = {
        "tokens": TOKENS,
        "samples": SAMPLES,
        "items": len(rows),
        "engine": engine,
        "threads": torch.get_num_threads(),
    }
    return Result(texts, "share of equal greedy completions", (SEED,), rows, figures, settings, goals=goals)


if __name__ == "__main__":
    run("vllm_engine", __doc__, measure)
