"""Power of a trial before it is run, and after: the smallest difference it would tell from 0, and what less takes.

The variance of a difference of two arms is that of `crossed`: sd(seeds)^2 / S + k (items + rest / S), with k the sum of
squared item weights. The last two are shares of an item's spread 2 p (1 - p), p being its sampled success before: an item
that is always right, or never, hardly moves. The shares, and the noise of seeds, come from earlier trials (`PRIOR_NOISE`).
`crossed` takes the largest of three variances, so few seeds give it a little more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixwright.estimates.crossed import DETECTION_POWER, Estimate, estimate_of, pseudo_squares
from mixwright.estimates.intervals import find_least, t_quantile
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.outcome import Decoding, ItemScores

Against = Literal["untrained", "trained"]
MAX_SEEDS = 1000
"""Seeds beyond which nothing is recommended."""
TYPICAL_ITEM_SPREAD = 0.15
"""Spread of an item in earlier runs (0.13 to 0.17), where nothing was measured yet; at most 0.5."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Of the difference of two arms, beside what sampling items does."""

    seed_deviation: float
    """Standard deviation between seeds that no number of items takes away, as a share."""
    item_variance_share: float
    """Variance that an item keeps in all seeds, as a share of its spread: it grows with what training moves."""
    within_seed_variance_share: float
    """Variance of an item within one seed, as a share of its spread."""


PRIOR_NOISE: dict[tuple[Decoding, Against], Noise] = {
    ("greedy", "untrained"): Noise(0.01, 0.25, 0.42),
    ("greedy", "trained"): Noise(0.01, 0.02, 0.47),
    ("sampled", "untrained"): Noise(0.004, 0.12, 0.18),
    ("sampled", "trained"): Noise(0.004, 0.01, 0.2),
}
"""From the study `leave_one_out` (contrasts through TRL). The noise of seeds was 0 to 2.1 points there and 0 to
3.4 in rollouts.json, 4 to 18 in overhard.json where runs collapsed: such a trial sees less than this says."""


@dataclass(frozen=True, slots=True)
class PowerCell:
    """The held-out items of one task and level, as they were before."""

    task: str
    """Task name."""
    items: int
    """How many are measured."""
    spread: float
    """Mean of 2 p (1 - p), 0..0.5."""


def cells_of(before: Sequence[ItemScores], samples: int) -> list[PowerCell]:
    """The cells of what was measured before, one `ItemScores` per starting model.

    Args:
        before: with sampled success of the same items.
        samples: samples behind each success; with one there is no telling how uncertain an item is, so `TYPICAL_ITEM_SPREAD`
            is taken.
    """
    cells = []
    for items in before[0].items.split() if before else []:
        success = np.array([scores.column("pass@1", items) for scores in before])
        spread = math.nan
        if samples > 1:
            spread = 2 * float(np.nanmean(success * (1 - success))) * samples / (samples - 1)
        cells.append(
            PowerCell(items.tasks[0], len(items), min(spread if math.isfinite(spread) else TYPICAL_ITEM_SPREAD, 0.5))
        )
    return cells


def expected_null_change(cells: Sequence[PowerCell], seeds: int, noise: Noise) -> Estimate:
    """What `crossed` would give for a true difference of 0: error and degrees of freedom.

    Args:
        cells: at least one.
        seeds: of each arm; 2 or more.
        noise: as assumed.
    """
    counts = np.array([cell.items for cell in cells])
    tasks = np.unique([cell.task for cell in cells], return_inverse=True)[1]
    share = 1 / np.bincount(tasks, counts)[tasks] / len(np.unique(tasks))
    squared_weights, spread = counts * share**2, np.array([cell.spread for cell in cells])
    df = np.maximum(counts - 1, 1)
    residual_terms = squared_weights * noise.within_seed_variance_share * spread / seeds
    expected_squares = float(counts @ spread) * (noise.item_variance_share + noise.within_seed_variance_share / seeds)
    moved_count = float(counts @ np.minimum(2 * spread, 1))  # an item of spread 0.5 always moves
    added_squares = pseudo_squares(expected_squares, moved_count) * counts / counts.sum()
    item_terms = squared_weights * (noise.item_variance_share * spread + added_squares / df) + residual_terms
    rest_variance, items_variance = residual_terms.sum(), item_terms.sum()
    seeds_variance = noise.seed_deviation**2 / seeds + rest_variance
    variance = seeds_variance + items_variance - rest_variance
    items_df = items_variance**2 / max((item_terms**2 / df).sum(), 1e-300)
    variance_parts = ((seeds_variance, seeds - 1), (items_variance, items_df), (rest_variance, (seeds - 1) * items_df))
    total_df = variance**2 / max(sum(part**2 / part_df for part, part_df in variance_parts), 1e-300)
    return estimate_of(0.0, float(variance), float(total_df), seeds, int(counts.sum()))


def seeds_for(estimate: Estimate, per_seed: Sequence[float], aim: float) -> int | None:
    """Seeds that would see a true difference of `aim` in `DETECTION_POWER` of trials like a finished one; None where no
    number would.

    The error has a part that falls with the number of seeds and one of the held-out items that does not.

    Args:
        estimate: the difference as it was estimated.
        per_seed: the difference in each seed.
        aim: size to be seen, in the unit of the outcome.
    """
    seeds = len(per_seed)
    if seeds < 2:
        return None
    seeds_variance = float(np.var(np.array(per_seed), ddof=1)) / seeds
    items_variance = max(estimate.error**2 - seeds_variance, 0.0)

    def sees(seed_count: int) -> bool:
        df = estimate.df * (seed_count - 1) / (seeds - 1)
        width = t_quantile(df) + t_quantile(df, 2 * DETECTION_POWER - 1)
        return width * math.sqrt(seeds_variance * seeds / seed_count + items_variance) <= aim

    return find_least(sees, max(seeds + 1, MIN_SEEDS), MAX_SEEDS)
