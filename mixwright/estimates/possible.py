"""Possible changes of a share: no more can be lost than was right before, and no more be won than was wrong.

What was right before is uncertain, so the ends of its own Wilson interval bound the change: a loss by the upper end, a
gain by what the lower end leaves. What is wrong and right after bounds them in the same way. The bounds bind where items are
few, and there the interval of the differences is far wider than 95 % asks: what is cut still covers at least 94 % for every
truth, or as much as it did (`tests/test_possible.py` counts all outcomes of 6, 8 and 12 items).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import wilson

Array = NDArray[np.float64]
Z_EACH_BOUND = 2.2414
"""98.75 % point of the normal distribution: two bounds share the 2.5 % of each end."""


def within_possible(estimate: Estimate, before: Array, after: Array, strata: NDArray[np.int64], share: Array) -> Estimate:
    """The estimate with its interval cut at what could change at all; value, error and p value stay.

    Args:
        estimate: of after minus before.
        before: shape (seeds, items), 0..1.
        after: the same.
        strata: of each item, whole numbers from 0: the cell it was drawn from; each cell is bounded by itself.
        share: weight of each item, summing to 1.
    """
    if not math.isfinite(estimate.value):
        return estimate
    weights = np.bincount(strata, share)
    (before_low, before_high), (after_low, after_high) = _ends(before, strata), _ends(after, strata)
    loss = float(weights @ np.minimum(before_high, 1 - after_low))
    gain = float(weights @ np.minimum(1 - before_low, after_high))
    return replace(estimate, low=max(estimate.low, -loss), high=min(estimate.high, gain))


def _ends(values: Array, strata: NDArray[np.int64]) -> tuple[Array, Array]:
    """Wilson's interval of the mean of each stratum.

    Items are what is counted. Seeds are, where they are fewer and differ: a model that one seed gives and the next one does
    not is as good as drawn by seeds.
    """
    tries = np.bincount(strata).astype(float)
    wins = np.bincount(strata, values.mean(axis=0)) / tries
    if len(values) > 1 and (values != values[0]).any():
        tries = np.minimum(tries, len(values))
    return wilson(wins * tries, tries, Z_EACH_BOUND)
