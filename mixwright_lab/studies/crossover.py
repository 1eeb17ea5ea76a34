"""Word of the crossover test of pruning against what long trainings show, on 24 data sets of two families.

Comparisons of numbers (`mixwright_lab/worlds/comparison.py`), learnt by a small language model: 60 to 6,000 examples. Points
on two sides of a plane in 40 dimensions, learnt by logistic regression: 40 to 2,560 examples; there theory says that an end
wins (2206.14486). None, 5 or 20 % of the labels are wrong. Rows are ranked by EL2N of two short runs within each answer, a
quarter is kept. The test trains a proxy on the hard, the easy and random rows, five times each, and reads it on training
rows that it holds back, wrong labels included: that is all a user has. The proxy of a language model has half of the steps,
the regression its own few. The truth is the error on clean test examples after the full steps, six other times each: the end
that beats random rows beyond chance, the better one where both do, and "keep all" where neither does.

A word is right where it is the truth's; it is harmful where it names an end that does not beat random rows. The primary
figure is the share of data sets with the right word; simple rules that look at nothing stand beside it: always hard, always
easy, always keep all. Nothing was chosen on these data sets: settings come from seeds from 100 on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize

from mixwright.estimates.intervals import mean_interval, share_interval
from mixwright.mine.crossover import Crossover, TrainOnRows, crossover
from mixwright.records import Interval
from mixwright_lab.pruned import Rows, Settings, el2n, examples, trained
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.training.gpt import GPT

SIZES, NOISE = (60, 300, 2400, 6000), (0.0, 0.05, 0.2)
KEPT, STEPS, WIDTH = 0.25, 300, 32
PROXY_STEPS = STEPS // 2
PROXY_SEEDS, TRUE_SEEDS = tuple(range(5)), tuple(range(1000, 1006))
HELD_BACK_SHARE, MIN_HELD_BACK, MOST_HELD_BACK = 0.2, 16, 256
"""Share of the training rows that the test holds back, and how many these are at least and at most."""
TEST_ROWS = 1000
WEIGHT_DECAY = 1e-3
"""Of the weights of the regression."""
SEED = 0
"""Of the data sets."""


PLANES, DIMENSIONS = (40, 160, 640, 2560), 40
"""Examples of the second family, and what they have of coordinates."""
ITERATIONS, PROXY_ITERATIONS, SCORE_ITERATIONS = 200, 20, 5
"""Of the regression: of the truth, of a proxy, and of the runs that give the score."""
COMPARISONS, PLANE = "comparisons", "planes"


@dataclass(frozen=True)
class Job:
    """One data set."""

    family: str
    size: int
    noise: float
    seed: int
    quick: bool = False


@dataclass(frozen=True)
class DataSet:
    """What the test sees of a data set, and what decides the truth."""

    score: np.ndarray
    """Of each training row; high is hard."""
    answers: np.ndarray
    wrong: np.ndarray
    """Whether the label was made wrong."""
    proxy: Callable[[np.ndarray, int, np.ndarray], np.ndarray]
    """(rows kept, seed, rows held back) -> 1 - probability of the label of each row held back."""
    full: TrainOnRows
    """Test errors after the full steps."""


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


def comparisons(job: Job, rng: np.random.Generator) -> DataSet:
    """Comparisons of numbers and a small language model."""
    steps = STEPS // 10 if job.quick else STEPS
    settings = Settings(steps, WIDTH, proxies=2, proxy_steps=8 if job.quick else 80)
    rows = examples(job.size, job.noise, rng)
    clean = examples(TEST_ROWS, 0.0, np.random.default_rng((job.seed, 7)))
    short = replace(settings, steps=max(steps * PROXY_STEPS // STEPS, 1))

    def proxy(kept: np.ndarray, seed: int, back: np.ndarray) -> np.ndarray:
        return errors(trained(rows, kept, short.steps, seed, short), part(rows, back))

    def full(kept: np.ndarray, seed: int) -> np.ndarray:
        return wrong(trained(rows, kept, steps, seed, settings), clean)

    return DataSet(el2n(rows, settings, rng), rows.answers, rows.wrong, proxy, full)


def planes(job: Job, rng: np.random.Generator) -> DataSet:
    """Points on two sides of a plane and logistic regression, each time of nine tenths of the rows kept."""
    plane, points = rng.normal(size=DIMENSIONS), rng.normal(size=(job.size, DIMENSIONS))
    flipped = rng.random(job.size) < job.noise
    labels = np.where((points @ plane > 0) ^ flipped, 1.0, -1.0)
    clean = np.random.default_rng((job.seed, 7)).normal(size=(TEST_ROWS, DIMENSIONS))

    def student(kept: np.ndarray, seed: int, iterations: int) -> np.ndarray:
        chosen = np.random.default_rng((seed, 3)).permutation(kept)[: max(round(0.9 * len(kept)), 1)]
        return regression(points[chosen], labels[chosen], iterations)

    def chance(weights: np.ndarray, places: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(labels[places] * (points[places] @ weights)))

    def proxy(kept: np.ndarray, seed: int, back: np.ndarray) -> np.ndarray:
        return chance(student(kept, seed, PROXY_ITERATIONS), back)

    def full(kept: np.ndarray, seed: int) -> np.ndarray:
        return ((clean @ student(kept, seed, ITERATIONS) > 0) != (clean @ plane > 0)).astype(float)

    every = np.arange(job.size)
    score = np.mean([chance(student(every, 90 + run, SCORE_ITERATIONS), every) for run in range(2)], axis=0)
    return DataSet(score, (labels > 0).astype(int), flipped, proxy, full)


def regression(points: np.ndarray, labels: np.ndarray, iterations: int) -> np.ndarray:
    """Logistic regression with a little weight decay, by L-BFGS."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = labels * (points @ weights)
        pull = -labels / (1 + np.exp(np.clip(margins, -60, 60)))
        return float(np.logaddexp(0, -margins).mean() + WEIGHT_DECAY * weights @ weights / 2), points.T @ pull / len(
            points
        ) + (WEIGHT_DECAY * weights)

    return minimize(loss, np.zeros(points.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": iterations}).x


def try_one(job: Job) -> dict[str, Any]:
    """Score one data set, test it, and find out the truth."""
    rng = np.random.default_rng((job.seed, job.size, round(1000 * job.noise)))
    begun = time.process_time()
    data = comparisons(job, rng) if job.family == COMPARISONS else planes(job, rng)
    order = rng.permutation(job.size)
    back, left = np.split(order, [min(max(round(HELD_BACK_SHARE * job.size), MIN_HELD_BACK), MOST_HELD_BACK)])
    seeds = (PROXY_SEEDS[:2], TRUE_SEEDS[:2]) if job.quick else (PROXY_SEEDS, TRUE_SEEDS)
    told = crossover(
        data.score[left],
        data.answers[left],
        lambda kept, seed: data.proxy(left[kept], seed, back),
        np.zeros(len(back), dtype=int),
        fractions=(KEPT,),
        seeds=seeds[0],
    )
    seconds = time.process_time() - begun
    items = np.zeros(TEST_ROWS, dtype=int)
    true = crossover(data.score, data.answers, data.full, items, fractions=(KEPT,), seeds=seeds[1], counted=True)
    worth = true.fractions[0]
    return {
        "family": job.family,
        "size": job.size,
        "noise": job.noise,
        "seed": job.seed,
        "word": told.word,
        "truth": true.word,
        "harmful": told.word != "keep all" and told.word != true.word and worth.gains[told.word].low <= 0,
        "proxy": _figures(told),
        "true": _figures(true),
        "wrong labels among the hard": float(data.wrong[np.argsort(-data.score)[: max(round(KEPT * job.size), 1)]].mean()),
        "cpu_seconds": round(seconds, 1),
    }


def _figures(found: Crossover) -> dict[str, Any]:
    first = found.fractions[0]
    gains = {end: {"value": gain.value, "low": gain.low, "high": gain.high} for end, gain in first.gains.items()}
    return {"errors": first.errors, "gains": gains, "p": first.p_by_end, "all": found.error_on_all_rows}


def measure(quick: bool) -> Result:
    """All data sets."""
    families = ((COMPARISONS, SIZES[:2] if quick else SIZES), (PLANE, PLANES))
    jobs = [Job(name, size, noise, SEED, quick) for name, sizes in families for size in sizes for noise in NOISE]
    rows = run_in_processes(try_one, sorted(jobs, key=lambda job: -job.size), say="data set")
    right = sum(row["word"] == row["truth"] for row in rows)
    harmful = sum(row["harmful"] for row in rows)
    share, harm = share_interval(right, len(rows)), share_interval(harmful, len(rows))
    beyond = mean_interval(np.array([(row["word"] == row["truth"]) - float(row["truth"] == "keep all") for row in rows]))
    goals = [
        Goal("right words beyond those of always keeping all", beyond, "> 0", beyond.low > 0),
        Goal("share of data sets with the right word", share, ">= 0.75", share.value >= 0.75),
        Goal("share of data sets with a harmful word", harm, "== 0", harm.value == 0),
    ]
    return Result(share, "share of data sets with the right word", [SEED], rows, _summary(rows), _settings(), goals=goals)


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
        "sizes": {COMPARISONS: SIZES, PLANE: PLANES},
        "noise": NOISE,
        "kept": KEPT,
        "steps": STEPS,
        "proxy steps": PROXY_STEPS,
        "proxy seeds": PROXY_SEEDS,
        "seeds of the truth": TRUE_SEEDS,
        "test examples": TEST_ROWS,
    }


if __name__ == "__main__":
    run("crossover", __doc__, measure)
