"""Planned looks at growing evidence: the boundaries of O'Brien and Fleming (1979), and intervals that hold at each look.

Who looks several times, and stops at the first interval that excludes something, is wrong more often than one interval is.
With looks at equal steps of the items, a statistic z of k looks of K is compared with c * sqrt(K / k): hardly anything stops
at the first look, and the last one is almost the usual test. c is solved for by integrating the distribution of the sum over
the region where nothing was decided (Armitage, McPherson and Rowe, 1969).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import t_quantile

PLANNED_LOOKS = 4
"""Looks that are planned: at a quarter, a half, three quarters and all of the items."""
FAMILY_ALPHA = 0.05
"""Two-sided error over all looks."""
QUADRATURE_NODES = 80
"""Points of the Gauss-Legendre rule; with 40 the constants change in the tenth digit."""


@functools.cache
def obrien_fleming(looks: int = PLANNED_LOOKS, alpha: float = FAMILY_ALPHA) -> tuple[float, ...]:
    """Values of |z| from which on each look decides, so that a true zero is rejected at any of them in `alpha` of cases.

    Args:
        looks: equally spaced in the number of items, at least one.
        alpha: two-sided error over all looks, 0..1.
    """
    low, high = 0.1, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _crossing_probability(middle, looks) > alpha else (low, middle)
    return tuple(high * math.sqrt(looks / look) for look in range(1, looks + 1))


def _crossing_probability(constant: float, looks: int) -> float:
    """Chance that a sum of steps of N(0, 1) leaves +-constant * sqrt(looks) at one of so many looks."""
    bound = constant * math.sqrt(looks)
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    nodes, weights = bound * nodes, bound * weights
    step = np.exp(-0.5 * (nodes[:, None] - nodes) ** 2) / math.sqrt(2 * math.pi)
    density = np.exp(-0.5 * nodes**2) / math.sqrt(2 * math.pi)
    for _ in range(looks - 1):
        density = step @ (weights * density)
    return 1 - float(weights @ density)


@dataclass(frozen=True, slots=True)
class Look:
    """One of the planned looks."""

    number: int
    """Of this one, from 1."""
    items: int
    """Items that each checkpoint has answered by now."""
    last_items: int
    """Items at the last look."""
    planned_looks: int = PLANNED_LOOKS
    """How many are planned."""

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.planned_looks or not 0 <= self.items <= self.last_items:
            raise ValueError("a look from 1 to the last one, with at most the last one's items")

    @property
    def last(self) -> bool:
        """Whether no other follows."""
        return self.number >= self.planned_looks

    def z(self, alpha: float = FAMILY_ALPHA) -> float:
        """Boundary of this look."""
        return obrien_fleming(self.planned_looks, alpha)[self.number - 1]

    def confidence(self, alpha: float = FAMILY_ALPHA) -> float:
        """Level of an interval that excludes what lies beyond the boundary; below 1, so that every interval has ends."""
        return min(1 - 2 * NormalDist().cdf(-self.z(alpha)), 1 - 1e-14)

    def with_look_interval(self, estimate: Estimate) -> Estimate:
        """With the interval of this look; intervals of all looks together cover in 95 %."""
        half = t_quantile(estimate.df, self.confidence()) * estimate.error
        return replace(estimate, low=estimate.value - half, high=estimate.value + half)

    @property
    def label(self) -> str:
        """`look 2 of 4, 240 of 480 items`."""
        return f"look {self.number} of {self.planned_looks}, {self.items:,} of {self.last_items:,} items"
