"""One operator of ours, or all checks, over `train.jsonl` and `eval.jsonl` of a folder, in a process of its own.

Prints one line of JSON: CPU seconds since the imports, reading the files included, peak memory in MB, and what was found.

    python -m mixwright_lab.studies.scale_arm exact|near|near_of_all|decontamination|all|all_but_reworded FOLDER
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.audit import near_duplicates
from mixwright.audit.leaks import NEAR_SIMILARITY, find_leaks
from mixwright.audit.near_duplicates import near_repeats
from mixwright.audit.rows import Reader, draw_sample, fingerprints
from mixwright.audit.stage import run_audit
from mixwright.catalog import listing
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus


def first_equal(corpus: Corpus) -> np.ndarray:
    """Position of the first row with the same prompt and answer, for each row."""
    prints = fingerprints(corpus)
    _, first, inverse = np.unique(prints.combined(prints.normal, prints.answer), return_index=True, return_inverse=True)
    return first[inverse]


def exact(corpus: Corpus) -> dict[str, Any]:
    """Rows that repeat an earlier prompt and answer, in their normal forms."""
    return {"found": np.flatnonzero(first_equal(corpus) < np.arange(len(corpus))).tolist()}


def near(corpus: Corpus) -> dict[str, Any]:
    """Near copies of the rows sought, and which were sought."""
    distinct = np.flatnonzero(first_equal(corpus) == np.arange(len(corpus)))
    repeats = near_repeats(corpus, Reader(corpus), distinct, NEAR_SIMILARITY)
    sought = draw_sample(distinct, near_duplicates.MAX_TRAIN_ROWS_INDEXED)
    return {"found": [pair for one in repeats for pair in one.pairs], "sought": sought.tolist()}


def near_of_all(corpus: Corpus) -> dict[str, Any]:
    """The same with every row sought, which needs memory for all of them."""
    near_duplicates.MAX_TRAIN_ROWS_INDEXED = len(corpus)
    return near(corpus)


def decontamination(corpus: Corpus) -> dict[str, Any]:
    """Train rows that are a held-out item, hold one, or nearly are one."""
    leaks = find_leaks(corpus)
    return {"found": np.flatnonzero(leaks.copied | leaks.nearly_copied).tolist()}


def everything(corpus: Corpus) -> dict[str, Any]:
    """All checks."""
    return {"found": [], "observations": len(run_audit(corpus))}


def all_but_reworded(corpus: Corpus) -> dict[str, Any]:
    """All checks but the one that takes hours where ten million rows are made of few words."""
    names = [name for name in listing("checks") if name != "reworded"]
    return {"found": [], "observations": len(run_audit(corpus, names))}


OPERATORS = {
    "exact": exact,
    "near": near,
    "near_of_all": near_of_all,
    "decontamination": decontamination,
    "all": everything,
    "all_but_reworded": all_but_reworded,
}
BOTH_SPLITS = ("decontamination", "all", "all_but_reworded")


def main(operator: str, place: str) -> None:
    """Run it and print what it took."""
    before, folder = sum(os.times()[:4]), Path(place)
    train, held_out = str(folder / "train.jsonl"), str(folder / "eval.jsonl")
    config = CorpusConfig(train, held_out) if operator in BOTH_SPLITS else CorpusConfig(train, eval_share=0.0)
    found = OPERATORS[operator](read_corpus(config))
    seconds = sum(os.times()[:4]) - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "memory": memory} | found))


if __name__ == "__main__":
    main(*sys.argv[1:])
