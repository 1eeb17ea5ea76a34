"""What the run has shown so far: discounted evidence per example and per cell, in numpy arrays.

Per example 20 bytes (wins, tries, last step seen, last draw, place in the order), 28 with the pool's own task and cell
numbers. Reading an example's posterior costs nothing but arithmetic; nothing here loops over all examples after the start.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from mixwright.contracts import Pool

START_GROUP = 8.0
"""Rollouts per prompt that a measurement is taken to have had; only how it mixes with later groups depends on it."""
PRIOR_WEIGHT = 2.0
"""Evidence, in groups at success one half, that stands for "rollouts of a prompt are alike" until data says otherwise."""
LEAST_STRENGTH = 0.25
"""Rollouts that a cell's mean is always worth for its examples."""
ALIKE = 0.3
"""Intraclass correlation of a cell that nothing is known of, where choosing asks for it."""
Numbers = np.ndarray | float
"""One number, or one per group."""
CELL_ARRAYS = ("wins", "tries", "groups", "squares", "seen")
ROW = np.dtype([("wins", "<f4"), ("tries", "<f4"), ("seen", "<i4"), ("drawn", "<i4")])
"""What is kept of an example, in one cache line: discounted evidence, step last seen, number of its last draw."""
UNTOUCHED = np.array((0, 0, -1, -1), dtype=ROW)


def effective_rollouts(success: float, low: float, high: float) -> float:
    """Independent rollouts whose 95 % Wilson interval is as wide as (low, high); what an interval is worth as evidence."""
    few, many = 1e-3, 1e7
    for _ in range(60):
        middle = math.sqrt(few * many)
        ends = wilson(np.array(success * middle), np.array(middle))
        few, many = (middle, many) if ends[1] - ends[0] > high - low else (few, middle)
    return few


