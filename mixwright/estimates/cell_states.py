"""States of a cell and every threshold behind them: one decider for planner, selector, gate and verdict.

In this order: *mastered* or *hopeless* when the interval of plain success lies over or under the band; *lucky* only on
evidence of no dependence on the prompt (upper end of kappa under `LUCKY_KAPPA`); *reachable* when answers earn more on their
own prompts than on permuted ones (p < `PERMUTATION_ALPHA`); else *unknown*, which is admitted and drawn like reachable. A
guess by the form of the prompt is reachable by this rule; what may be called learnt must lie above the chance level, too.
"""

from __future__ import annotations

import numpy as np

from mixwright.estimates.dependence import kappa
from mixwright.estimates.intervals import Numbers, effective_rollouts, wilson
from mixwright.records import CellState

BAND = (0.1, 0.9)
"""Success between which rewards of a group differ often enough."""
MIN_ROLLOUTS = 32
"""Graded rollouts below which a cell is unknown."""
MIN_ITEMS = 8
"""Measured prompts below which a cell is judged with its task."""
Z_STATE = 1.645
"""One-sided 95 %: what a state rests on."""
Z_PROVISIONAL = 1.28
"""One-sided 90 %: for a choice that is looked at again in a moment, where a late verdict costs more than a wrong one."""
LUCKY_KAPPA = 0.10
"""Kappa that must be excluded from above before a cell is lucky."""
PERMUTATION_ALPHA = 0.05
"""Level of the permutation test."""
HALF_WEIGHT_EXAMPLES = 64
"""Examples at which a cell counts half: fewer would be drawn again and again, and memorised."""


def classify(
    success: float,
    low: float,
    high: float,
    n: float,
    band: tuple[float, float] = BAND,
    *,
    kappa_high: float | None = None,
    p: float | None = None,
) -> CellState:
    """The state of a cell.

    Args:
        success: share of right answers, 0..1.
        low: lower end of its 95 % interval.
        high: upper end of it.
        n: rollouts behind it.
        band: success to aim for.
        kappa_high: upper end of the 95 % interval of kappa; None where dependence was not measured.
        p: of the permutation test; None where there was none.
    """
    if not low <= success <= high:
        return "unknown"
    rollouts = effective_rollouts(success, low, high)
    return state_of(int(side_of_band(success * rollouts, rollouts, *band)), n, kappa_high=kappa_high, p=p)


def state_of(side: int, n: float, *, kappa_high: float | None = None, p: float | None = None) -> CellState:
    """The state of a cell whose `side_of_band` is known: the order that is described above.

    Args:
        side: 1 over the band, -1 under it, else 0.
        n: rollouts behind it.
        kappa_high: as for `classify`.
        p: as for `classify`.
    """
    if n < MIN_ROLLOUTS:
        return "unknown"
    if side:
        return "mastered" if side > 0 else "hopeless"
    if kappa_high is not None and kappa_high < LUCKY_KAPPA:
        return "lucky"
    return "reachable" if p is not None and p < PERMUTATION_ALPHA else "unknown"


def side_of_band(wins: Numbers, tries: Numbers, band_low: Numbers, band_high: Numbers, z: float = Z_STATE) -> np.ndarray:
    """1 where the interval of success lies over the band (mastered), -1 where it lies under it (hopeless), else 0.

    Args:
        wins: number or array.
        tries: independent rollouts, of the same shape; 0 where nothing is known.
        band_low: lower edge of the band.
        band_high: upper edge of it.
        z: quantile of each end.
    """
    success_low, success_high = wilson(wins, tries, z)
    return np.where(success_low >= band_high, 1, np.where(success_high < band_low, -1, 0))


def room_to_learn(success: Numbers, swapped: Numbers) -> np.ndarray:
    """What can be learnt at a success, 0..1, softly weighed by kappa: 4 kappa (1 - kappa), 0 below S.

    Without an answer that any prompt could have had (S = 0) it is the variance of rewards, 4 p (1 - p) (LILO, 2502.12272).
    """
    above = np.clip(kappa(success, swapped), 0, 1)
    return 4 * above * (1 - above)
