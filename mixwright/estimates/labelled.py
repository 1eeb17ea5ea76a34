"""Change of success that a fallible judge graded, corrected by items that the user labelled: prediction-powered inference.

The mean of the labelled items, moved by what the judge says of the others beyond what it says of these. Labelled items show
the errors of the judge, also where they differ before and after; a judge that says nothing changes nothing. Labelled items
have to be drawn at random, whatever was answered to them.

Source: PPI++ (Angelopoulos, Duchi and Zrnic, 2311.01453), of paired differences, each cell by itself. Ours: the weight of
    the judge is drawn towards 0 by `Z` squared pseudo-items, which are added to the squares, too, as in `crossed`.
Unit: share, after minus before; 95 % intervals by Student's t.
Cost: one pass over the items.
Blind spot: labels that were not drawn at random, or that are wrong. Simulated: `mixwright_lab/studies/judge.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_of
from mixwright.estimates.intervals import Z

Array = NDArray[np.float64]


def estimate_labelled(
    judged: Array, labelled: Array, strata: NDArray[np.int64], weights: Array, pseudo_quantile: float = Z
) -> Estimate:
    """Estimate the weighted mean of true changes.

    Args:
        judged: of each item, the change of the judge's grades.
        labelled: of each item, the change of its labels; NaN without them. Where a grader is right by definition, its own.
        strata: of each item, whole numbers from 0: the cell it was drawn from.
        weights: of each item, summing to 1, the same within a cell.
        pseudo_quantile: quantile whose square is added for items that were not seen to change.
    """
    value, variance, sum_of_terms = 0.0, 0.0, 0.0
    for number in range(int(strata.max()) + 1):
        own = strata == number
        share = float(weights[own].sum())
        mean, parts = _estimate_cell(judged[own], labelled[own], pseudo_quantile)
        value += share * mean
        variance += share**2 * sum(part for part, _ in parts)
        sum_of_terms += sum((share**2 * part) ** 2 / df for part, df in parts)
    return estimate_of(value, variance, variance**2 / max(sum_of_terms, 1e-300), 1, len(judged))


def _estimate_cell(judged: Array, labelled: Array, z: float) -> tuple[float, list[tuple[float, float]]]:
    """Return the mean of one cell, and the parts of its variance with their degrees of freedom."""
    known = ~np.isnan(labelled)
    truth, said, rest = labelled[known], judged[known], judged[~known]
    count, left = len(truth), len(rest)
    if count < 2:  # nothing is known of the judge: the change may be anything
        return float(judged.mean()), [(1.0, 1.0)]
    weight = _weigh_judge(truth, said, judged, left, z) if left > 1 else 0.0
    errors = truth - weight * said
    squares = float(((errors - errors.mean()) ** 2).sum()) + z * z
    parts = [(squares / (count - 1) / count, count - 1.0)]
    if not weight:
        return float(truth.mean()), parts
    parts.append((weight**2 * float(rest.var(ddof=1)) / left, left - 1.0))
    return float(truth.mean() + weight * (rest.mean() - said.mean())), parts


def _weigh_judge(truth: Array, said: Array, judged: Array, left: int, z: float) -> float:
    """Return the weight of the judge's grades, 0..1, that makes the variance least."""
    count = len(truth)
    shared = float((truth - truth.mean()) @ (said - said.mean()))
    spread = (count - 1) * max(float(judged.var(ddof=1)), float(said.var(ddof=1))) + z * z
    return float(np.clip(shared / spread / (1 + count / left), 0, 1))
