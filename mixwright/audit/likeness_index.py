"""Index of texts that finds, for each of them, the train row that is most like it, in one view; memory follows the texts.

Candidates share rare features with a text (an inverted index of features that few of the texts have, the rarest of each
train row); they are then compared in full. A likeness is the weight of what the text shares with the row, as a share of the
text's own weight, times the square root of that weight: much in common, and nearly all of it. It is asymmetric, so that a
row which holds more is found; a row of more features counts a little less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from mixwright.audit.likeness import Features, Texts

MAX_POSTINGS = 128
"""Held-out texts that have a feature, above which it leads to none of them."""
KEYS_PER_ROW = 16
"""Rarest features of a train row that lead to texts."""
KEPT_PER_ROW, MOST_KEPT_PER_ROW = 4, 64
"""Held-out texts that a train row is compared with in full: those with the largest share of their weight among its keys."""
LEAST_KEY_SHARE = 0.05
"""Share of a text's weight that the keys must have."""
CELLS, LEAST_FILLED = 2**20, 4
"""Cells of a table of rows and texts that is filled at a time, and how many there may be for each pair that shares
something; where there are more, pairs are sorted."""
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
        kept = math.ceil(min(max(KEPT_PER_ROW * self.scale, 1), MOST_KEPT_PER_ROW))
        is_dense = self._postings[places].sum() * LEAST_FILLED >= (row[-1] + 1) * self.count
        rows_at_a_time = max(1, CELLS // self.count) if is_dense else int(row[-1]) + 1
        edges = np.searchsorted(row, np.arange(0, row[-1] + 1 + rows_at_a_time, rows_at_a_time))
        find = self._find_in_table if is_dense else self._find_in_pairs
        found = [find(row[at:to], places[at:to], kept) for at, to in pairwise(edges) if to > at]
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def _find_in_table(self, row: np.ndarray, places: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
        """The texts that share most with each of a few rows, by a table of all texts and these rows."""
        spread, at = _expand(self._first[places], self._postings[places])
        first_row, count = row[0], row[-1] - row[0] + 1
        cells = (row[spread] - first_row) * self.count + self._text[at]
        shared = np.bincount(cells, self._weight[at], count * self.count).reshape(count, self.count)
        lack = (shared / -np.maximum(self._totals, 1e-6)).astype(np.float32)  # negative: the front is parted faster
        most = np.full(count, -LEAST_KEY_SHARE, np.float32)
        if kept < self.count:
            most = np.minimum(most, np.partition(lack, kept - 1, axis=1)[:, kept - 1])
        row, text = np.nonzero(lack <= most[:, None])
        return _first_of_each(row + first_row, text, -lack[row, text], kept)

    def _find_in_pairs(self, row: np.ndarray, places: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
        """The same by sorting the pairs that share something, where these are few."""
        spread, at = _expand(self._first[places], self._postings[places])
        pair = row[spread] * self.count + self._text[at]
        order = np.argsort(pair, kind="stable")
        pair, weight = pair[order], self._weight[at][order]
        first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
        row, text = np.divmod(pair[first], self.count)
        share = np.add.reduceat(weight, first) / np.maximum(self._totals[text], 1e-6)
        keep = share >= LEAST_KEY_SHARE
        return _first_of_each(row[keep], text[keep], share[keep], kept)

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


def _first_of_each(row: np.ndarray, text: np.ndarray, share: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs with the largest share of each row."""
    order = np.lexsort((-share, row))
    row, text = row[order], text[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    return row[rank < kept], text[rank < kept]


def _expand(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of runs of places: which run each place is of, and the place, int64."""
    run = np.repeat(np.arange(len(starts)), sizes)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + starts[run]
