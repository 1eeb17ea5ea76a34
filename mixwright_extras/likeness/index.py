"""Index of texts that finds, for each of them, the train row that is most like it, in one view; memory follows the texts.

Candidates share rare features with a text (an inverted index of features that few of the texts have, the rarest of each
train row); they are then compared in full. A likeness is the weight of what the text shares with the row, as a share of the
text's own weight, times the square root of that weight: much in common, and nearly all of it. It is asymmetric, so that a
row which holds more is found; a row of more features counts a little less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mixwright_extras.likeness.features import Features, Texts

MAX_POSTINGS = 128
"""Held-out texts that have a feature, above which it leads to none of them."""
KEYS_PER_ROW = 16
"""Rarest features of a train row that lead to texts."""
KEPT_PER_ROW, MOST_KEPT_PER_ROW = 4, 64
"""Held-out texts that a train row is compared with in full: those with the largest share of their weight among its keys."""
LEAST_KEY_SHARE = 0.05
"""Share of a text's weight that the keys must have."""
LENGTH_POWER = 0.25
"""How much a row of more features counts less."""


@dataclass
class ViewIndex:
    """Texts in one view, and the train row that each is most like so far."""

    features: Features
    """Of the texts."""
    weights: np.ndarray
    """float32 of shape (features,): what each weighs for its text."""
    count: int
    """Number of texts."""
    needs_answer: bool
    """Whether a row with another brief answer is passed over."""
    scale: float = 1.0
    """Texts here for each held-out text: bounds grow with it, so that both are searched with the same care."""
    best: np.ndarray = field(init=False)
    """float32 of shape (texts,): likeness of the best row; 0 without any."""
    partner: np.ndarray = field(init=False)
    """int64 of the same shape: number of that row; -1 without any."""

    def __post_init__(self) -> None:
        self.best, self.partner = np.zeros(self.count, np.float32), np.full(self.count, -1, np.int64)
        self._starts = np.searchsorted(self.features.row, np.arange(self.count + 1))
        self._totals = np.bincount(self.features.row, self.weights, self.count).astype(np.float32)
        order = np.argsort(self.features.code, kind="stable")
        self._codes, first = np.unique(self.features.code[order], return_index=True)
        ends = np.append(first[1:], len(order))
        self._first, self._postings = first, ends - first
        self._text, self._weight = self.features.row[order].astype(np.int32), self.weights[order]

    def search(self, rows: Texts, features: Features, numbers: np.ndarray, texts: Texts, own: np.ndarray) -> None:
        """Look through train rows, and keep what is better than before.

        Args:
            rows: the train rows.
            features: of these rows, in this view.
            numbers: int64, their row numbers.
            texts: what is indexed.
            own: int64 of shape (texts,): row number of each text.
        """
        row, text = self._candidates(features)
        keep = (rows.text[row] != texts.text[text]) & (numbers[row] != own[text])
        if self.needs_answer:
            ours, theirs = texts.answer[text], rows.answer[row]
            keep &= (ours == theirs) | (ours == 0) | (theirs == 0)
        row, text = row[keep], text[keep]
        likeness = self._compare(features, row, text)
        order = np.lexsort((-numbers[row], likeness))
        row, text, likeness = row[order], text[order], likeness[order]
        better = likeness > self.best[text]
        # the last one written is the likest
        self.best[text[better]], self.partner[text[better]] = likeness[better], numbers[row[better]]

    def _candidates(self, features: Features) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (row, text) that share rare features, int64."""
        nothing = np.zeros(0, np.int64)
        if not len(self._codes) or not len(features.code):
            return nothing, nothing
        places = np.minimum(np.searchsorted(self._codes, features.code), len(self._codes) - 1)
        known = (self._codes[places] == features.code) & (self._postings[places] <= MAX_POSTINGS * self.scale)
        row, places = features.row[known], places[known]
        order = np.lexsort((self._postings[places], row))
        row, places = row[order], places[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        row, places = row[rank < KEYS_PER_ROW], places[rank < KEYS_PER_ROW]
        if not len(row):
            return nothing, nothing
        spread, at = _expand(self._first[places], self._postings[places])
        pairs, inverse = np.unique(row[spread] * self.count + self._text[at], return_inverse=True)
        row, text = np.divmod(pairs, self.count)
        share = (np.bincount(inverse, self._weight[at]) / np.maximum(self._totals[text], 1e-6)).astype(np.float32)
        row, text, share = (values[share >= LEAST_KEY_SHARE] for values in (row, text, share))
        order = np.lexsort((-share, row))
        row, text = row[order], text[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        is_kept = rank < math.ceil(min(max(KEPT_PER_ROW * self.scale, 1), MOST_KEPT_PER_ROW))
        return row[is_kept], text[is_kept]

    def _compare(self, features: Features, row: np.ndarray, text: np.ndarray) -> np.ndarray:
        """Likeness of each pair, float32."""
        sizes = self._starts[text + 1] - self._starts[text]
        spread, at = _expand(self._starts[text], sizes)
        keys = features.row.astype(np.uint64) << np.uint64(32) | features.code
        sought = row[spread].astype(np.uint64) << np.uint64(32) | self.features.code[at]
        places = np.minimum(np.searchsorted(keys, sought), max(len(keys) - 1, 0))
        shared = (
            np.bincount(spread, np.where(keys[places] == sought, self.weights[at], 0), len(row)) if len(at) else row * 0.0
        )
        own_sizes = np.bincount(features.row, minlength=int(row.max(initial=0)) + 1)[row]
        length = (sizes / np.maximum(np.maximum(sizes, own_sizes), 1)) ** LENGTH_POWER
        return (shared / np.maximum(self._totals[text], 1e-6) * np.sqrt(shared) * length).astype(np.float32)


def _expand(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of runs of places: which run each place is of, and the place, int64."""
    run = np.repeat(np.arange(len(starts)), sizes)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + starts[run]
