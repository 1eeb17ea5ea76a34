"""Ledger of what the run has shown so far: discounted evidence per example and per cell, in numpy arrays.

Per example 20 bytes (wins, tries, last step seen, last draw, place in the order), 28 with the pool's own task and cell
numbers. Reading an example's posterior costs nothing but arithmetic; nothing here loops over all examples after the start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.errors import InputError
from mixwright.estimates.cell_states import kappa
from mixwright.records import GroupOutcome
from mixwright.steer.answers import AnswerEvidence
from mixwright.steer.evidence import CELL_ARRAYS, CellEvidence, Numbers, short
from mixwright.steer.pool import Pool

LEAST_STRENGTH = 0.25
"""Rollouts that a cell's mean is always worth for its examples."""
ROW = np.dtype([("wins", "<f4"), ("tries", "<f4"), ("seen", "<i4"), ("drawn", "<i4")])
"""What is kept of an example, in one cache line: discounted evidence, step last seen, number of its last draw."""
UNTOUCHED = np.array((0, 0, -1, -1), dtype=ROW)


class Ledger:
    """Evidence of one run.

    Args:
        pool: what may be drawn.
        held: pool indices that must never be drawn (canaries).
        strength: rollouts, at most, that the cell's mean is worth in the posterior of one of its examples; fewer where
            prompts of the cell differ: 1 / alike - 1, the concentration of the Beta distribution they come from.
        half_life: steps after which an example's own evidence counts half.
        recent: memory in rollouts of the evidence that choosing reads: short, because band membership goes stale in steps.
        lasting: memory in rollouts of the evidence that refusing reads: long, because ruling a cell out needs it.
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
        self.answers = AnswerEvidence(len(pool.cells), pool.golds)
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
        """Groups of one step in order: `wins` is the sum of each one's successes in 0..1, out of `tries` rollouts.

        A step before the last one known (training began anew) counts as that one: time does not go back.
        """
        indices, step = np.atleast_1d(indices), max(step, self.step)
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

    def learn(self, groups: Sequence[GroupOutcome], indices: np.ndarray, reward_range: Sequence[float]) -> None:
        """Groups of these examples: their rewards as successes, from wrong (0) to right (1) by `reward_range`, clipped."""
        wins, tries = counted(groups, reward_range)
        low, high = reward_range
        graded = np.array([any(low < reward < high for reward in group.rewards) for group in groups])
        self.answers.add(indices, self.pool.cell_of[indices], groups, wins / tries, graded)
        steps = np.array([group.step for group in groups])
        for step in np.unique(steps):
            now = steps == step
            self.add(indices[now], int(step), wins[now], tries[now])

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """What is kept of examples, as `ROW`s, not faded."""
        return self._table[indices]

    def beta(self, indices: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Beta posterior of examples: own evidence faded by age, plus up to `strength` rollouts at the cell's mean.

        Args:
            indices: pool indices of shape (..., examples); those along the last axis are of one cell.
            rows: their rows, where they were already read.
        """
        cells = self.pool.cell_of[indices[..., :1]]
        everywhere = np.arange(len(self._tasks))
        mean = self.recent.mean(everywhere)[cells]
        alike = np.maximum(self.lasting.alike(everywhere), 1e-6)
        strength = np.clip(1 / alike - 1, LEAST_STRENGTH, self.strength)[cells]
        found = self.rows(indices) if rows is None else rows
        keep = np.exp2(np.minimum(found["seen"] - self.step, 0) / self.half_life)
        wins, tries = found["wins"] * keep, found["tries"] * keep
        return strength * mean + wins, strength * (1 - mean) + np.maximum(tries - wins, 0)

    def kappa(self, success: np.ndarray, cells: np.ndarray | int) -> np.ndarray:
        """(success - S) / (1 - S) with the expected S of these cells, -1..1: what of a success depends on the prompt."""
        return kappa(success, self.answers.swapped()[cells])

    def state(self) -> dict[str, Any]:
        """Cells and counters JSON-ready; examples that were touched as bytes, 20 each: their numbers and their rows."""
        touched = np.flatnonzero((self.seen >= 0) | (self.drawn >= 0))
        cells = {name: {part: getattr(e, part).tolist() for part in CELL_ARRAYS} for name, e in self._evidence().items()}
        examples = {"index": touched.astype("<i4").tobytes(), "rows": self._table[touched].tobytes()}
        return {"step": self.step, "draws": self.draws, **examples, "cells": cells, "answers": self.answers.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, exactly."""
        self._table[:] = UNTOUCHED
        self._table[np.frombuffer(state["index"], "<i4")] = np.frombuffer(state["rows"], ROW)
        for name, evidence in self._evidence().items():
            for part in CELL_ARRAYS:
                getattr(evidence, part)[:] = state["cells"][name][part]
            evidence.step = int(state["step"])
        self.answers.restore(state["answers"])
        self.step, self.draws = int(state["step"]), int(state["draws"])

    def _evidence(self) -> dict[str, CellEvidence]:
        return {"recent": self.recent, "lasting": self.lasting}


def counted(groups: Sequence[GroupOutcome], reward_range: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Successes and rollouts per group: rewards from wrong (0) to right (1) by `reward_range`, clipped. Needs a group.

    Raises:
        InputError: a group without rewards, or a reward that is not finite: it would stay in the evidence for good.
    """
    low, high = reward_range
    tries = np.array([len(group.rewards) for group in groups])
    rewards = np.concatenate([group.rewards for group in groups])
    if not tries.all() or not np.isfinite(rewards).all():
        bad = next(group for group in groups if not group.rewards or not np.isfinite(group.rewards).all())
        raise InputError("groups with finite rewards", f"{bad.rewards} of {bad.example!r}"[:120], "Leave such groups out.")
    success = np.clip((rewards - low) / (high - low), 0, 1)
    return np.add.reduceat(success, np.cumsum(tries) - tries), tries.astype(float)


def _by_cell(pool: Pool, inner: np.ndarray, held: Collection[int]) -> np.ndarray:
    """Pool indices that may be drawn, cells in the order `inner`, ascending in a cell; int32."""
    rank = np.empty(len(pool.cells), dtype=np.int64)
    rank[inner] = np.arange(len(pool.cells))
    order = np.argsort(short(rank)[pool.cell_of], kind="stable").astype(np.int32)
    if not held:
        return order
    free = np.ones(len(order), dtype=bool)
    free[list(held)] = False
    return order[free[order]]
