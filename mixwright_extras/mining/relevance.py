"""Relevance of training rows to a few target rows: by gradients, by words, by hidden states; pure numpy.

Source: LESS, 2402.04333 (cosines of gradients, mean over the shots of a task); Robertson & Zaragoza 2009 for BM25; rows that
    targets take in turn, 2602.14696.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

Scores = Float[np.ndarray, "rows shots"]


def cosines(rows: Float[np.ndarray, "rows size"], shots: Float[np.ndarray, "shots size"]) -> Scores:
    """Cosine of each row with each shot; 0 where either has no length.

    A cosine and no product: the mean gradient of a short target is larger, so that short rows would always win.
    """
    return _unit_vectors(rows) @ _unit_vectors(shots).T


def bm25(rows: Sequence[Sequence[str]], shots: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> Scores:
    """BM25 of each row, given as its words, for each shot as the query."""
    counts = [Counter(words) for words in rows]
    length = np.array([len(words) for words in rows], dtype=float)
    length_penalty = k1 * (1 - b + b * length / max(length.mean(), 1.0))
    row_count_by_word = Counter(word for row_counts in counts for word in row_counts)
    scores = np.zeros((len(rows), len(shots)))
    for shot_index, query in enumerate(shots):
        for word, times in Counter(query).items():
            idf = math.log(1 + (len(rows) - row_count_by_word[word] + 0.5) / (row_count_by_word[word] + 0.5))
            occurrences = np.array([row_counts[word] for row_counts in counts], dtype=float)
            scores[:, shot_index] += times * idf * occurrences * (k1 + 1) / (occurrences + length_penalty)
    return scores


def choose_in_turn(scores: Scores, count: int) -> Int[np.ndarray, " chosen"]:
    """Rows that the shots choose in turn, each the best that is left, until `count` are chosen."""
    orders = np.argsort(-scores, axis=0, kind="stable")
    is_taken, chosen_rows, next_rank = np.zeros(len(scores), dtype=bool), [], np.zeros(scores.shape[1], dtype=int)
    while len(chosen_rows) < min(count, len(scores)):
        shot = len(chosen_rows) % scores.shape[1]
        while is_taken[orders[next_rank[shot], shot]]:
            next_rank[shot] += 1
        row = int(orders[next_rank[shot], shot])
        is_taken[row] = True
        chosen_rows.append(row)
    return np.array(chosen_rows, dtype=np.int64)


def _unit_vectors(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
