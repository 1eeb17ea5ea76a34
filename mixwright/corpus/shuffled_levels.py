"""Levels permuted among the rows of a task: cells that say nothing about difficulty."""

from __future__ import annotations

import numpy as np

from mixwright.corpus import Corpus
from mixwright.corpus.rows import with_column

SHUFFLE_SEED = 3_000_017
"""Added to the run's seed: the permutation is the same in every seed of the trial."""


def shuffle_levels(corpus: Corpus, seed: int) -> Corpus:
    """The corpus with levels permuted within each task, among training and held-out rows separately; nothing else changes.

    Args:
        corpus: left as it is.
        seed: of the run.
    """
    rng = np.random.default_rng(seed + SHUFFLE_SEED)
    names = zip(*(corpus.table[name].to_pylist() for name in ("split", "task")), strict=True)
    keys = np.array([f"{split}\n{task}" for split, task in names], dtype=object)
    source = np.arange(len(corpus))
    for key in sorted(set(keys)):
        rows = np.flatnonzero(keys == key)
        source[rows] = rng.permutation(rows)
    shuffled = corpus.select()
    shuffled.table = with_column(corpus.table, "level", corpus.table["level"].take(source))
    return shuffled
