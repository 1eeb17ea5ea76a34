"""Study of what predicting success from prompts costs: features, draws, learning, memory, and its share of a step.

Features are made for prompts of two lengths, on samples, and their CPU time is given per million rows. Draws take the best
of 256 candidates for each row from a pool of 10^6 (10^5 where quick), a batch of 64 at a time, what each batch showed
included; the same pool without features draws evenly. The share of a step is measured as `overhead` measures
it, on rows without levels and a model of 15M parameters: all bookkeeping, prediction included, against the rest of a step.

    python -m mixwright_lab.studies.prediction [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixwright import Engine, Pool, make_pool
from mixwright.records import GroupOutcome, Plan, Signals, Stage, to_data
from mixwright.steer.prompt_features import FEATURE_BYTES, prompt_features
from mixwright_lab.studies.overhead import BOOKKEPT, compare, figures, packed
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.studies.trainer_runs import Case

CASE = Case("grpo", "15M", prompts=4, tokens=16, steps=27, seeds=3, labelled=False)
QUICK = replace(CASE, prompts=2, steps=6, seeds=2)
SEEDS, BATCH, BATCHES, WARMUP = (0, 1, 2), 64, 20, 20
TIMED_ROWS = 20_000
"""Rows whose features are timed."""
PROMPT_WORDS = {"short": 5, "long": 60}
"""Words of a prompt."""


def prompts_of(words: int, size: int, seed: int) -> list[str]:
    """Random words of two to nine letters, of a vocabulary of 5,000."""
    rng = np.random.default_rng(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(letters[place] for place in rng.integers(26, size=rng.integers(2, 10))) for _ in range(5000)]
    return [" ".join(known[place] for place in row) for row in rng.integers(len(known), size=(size, words)).tolist()]


def seconds(action: Callable[..., Any], *given: Any) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    action(*given)
    return time.process_time() - start


def featured(words: str, seed: int) -> dict[str, Any]:
    """CPU seconds per million rows, and characters per prompt."""
    prompts = prompts_of(PROMPT_WORDS[words], TIMED_ROWS, seed)
    spent = seconds(prompt_features, prompts) * 1e6 / TIMED_ROWS
    return {"part": f"features, {words}", "seed": seed, "seconds": spent, "characters": float(np.mean([*map(len, prompts)]))}


def pool_of(size: int, seed: int) -> Pool:
    """One task without levels; features of a sample stand for those of the others, which cost nothing more to draw from."""
    features = prompt_features(prompts_of(PROMPT_WORDS["short"], TIMED_ROWS, seed))
    pool = make_pool([str(row) for row in range(size)], ["all"] * size)
    return replace(pool, features=np.resize(features, (size, FEATURE_BYTES)))


def drawn(pool: Pool, seed: int) -> dict[str, float]:
    """CPU microseconds per draw, and CPU milliseconds per batch that is taken in."""
    options = {"selectors.difficulty": {"predict": True}}  # without features rows are drawn evenly all the same
    stage = Stage("training", "grpo", 1000, {"all": 1.0}, selector="difficulty", options=options)
    engine, rng = Engine(Plan("benchmark", (stage,)), pool, seed=seed), np.random.default_rng(seed)
    spent = {"draw": 0.0, "learn": 0.0}
    for step in range(WARMUP + BATCHES):
        counted = step >= WARMUP
        start = time.process_time()
        rows = engine.draw(BATCH)
        spent["draw"] += counted * (time.process_time() - start)
        right = rng.random((BATCH, 8)) < np.where(np.array(rows) % 3, 0.9, 0.1)[:, None]
        groups = [
            GroupOutcome(pool.ids[row], "all", None, step, tuple(map(float, share)))
            for row, share in zip(rows, right.tolist(), strict=True)
        ]
        start = time.process_time()
        engine.observe(groups, Signals(step))
        spent["learn"] += counted * (time.process_time() - start)
    return {"draw": 1e6 * spent["draw"] / BATCH / BATCHES, "learn": 1e3 * spent["learn"] / BATCHES}


def speeds(size: int, seed: int) -> list[dict[str, Any]]:
    """A pool with features, and the same without."""
    pool = pool_of(size, seed)
    arms = {"predicted": pool, "even": replace(pool, features=None)}
    return [{"part": f"engine, {arm}", "seed": seed, **drawn(given, seed)} for arm, given in arms.items()]


def mean(rows: Sequence[dict[str, Any]], part: str, column: str) -> float:
    """Over seeds."""
    return float(np.mean([row[column] for row in rows if row["part"] == part]))


def measure(quick: bool) -> Result:
    """The headline is the share of a step at 15M parameters."""
    case, size = QUICK if quick else CASE, 10**5 if quick else 10**6
    made = [featured(words, seed) for words in PROMPT_WORDS for seed in SEEDS]
    made += [row for seed in SEEDS for row in speeds(size, seed)]
    found: dict[str, Any] = {
        f"{words}: CPU seconds per million rows": round(mean(made, f"features, {words}", "seconds"), 1)
        for words in PROMPT_WORDS
    }
    found |= {f"{words}: characters": round(mean(made, f"features, {words}", "characters"), 1) for words in PROMPT_WORDS}
    for arm in ("predicted", "even"):
        draw, learn = (mean(made, f"engine, {arm}", column) for column in ("draw", "learn"))
        found |= {
            f"{arm}: draws per second": round(1e6 / draw),
            f"{arm}: CPU ms per batch of {BATCH} groups": round(learn, 2),
        }
    found |= {"bytes per example": FEATURE_BYTES, f"MB at {size:,} examples": size * FEATURE_BYTES / 1e6}
    steps = [row for seed in range(case.seeds) for row in compare(case, seed)]
    shares = figures(steps)
    found |= {name: to_data(value) for name, value in shares.items()}
    for name, value in found.items():
        print(f"  {name:<48} {value}")
    share = shares[BOOKKEPT]
    goals = [
        Goal("bookkeeping with prediction, 15M parameters, % of a step", share, "<= 1, upper end too", share.high <= 1),
        Goal("further bytes per example", interval([float(FEATURE_BYTES)] * 2), "<= 32", FEATURE_BYTES <= 32),
    ]
    unit = "% of a GRPO step's CPU time without steering, 15M parameters, rows without levels: bookkeeping with prediction"
    settings = {"case": to_data(case), "size": size, "batch": BATCH, "candidates": 256}
    return Result(share, unit, range(case.seeds), [*made, *packed(steps)], found, settings, goals=goals)


if __name__ == "__main__":
    run("prediction", __doc__, measure)
