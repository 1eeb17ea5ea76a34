"""What an example is for the run that draws from it, where it has evidence of its own."""

from __future__ import annotations

import numpy as np

from mixwright.steer._ledger import Ledger

TWICE = 12.0
"""Rollouts of its own, the older ones fading, from which an example is judged: two groups of 8, not long ago."""
AGAIN = 64
"""Steps after which an example that was outside the band is tried again like any other."""
OUTSIDE = 10.0
"""Added to the distance of an example that was seen to be outside the band."""


def outside(ledger: Ledger, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Whether examples were seen, twice and lately, to be mastered or too hard.

    Args:
        ledger: of the run.
        rows: what it holds of the examples, shape (draws, candidates), a cell per row.
        edges: of the band of those cells as plain success, shape (draws, 2).
    """
    wins, tries = rows["wins"], rows["tries"]
    judged = (tries >= TWICE) & (rows["seen"] > ledger.step - AGAIN)
    return judged & ((wins < tries * edges[:, :1]) | (wins >= tries * edges[:, 1:]))


def distance(ledger: Ledger, found: np.ndarray, edges: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How far one draw from each example's posterior lies from the middle of the band, as plain success.

    Those seen outside the band are `OUTSIDE` farther.

    Args:
        ledger: of the run.
        found: pool indices of shape (draws, candidates), a cell per row.
        edges: of the band of those cells as plain success, shape (draws, 2).
        rng: where the draws come from.
    """
    rows = ledger.rows(found)
    far = np.abs(rng.beta(*ledger.beta(found, rows)) - edges.mean(axis=1, keepdims=True))
    far[outside(ledger, rows, edges)] += OUTSIDE
    return far


def repeats(numbers: np.ndarray) -> np.ndarray:
    """Places of numbers that stand earlier in the array too."""
    keys = np.sort((numbers.astype(np.int64) << 32) + np.arange(len(numbers)))  # a full sort: the same on every machine
    return keys[1:][keys[1:] >> 32 == keys[:-1] >> 32] & (2**32 - 1)
