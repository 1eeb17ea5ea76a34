"""Runs of three words, and the similarity of two prompts by them.

Exact over short prompts; of long ones the 64 smallest hashes stand for all (a bottom-k sketch of the Jaccard similarity).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence

SKETCH_SIZE = 64
MIN_WORD_RUNS = 6
"""Runs of words, template apart, below which a prompt is too short to be nearly another."""


def word_runs(found: Sequence[str]) -> set[int]:
    """Hashes of every run of three words among `found`; numbers and signs are skipped."""
    letters = [word for word in found if word[0].isalpha()]
    runs = zip(letters, letters[1:], letters[2:], strict=False)
    return {zlib.crc32(" ".join(run).encode("utf-8", "surrogatepass")) for run in runs}


def sketch(runs: Collection[int], template: Collection[int]) -> frozenset[int]:
    """The smallest of the runs that are not `template`; empty where there are too few."""
    kept = sorted(run for run in runs if run not in template)
    return frozenset(kept[:SKETCH_SIZE]) if len(kept) >= MIN_WORD_RUNS else frozenset()


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Jaccard similarity: exact for short sets; from full sketches, the share of the union's smallest that both hold."""
    if len(one) == SKETCH_SIZE or len(other) == SKETCH_SIZE:
        union = sorted(one | other)[:SKETCH_SIZE]
        return sum(run in one and run in other for run in union) / len(union)
    return len(one & other) / len(one | other) if one or other else 0.0
