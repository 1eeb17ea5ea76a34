"""Word of the crossover test of pruning against what long trainings show, on 12 data sets.

Comparisons of numbers (`mixwright_lab/worlds/comparison.py`): 60 to 6,000 examples, none, 5 or 20 % of the labels wrong.
Rows are ranked by EL2N of two short runs within each answer, a quarter is kept. The test trains a proxy for half of the
steps on the hard, the easy and random rows, five times each, and reads it on training rows that it holds back, wrong labels
included: that is all a user has. The truth is the error on clean test examples after the full steps, six other times each:
the end that beats random rows beyond chance, the better one where both do, and "keep all" where neither does.

A word is right where it is the truth's; it is harmful where it names an end that does not beat random rows. The primary
figure is the share of data sets with the right word; simple rules that look at nothing stand beside it: always hard, always
easy, always keep all. Nothing was chosen on these data sets: settings come from seeds from 100 on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks._report import Goal, Result, run
from mixwright.estimates.intervals import mean_interval, share_interval
from mixwright.mine.crossover import Crossover, crossover
from mixwright.records import Interval
from mixwright_lab.pruned import Rows, Settings, el2n, examples, trained
from mixwright_lab.training.gpt import GPT
from mixwright_lab.workers import spread

SIZES, NOISE = (60, 300, 2400, 6000), (0.0, 0.05, 0.2)
KEPT, STEPS, WIDTH = 0.25, 300, 32
PROXY_STEPS = STEPS // 2
PROXY_SEEDS, TRUE_SEEDS = tuple(range(5)), tuple(range(1000, 1006))
BACK, LEAST, MOST = 0.2, 16, 256
"""Share of the training rows that the test holds back, and how many these are at least and at most."""
TEST = 1000


@dataclass(frozen=True)
class Job:
    """One data set."""

    size: int
    noise: float
    seed: int
    quick: bool = False


def errors(model: GPT, rows: Rows) -> np.ndarray:
    """1 - probability of the answer, shape (rows,)."""
    with torch.no_grad():
        chances = model.logits_of(rows.prompts, rows.responses)[:, 1].softmax(-1)
    return (1 - chances.gather(1, rows.responses[:, 1:2])[:, 0]).double().numpy()


def wrong(model: GPT, rows: Rows) -> np.ndarray:
    """1 where the likeliest answer is not the label, shape (rows,)."""
    with torch.no_grad():
        found = model.logits_of(rows.prompts, rows.responses)[:, 1].argmax(-1)
    return (found != rows.responses[:, 1]).double().numpy()


def part(rows: Rows, places: np.ndarray) -> Rows:
    """Some of the rows."""
    return Rows(rows.prompts[places], rows.responses[places], rows.answers[places], rows.wrong[places])


def try_one(job: Job) -> dict[str, Any]:
    """Score one data set, test it, and find out the truth."""
    rng = np.random.default_rng((job.seed, job.size, round(1000 * job.noise)))
    settings = Settings(STEPS // 10 if job.quick else STEPS, WIDTH, proxies=2, proxy_steps=8 if job.quick else 80)
    rows = examples(job.size, job.noise, rng)
    score = el2n(rows, settings, rng)
    order = rng.permutation(job.size)
    back, left = np.split(order, [min(max(round(BACK * job.size), LEAST), MOST)])
    held, clean = part(rows, back), examples(TEST, 0.0, np.random.default_rng((job.seed, 7)))
    begun = time.process_time()
    short = replace(settings, steps=max(settings.steps * PROXY_STEPS // STEPS, 1))

    def proxy(kept: np.ndarray, seed: int) -> np.ndarray:
        return errors(trained(rows, left[kept], short.steps, seed, short), held)

    def full(kept: np.ndarray, seed: int) -> np.ndarray:
        return wrong(trained(rows, kept, settings.steps, seed, settings), clean)

    seeds = (PROXY_SEEDS[:2], TRUE_SEEDS[:2]) if job.quick else (PROXY_SEEDS, TRUE_SEEDS)
    told = crossover(
        score[left], rows.answers[left], proxy, np.zeros(len(back), dtype=int), fractions=(KEPT,), seeds=seeds[0]
    )
    seconds = time.process_time() - begun
    true = crossover(score, rows.answers, full, np.zeros(TEST, dtype=int), fractions=(KEPT,), seeds=seeds[1], counted=True)
    worth = true.fractions[0]
    return {
        "size": job.size,
        "noise": job.noise,
        "seed": job.seed,
        "word": told.word,
        "truth": true.word,
        "harmful": told.word != "keep all" and told.word != true.word and worth.gains[told.word].low <= 0,
        "proxy": _figures(told),
        "true": _figures(true),
        "wrong labels among the hard": float(rows.wrong[np.argsort(-score)[: max(round(KEPT * job.size), 1)]].mean()),
        "cpu_seconds": round(seconds, 1),
    }


def _figures(found: Crossover) -> dict[str, Any]:
    first = found.fractions[0]
    gains = {end: {"value": gain.value, "low": gain.low, "high": gain.high} for end, gain in first.gains.items()}
    return {"errors": first.errors, "gains": gains, "p": first.p, "all": found.everything}


def measure(quick: bool) -> Result:
    """All data sets."""
    every = [Job(size, noise, 0, quick) for size in SIZES for noise in NOISE]
    jobs = [job for job in every if not quick or job.size in SIZES[:2]]
    rows = spread(try_one, sorted(jobs, key=lambda job: -job.size), say="data set")
    right = sum(row["word"] == row["truth"] for row in rows)
    harmful = sum(row["harmful"] for row in rows)
    share, harm = share_interval(right, len(rows)), share_interval(harmful, len(rows))
    beyond = mean_interval(np.array([(row["word"] == row["truth"]) - float(row["truth"] == "keep all") for row in rows]))
    goals = [
        Goal("right words beyond those of always keeping all", beyond, "> 0", beyond.low > 0),
        Goal("share of data sets with the right word", share, ">= 0.75", share.value >= 0.75),
        Goal("share of data sets with a harmful word", harm, "== 0", harm.value == 0),
    ]
    return Result(share, "share of data sets with the right word", [0], rows, _summary(rows), _settings(), goals=goals)


def _summary(rows: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Words against truths, and what rules without a test would have had."""
    rules: dict[str, Interval] = {}
    for word in ("hard", "easy", "keep all"):
        rules[f"always {word}"] = share_interval(sum(row["truth"] == word for row in rows), len(rows))
    table = Counter(f"{row['word']} where {row['truth']} is true" for row in rows)
    return {
        "words": dict(sorted(table.items())),
        "rules": {name: asdict(found) for name, found in rules.items()},
        "cpu seconds of a test": float(np.mean([row["cpu_seconds"] for row in rows])),
    }


def _settings() -> dict[str, Any]:
    return {
        "sizes": SIZES,
        "noise": NOISE,
        "kept": KEPT,
        "steps": STEPS,
        "proxy steps": PROXY_STEPS,
        "proxy seeds": PROXY_SEEDS,
        "seeds of the truth": TRUE_SEEDS,
        "test examples": TEST,
    }


if __name__ == "__main__":
    run("crossover", __doc__, measure)
