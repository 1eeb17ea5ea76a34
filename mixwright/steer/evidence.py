"""Evidence about cells: discounted successes, and what rollouts of one prompt, which are alike, are worth."""

from __future__ import annotations

import numpy as np

from mixwright.estimates.intervals import PRIOR_WEIGHT, Z, wilson

START_GROUP = 8.0
"""Rollouts per prompt that a measurement is taken to have had; only how it mixes with later groups depends on it."""
ALIKE = 0.3
"""Intraclass correlation of a cell that nothing is known of, where choosing asks for it."""
Numbers = np.ndarray | float
"""One number, or one per group."""
CELL_ARRAYS = ("wins", "tries", "groups", "squares", "seen")


class CellEvidence:
    """Discounted success per cell: each new rollout shrinks the weight of all older ones by exp(-1 / memory).

    Args:
        count: number of cells.
        memory: rollouts that evidence is worth at most, about, in groups of up to 8; as many groups where they are larger.
        half_life: steps without a new rollout after which the posterior counts the evidence half; None: it never fades.
    """

    def __init__(self, count: int, memory: float, half_life: float | None = None) -> None:
        self.memory, self.half_life = memory, half_life
        self.step = 0
        self.wins = np.zeros(count)
        self.tries = np.zeros(count)
        self.groups = np.zeros(count)
        self.squares = np.zeros(count)
        self.seen = np.zeros(count, dtype=np.int64)

    def start(self, cell: int, success: float, n: float, effective: float | None = None) -> None:
        """Take a measurement made before the run as evidence, worth at most `memory` rollouts.

        Args:
            cell: number of the cell.
            success: share right, 0..1.
            n: rollouts behind it; taken as groups of `START_GROUP`.
            effective: independent rollouts that its interval is worth; None when they count in full.
        """
        tries = min(n, self.memory)
        groups = tries / START_GROUP
        alike = 1 / START_GROUP if effective is None else min(max(n / START_GROUP / effective, 1 / START_GROUP), 1.0)
        self.wins[cell], self.tries[cell], self.groups[cell] = success * tries, tries, groups
        self.squares[cell] = groups * (success**2 + alike * success * (1 - success))

    def add(self, cells: Numbers, step: int, wins: Numbers, tries: Numbers) -> None:
        """Groups of one step in order: `wins` is the sum of each one's successes in 0..1, out of `tries` rollouts."""
        cells, wins, tries = np.atleast_1d(cells), np.atleast_1d(wins), np.atleast_1d(tries)
        self.step = max(self.step, step)
        self.seen[cells] = step
        order = np.argsort(short(cells), kind="stable")
        cells, wins, tries = cells[order], wins[order], tries[order]
        ends = np.flatnonzero(np.r_[cells[1:] != cells[:-1], True])
        # Rollouts of a prompt are alike, so a group ages the others by `START_GROUP` rollouts at most: else evidence in
        # large groups could never rule a cell out, whatever it showed.
        total = np.cumsum(np.minimum(tries, START_GROUP))
        # A group is discounted by the rollouts of its cell that came after it, the cell's older evidence by all of them.
        later = np.repeat(total[ends], np.diff(ends, prepend=-1)) - total
        found, worth = cells[ends], np.exp(later / -self.memory)
        old = np.exp(np.diff(total[ends], prepend=0.0) / -self.memory)
        starts = np.r_[0, ends[:-1] + 1]
        new = np.stack([wins * worth, tries * worth, worth, (wins / tries) ** 2 * worth])
        for array, sums in zip(
            (self.wins, self.tries, self.groups, self.squares), np.add.reduceat(new, starts, 1), strict=True
        ):
            array[found] = array[found] * old + sums

    def beta(self, cells: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Parameters of the Beta posterior under a flat prior, evidence faded by the steps since it was seen."""
        age = np.maximum(self.step - self.seen[cells], 0)
        keep = 0.5 ** (age / self.half_life) if self.half_life else 1.0
        return 1 + self.wins[cells] * keep, 1 + (self.tries[cells] - self.wins[cells]) * keep

    def mean(self, cells: np.ndarray | int) -> np.ndarray:
        """Posterior mean of success under a flat prior, not faded: the last that is known."""
        return (1 + self.wins[cells]) / (2 + self.tries[cells])

    def interval(self, cells: np.ndarray | int, z: float = Z) -> tuple[np.ndarray, np.ndarray]:
        """Wilson interval of success at the effective number of rollouts: rollouts of one prompt are alike.

        rho is the share of the variance that lies between groups, from 1 / group size (rollouts as good as independent) to 1
        (those of a prompt all alike); it is drawn towards 1 while few successes or failures were seen. The effective number
        is groups / rho: 0 right in 10 groups of 8 is given as 0 of 10, as `mixwright measure` gives it.
        """
        return wilson(*self.effective(cells), z)

    def effective(self, cells: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Wins and tries that are worth as much as independent ones; see `interval`."""
        groups, tries = np.maximum(self.groups[cells], 1e-12), np.maximum(self.tries[cells], 1e-12)
        effective = np.where(self.tries[cells] > 0, groups / self._between(cells, 1.0), 0.0)
        return np.clip(self.wins[cells] / tries, 0, 1) * effective, effective

    def alike(self, cells: np.ndarray | int) -> np.ndarray:
        """Intraclass correlation, 0..1: how much of the variance of success lies between prompts.

        1: every prompt is always right or always wrong, so no group carries signal; the variance within a prompt is
        mean (1 - mean) (1 - alike). Drawn towards `ALIKE` while few successes or failures were seen.
        """
        least = np.maximum(self.groups[cells], 1e-12) / np.maximum(self.tries[cells], 1e-12)
        rho = self._between(cells, ALIKE)
        return np.where(self.tries[cells] > 0, np.clip((rho - least) / np.maximum(1 - least, 1e-12), 0, 1), ALIKE)

    def _between(self, cells: np.ndarray | int, prior: float) -> np.ndarray:
        """Share of the variance of group means, from 1 / group size to 1, drawn towards `prior`."""
        groups, tries = np.maximum(self.groups[cells], 1e-12), np.maximum(self.tries[cells], 1e-12)
        mean = np.clip(self.wins[cells] / tries, 0, 1)
        spread = np.maximum(mean * (1 - mean), 1e-12)
        between = np.maximum(self.squares[cells] / groups - mean**2, 0) * groups / np.maximum(groups - 1, 1)
        evidence = 4 * groups * spread
        return np.clip((evidence * between / spread + PRIOR_WEIGHT * prior) / (evidence + PRIOR_WEIGHT), groups / tries, 1.0)


def short(numbers: np.ndarray) -> np.ndarray:
    """The same numbers in 16 bits where they fit: numpy sorts those in linear time."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 2**16 else numbers
