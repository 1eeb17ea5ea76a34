"""Intervals for paired differences: over seeds (Student's t) and over items (Agresti and Min), and Holm's correction.

Student's distribution is written out for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4), because the
page must be rendered without scipy; a test compares it with scipy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np


def tail(t: float, freedom: int) -> float:
    """P(|T| > |t|) of Student's t with a whole number of degrees of freedom >= 1."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(max(1 - inside, 0.0), 1.0)


def quantile(freedom: int, confidence: float = 0.95) -> float:
    """T such that P(|T| <= t) = confidence."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > 1 - confidence else (low, middle)
    return high


def mean_over_seeds(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, low, high) of one number per seed, 95 % t interval; the interval is infinite for one seed."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, -math.inf, math.inf
    half = quantile(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def seeds_probability(differences: Sequence[float]) -> float:
    """Two-sided p value of a paired t test over seeds; 1 for a single seed."""
    if len(differences) < 2:
        return 1.0
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    mean = float(np.mean(differences))
    if error < 1e-12:
        return 0.0 if abs(mean) > 1e-12 else 1.0
    return tail(mean / error, len(differences) - 1)


def mean_over_items(differences: Sequence[float]) -> tuple[float, float, float, float]:
    """(mean, low, high, p) of paired differences of items, each in -1..1.

    Agresti and Min (2005): two pseudo-items, half up, half down, one unchanged, so that cells of all zeros or all ones
    keep an honest width. The interval is cut at -1 and 1.
    """
    values = np.asarray(differences, dtype=float)
    count = len(values) + 2
    centre = values.sum() / count
    error = math.sqrt(max((np.square(values).sum() + 1) / count - centre**2, 0.0) / count)
    half = NormalDist().inv_cdf(0.975) * error
    p = 2 * (1 - NormalDist().cdf(abs(centre) / error))
    return float(values.mean()), max(centre - half, -1.0), min(centre + half, 1.0), p


def holm(probabilities: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given."""
    order = sorted(range(len(probabilities)), key=lambda i: probabilities[i])
    adjusted, running = [0.0] * len(order), 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(order) - rank) * probabilities[index]))
        adjusted[index] = running
    return adjusted