def wilson(wins: np.ndarray, tries: np.ndarray, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
    """Wilson interval of wins out of tries, both possibly fractional (discounted); (0, 1) where tries is 0."""
    tries = np.asarray(tries, dtype=float)
    known = np.maximum(tries, 1e-12)
    share = np.clip(wins / known, 0, 1)
    centre = (share + z * z / (2 * known)) / (1 + z * z / known)
    half = z / (1 + z * z / known) * np.sqrt(share * (1 - share) / known + z * z / (4 * known * known))
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    return np.where(tries > 0, low, 0.0), np.where(tries > 0, high, 1.0)


class CellEvidence:
    """Discounted success per cell: each new rollout shrinks the weight of all older ones by exp(-1 / memory).

    Args:
        count: number of cells.
        memory: rollouts that evidence is worth at most, about.
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
        order = np.argsort(_short(cells), kind="stable")
        cells, wins, tries = cells[order], wins[order], tries[order]
        ends = np.flatnonzero(np.r_[cells[1:] != cells[:-1], True])
        total = np.cumsum(tries)
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

    def interval(self, cells: np.ndarray | int, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
        """Wilson interval of success at the effective number of rollouts: rollouts of one prompt are alike.

        rho is the share of the variance that lies between groups, from 1 / group size (rollouts as good as independent) to 1
        (those of a prompt all alike); it is drawn towards 1 while few successes or failures were seen. The effective number
        is groups / rho: 0 right in 10 groups of 8 is told as 0 of 10, as `mixwright measure` tells it.
        """
        groups, tries = np.maximum(self.groups[cells], 1e-12), np.maximum(self.tries[cells], 1e-12)
        effective = np.where(self.tries[cells] > 0, groups / self._between(cells, 1.0), 0.0)
        return wilson(np.clip(self.wins[cells] / tries, 0, 1) * effective, effective, z)

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


class Ledger:
    """Evidence of one run.

    Args:
        pool: what may be drawn.
        held: pool indices that must never be drawn (canaries).
        strength: rollouts, at most, that the cell's mean is worth in the posterior of one of its examples; fewer where
            prompts of the cell differ: 1 / alike - 1, the concentration of the Beta distribution they come from.
        half_life: steps after which an example's own evidence counts half.
        recent: memory in rollouts of the evidence that choosing reads: short, because band membership goes stale in steps.
        lasting: memory in rollouts of the evidence that refusing reads: long, because telling success from luck needs it.
        cell_half_life: steps after which recent evidence of a cell that is not drawn counts half, so that it is tried again.
    """

    def __init__(
        self,
        pool: Pool,
        held: Collection[int] = (),
        *,
        strength: float = 8.0,
        half_life: float = 20.0,
        recent: float = 128.0,
        lasting: float = 512.0,
        cell_half_life: float = 40.0,
    ) -> None:
        size = len(pool.ids)
        self.pool = pool
        self.strength, self.half_life = strength, half_life
        self._table = np.full(size, UNTOUCHED)
        self.wins, self.tries, self.seen, self.drawn = (self._table[name] for name in ROW.names or ())
        self.luck = np.array([min(cell.luck, 0.99) for cell in pool.cells], dtype=float)
        self.recent = CellEvidence(len(pool.cells), recent, cell_half_life)
        self.lasting = CellEvidence(len(pool.cells), lasting)
        self.step = 0
        self.draws = 0
        self._tasks = np.array([pool.tasks.index(cell.task) for cell in pool.cells])
        inner = np.lexsort((np.arange(len(pool.cells)), self._tasks))
        self._order = _by_cell(pool, inner, held)
        self.sizes = np.bincount(pool.cell_of[self._order], minlength=len(pool.cells))
        """Examples that may be drawn, per cell."""
        self._starts = np.empty(len(pool.cells), dtype=np.int64)
        self._starts[inner] = np.cumsum(self.sizes[inner]) - self.sizes[inner]
        self._task_ends = np.cumsum(np.bincount(self._tasks, self.sizes, len(pool.tasks))).astype(np.int64)

    def members(self, cell: int) -> np.ndarray:
        """Pool indices that may be drawn from a cell."""
        return self._order[self._starts[cell] : self._starts[cell] + self.sizes[cell]]

    def random_members(self, cells: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` random pool indices from each of these cells, which have something to draw; shape (cells, count)."""
        places = rng.random((len(cells), count)) * self.sizes[cells, None]
        return self._order[self._starts[cells, None] + places.astype(np.int64)]

    def task_members(self, task: int) -> np.ndarray:
        """Pool indices that may be drawn from a task."""
        return self._order[self._task_ends[task - 1] if task else 0 : self._task_ends[task]]

    def task_cells(self, task: int) -> np.ndarray:
        """Numbers of the task's cells that have something to draw, ascending."""
        return np.flatnonzero((self._tasks == task) & (self.sizes > 0))

    def mark_drawn(self, indices: Numbers) -> None:
        """Note that these examples are drawn now, in this order."""
        indices = np.atleast_1d(indices)
        self.drawn[indices] = np.arange(self.draws, self.draws + len(indices))
        self.draws += len(indices)

    def add(self, indices: Numbers, step: int, wins: Numbers, tries: Numbers) -> None:
        """Groups of one step in order: `wins` is the sum of each one's successes in 0..1, out of `tries` rollouts."""
        indices = np.atleast_1d(indices)
        found, places = self._table[indices], np.arange(len(indices), dtype=np.int32)
        keep = np.where(found["seen"] >= 0, np.exp2(np.minimum(found["seen"] - step, 0) / self.half_life), 0.0)
        self.wins[indices], self.tries[indices] = found["wins"] * keep + wins, found["tries"] * keep + tries
        self.seen[indices] = places
        twice = np.flatnonzero(self.seen[indices] != places)  # an example's last group stands; its others are added
        for array, new in ((self.wins, wins), (self.tries, tries)):
            np.add.at(array, indices[twice], np.broadcast_to(new, indices.shape)[twice])
        self.seen[indices] = step
        self.step = max(self.step, step)
        for evidence in self._evidence().values():
            evidence.add(self.pool.cell_of[indices], step, wins, tries)

    def reach(self, step: int) -> None:
        """Training has come to `step`, whether or not anything was rewarded in it (losses and pairs are not)."""
        self.step = max(self.step, step)
        for evidence in self._evidence().values():
            evidence.step = max(evidence.step, step)

    def beta(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Beta posterior of examples: own evidence faded by age, plus up to `strength` rollouts at the cell's mean.

        Args:
            indices: pool indices of shape (..., examples); those along the last axis are of one cell.
        """
        cells = self.pool.cell_of[indices[..., :1]]
        everywhere = np.arange(len(self.luck))
        mean = self.recent.mean(everywhere)[cells]
        alike = np.maximum(self.lasting.alike(everywhere), 1e-6)
        strength = np.clip(1 / alike - 1, LEAST_STRENGTH, self.strength)[cells]
        found = self._table[indices]
        keep = np.exp2(np.minimum(found["seen"] - self.step, 0) / self.half_life)
        wins, tries = found["wins"] * keep, found["tries"] * keep
        return strength * mean + wins, strength * (1 - mean) + np.maximum(tries - wins, 0)

    def above(self, success: np.ndarray, cells: np.ndarray | int) -> np.ndarray:
        """Success above luck: (success - luck) / (1 - luck), negative when worse than luck."""
        return (success - self.luck[cells]) / (1 - self.luck[cells])

    def state(self) -> dict[str, Any]:
        """Cells and counters JSON-ready; examples that were touched as bytes, 20 each: their numbers and their rows."""
        touched = np.flatnonzero((self.seen >= 0) | (self.drawn >= 0))
        cells = {name: {part: getattr(e, part).tolist() for part in CELL_ARRAYS} for name, e in self._evidence().items()}
        examples = {"index": touched.astype("<i4").tobytes(), "rows": self._table[touched].tobytes()}
        return {"step": self.step, "draws": self.draws, **examples, "cells": cells}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, exactly."""
        self._table[:] = UNTOUCHED
        self._table[np.frombuffer(state["index"], "<i4")] = np.frombuffer(state["rows"], ROW)
        for name, evidence in self._evidence().items():
            for part in CELL_ARRAYS:
                getattr(evidence, part)[:] = state["cells"][name][part]
            evidence.step = int(state["step"])
        self.step, self.draws = int(state["step"]), int(state["draws"])

    def _evidence(self) -> dict[str, CellEvidence]:
        return {"recent": self.recent, "lasting": self.lasting}


def _by_cell(pool: Pool, inner: np.ndarray, held: Collection[int]) -> np.ndarray:
    """Pool indices that may be drawn, cells in the order `inner`, ascending in a cell; int32."""
    rank = np.empty(len(pool.cells), dtype=np.int64)
    rank[inner] = np.arange(len(pool.cells))
    order = np.argsort(_short(rank)[pool.cell_of], kind="stable").astype(np.int32)
    if not held:
        return order
    free = np.ones(len(order), dtype=bool)
    free[list(held)] = False
    return order[free[order]]


def _short(numbers: np.ndarray) -> np.ndarray:
    """The same numbers in 16 bits where they fit: numpy sorts those in linear time."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 2**16 else numbers
