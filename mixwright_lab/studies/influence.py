"""Study of the miner `influence`: whether it tells rows that help from look-alikes, what a row costs, and transfer.

The data of its last case in `mine`: of 1,200 scraped rows every second follows another convention in the same
words. After the case's warm-up each row is compared with 40 trusted rows by gradient sketch, words (BM25) and hidden states;
the figure is the area under the ROC curve of right against other rows, mean cosine over the trusted rows. The rows that are
chosen are those of the miner. Transfer: a model of half the width chooses for the whole one.

Cost: CPU time per row of a sketch, calibration included and left out, against a plain backward pass in batches, and against
one backward pass per row that makes all gradients, as LESS's published loop does (its random projection, which comes on top,
is left out in its favour). Arms take turns in one process of one thread.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from mixwright.config import CorpusConfig, ModelConfig, WarmupConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.mine.relevance import bm25, choose_in_turn, cosines
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.mine import write_digits
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.studies.scan import plain

SEEDS = tuple(range(0, 8 * 37, 37))
SHOTS, KEPT_SHARE, LAST = 40, 0.25, 3
WIDTH, SMALL = 32, 16
GRADIENTS, WORDS, HIDDEN, SMALLER = "gradients", "words", "hidden states", "gradients of a smaller model"


def scraped(seed: int) -> tuple[Corpus, np.ndarray]:
    """Training rows of the case, and whether each follows the convention of the trusted ones."""
    with tempfile.TemporaryDirectory() as folder:
        write_digits(Path(folder), seed)
        corpus = read_corpus(CorpusConfig("train.jsonl", eval="held.jsonl", grader="exact"), relative_to=Path(folder))
    corpus = corpus.select(split="train")
    return corpus, np.array([str(row.prompt)[LAST] == row.target for row in corpus])


def features(corpus: Corpus, width: int, seed: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Sketches and hidden states of every row after the warm-up; CPU seconds of the sketches and of other passes."""
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up
    from mixwright.scan.passes import ScanPasses
    from mixwright.scan.rows import scan_rows
    from mixwright.scan.sketch_calibration import SketchSettings, calibrate, calibration_rows
    from mixwright.scan.table import column_groups

    texts = [f"{row.prompt}{row.target}" for row in corpus]
    learner = build_tiny(texts, ModelConfig(width=width, depth=2, heads=2, vocabulary=264), seed=seed)
    warm_up(learner, corpus, WarmupConfig(steps=150, batch_size=32, learning_rate=5e-3), seed=seed)
    rows = list(scan_rows(learner, corpus))
    begun = time.process_time()
    calibration = calibrate(learner, calibration_rows(rows, 0), SketchSettings())
    calibrated = time.process_time()
    groups = column_groups(["sketch", "hidden"])
    found: dict[str, np.ndarray] = {}
    seconds = {"calibration": calibrated - begun}
    for name, group in groups.items():
        asked: Any = frozenset(group.PASSES)
        begun = time.process_time()
        read = group.compute(rows, ScanPasses(learner, rows, asked, calibration=calibration))
        seconds[name] = time.process_time() - begun
        found |= {column: np.array(values) for column, values in read.items() if column in ("sketch", "hidden")}
    begun = time.process_time()
    plain(learner, rows, backward=True)
    seconds["plain backward"] = time.process_time() - begun
    begun = time.process_time()
    for row in rows:
        plain(learner, [row], backward=True)
    seconds["one by one"] = time.process_time() - begun
    return {name: np.nan_to_num(values.astype(np.float32)) for name, values in found.items()}, seconds


def try_one(seed: int) -> dict[str, Any]:
    """One draw of the data: areas, what is chosen, and costs."""
    corpus, right = scraped(seed)
    tasks = np.array([row.task for row in corpus])
    shots, pool = np.flatnonzero(tasks == "trusted")[:SHOTS], np.flatnonzero(tasks == "scraped")
    large, seconds = features(corpus, WIDTH, seed)
    small, _ = features(corpus, SMALL, seed + 1)
    words = [f"{row.prompt} {row.target}".split() for row in corpus]
    scores = {
        GRADIENTS: cosines(large["sketch"][pool], large["sketch"][shots]),
        WORDS: bm25([words[at] for at in pool], [words[at] for at in shots]),
        HIDDEN: cosines(large["hidden"][pool], large["hidden"][shots]),
        SMALLER: cosines(small["sketch"][pool], small["sketch"][shots]),
    }
    found: dict[str, Any] = {"seed": seed, "seconds": seconds, "rows": len(corpus)}
    chosen = {
        name: choose_in_turn(values.mean(1, keepdims=True), round(KEPT_SHARE * len(pool))) for name, values in scores.items()
    }
    found["area"] = {name: area(values.mean(1), right[pool]) for name, values in scores.items()}
    found["right among chosen"] = {name: float(right[pool][places].mean()) for name, places in chosen.items()}
    found["shared with the smaller model's choice"] = len({*chosen[GRADIENTS]} & {*chosen[SMALLER]}) / len(chosen[SMALLER])
    return found


def area(scores: np.ndarray, right: np.ndarray) -> float:
    """Under the ROC curve of right rows against the others."""
    return float(mannwhitneyu(scores[right], scores[~right]).statistic) / float(right.sum() * (~right).sum())


def measure(quick: bool) -> Result:
    """Every seed."""
    seeds: Sequence[int] = SEEDS[:2] if quick else SEEDS
    rows = run_in_processes(try_one, seeds, say="draw")
    areas = {name: interval([row["area"][name] for row in rows]) for name in rows[0]["area"]}
    chosen = {name: interval([row["right among chosen"][name] for row in rows]) for name in rows[0]["area"]}
    seconds = [row["seconds"] for row in rows]
    cost = {
        "sketch over a plain backward pass": interval([own["sketch"] / own["plain backward"] for own in seconds]),
        "one row at a time over a sketch": interval([own["one by one"] / own["sketch"] for own in seconds]),
        "one row at a time over a sketch and its calibration": interval(
            [own["one by one"] / (own["sketch"] + own["calibration"]) for own in seconds]
        ),
    }
    shared = interval([row["shared with the smaller model's choice"] for row in rows])
    goals = [
        Goal("area under ROC by gradients", areas[GRADIENTS], ">= 0.8, lower end too", areas[GRADIENTS].low >= 0.8),
        Goal("area under ROC by words", areas[WORDS], "<= 0.55", areas[WORDS].value <= 0.55),
        Goal("right rows chosen by a smaller model", chosen[SMALLER], ">= 0.8", chosen[SMALLER].value >= 0.8),
    ]
    every = {"area": areas, "right among chosen": chosen, "cost": cost, "shared": shared}
    figures = {name: plain_data(values) for name, values in every.items()}
    settings = {"shots": SHOTS, "keep": KEPT_SHARE, "widths": (WIDTH, SMALL)}
    unit = "area under ROC, right rows against look-alikes"
    return Result(areas[GRADIENTS], unit, seeds, rows, figures, settings, goals=goals)


def plain_data(value: Any) -> Any:
    """Intervals as JSON values."""
    from mixwright.records import to_data

    return {name: to_data(found) for name, found in value.items()} if isinstance(value, dict) else to_data(value)


if __name__ == "__main__":
    run("influence", __doc__, measure)
