"""Planned looks at growing evidence: boundaries of Wang and Tsiatis (1987), and intervals that hold at each look.

Who looks several times, and stops at the first interval that excludes something, is wrong more often than one interval is.
With looks at equal steps of the items, a statistic z of look k of K is compared with c * (K / k) ** (1/2 - shape). With a
shape of 0 (O'Brien and Fleming, 1979) hardly anything stops at the first looks, and the last one is almost the usual test;
with 1/2 (Pocock, 1977) all looks are alike. c is solved for by integrating the distribution of the sum over the region where
nothing was decided (Armitage, McPherson and Rowe, 1969).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import t_quantile

LOOK_ITEMS, CELL_LOOK_ITEMS, MAX_LOOKS = 50, 10, 16
"""Items after which there is a look, over all cells and of the largest one, and the most looks. More looks at small cells
cost more passes than they save items."""
MORE_ITEMS = 1.07
"""Items at the last look, times those of a single one, with which as many unharmed checkpoints pass."""
MEAN_SHAPE, CELL_SHAPE = 0.25, 0.0
"""Shape of the boundaries of a mean, which decides how early looks end, and of single cells, of which only the last may
still have to exclude a loss."""
FAMILY_ALPHA = 0.05
"""Two-sided error over all looks."""
QUADRATURE_NODES = 80
"""Points of the Gauss-Legendre rule; with 40 the constants change in the tenth digit."""


def count_looks(sizes: Collection[int]) -> int:
    """Return how many looks there are at so many items of each cell."""
    return max(min(sum(sizes) // LOOK_ITEMS, max(sizes) // CELL_LOOK_ITEMS, MAX_LOOKS), 1)


@functools.cache
def boundaries(looks: int, alpha: float = FAMILY_ALPHA, shape: float = MEAN_SHAPE) -> tuple[float, ...]:
    """Values of |z| from which on each look decides, so that a true zero is rejected at any of them in `alpha` of cases.

    Args:
        looks: equally spaced in the number of items, at least one.
        alpha: two-sided error over all looks, 0..1.
        shape: from 0 (late) to 1/2 (alike).
    """
    low, high = 0.1, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _crossing_probability(middle, looks, shape) > alpha else (low, middle)
    return tuple(high * (looks / look) ** (0.5 - shape) for look in range(1, looks + 1))


def _crossing_probability(constant: float, looks: int, shape: float) -> float:
    """Chance that the sum of k steps of N(0, 1) leaves +-constant * looks ** (1/2 - shape) * k ** shape at a look."""
    bounds = constant * looks ** (0.5 - shape) * np.arange(1, looks + 1) ** shape
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    density = np.exp(-0.5 * (bounds[0] * nodes) ** 2) / math.sqrt(2 * math.pi)
    for bound, following in itertools.pairwise(bounds):
        step = np.exp(-0.5 * (following * nodes[:, None] - bound * nodes) ** 2) / math.sqrt(2 * math.pi)
        density = step @ (bound * weights * density)
    return 1 - float(bounds[-1] * weights @ density)


@dataclass(frozen=True, slots=True)
class Look:
    """One of the planned looks."""

    number: int
    """Of this one, from 1."""
    items: int
    """Items that each checkpoint has answered by now."""
    last_items: int
    """Items at the last look."""
    planned_looks: int
    """How many are planned."""
    common: int = 0
    """Last look at which every cell was asked more, of which the interval of a mean is; 0 for this one. Afterwards only
    cells that look bad are asked, so that their mean rises."""

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.planned_looks or not 0 <= self.items <= self.last_items:
            raise ValueError("a look from 1 to the last one, with at most the last one's items")

    @property
    def last(self) -> bool:
        """Whether no other follows."""
        return self.number >= self.planned_looks

    def z(self, alpha: float = FAMILY_ALPHA, *, of_cell: bool = False) -> float:
        """Boundary of this look, of a mean or of what a single cell has to exclude."""
        number, shape = (self.number, CELL_SHAPE) if of_cell else (self.common or self.number, MEAN_SHAPE)
        return boundaries(self.planned_looks, alpha, shape)[number - 1]

    def confidence(self, alpha: float = FAMILY_ALPHA, *, of_cell: bool = False) -> float:
        """Level of an interval that excludes what lies beyond the boundary; below 1, so that every interval has ends."""
        return min(1 - 2 * NormalDist().cdf(-self.z(alpha, of_cell=of_cell)), 1 - 1e-14)

    def with_look_interval(self, estimate: Estimate) -> Estimate:
        """With the interval of this look, of a change of a share; intervals of all looks together cover in 95 %."""
        half = t_quantile(estimate.df, self.confidence()) * estimate.error
        return replace(estimate, low=max(estimate.value - half, -1.0), high=min(estimate.value + half, 1.0))

    @property
    def label(self) -> str:
        """`look 2 of 4, 240 of 480 items`."""
        return f"look {self.number} of {self.planned_looks}, {self.items:,} of {self.last_items:,} items"
