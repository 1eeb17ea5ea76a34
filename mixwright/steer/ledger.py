"""Ledger of what the run has shown so far: discounted evidence per example and per cell, in numpy arrays.

Per example 20 bytes (wins, tries, last step seen, last draw, place in the order), 28 with the pool's own task and cell
numbers. Reading an example's posterior costs nothing but arithmetic; nothing here loops over all examples after the start.

Per cell the evidence is discounted successes and rollouts; rollouts of one prompt are alike, and count for what they are
worth. Beside it stands how much answers depend on their prompts: the answers of a cell's last `WINDOW_GROUPS` groups are
compared with the gold answers of the other prompts among them, S and kappa as `mixwright measure` has them, without a reward
call. Nothing is said where there are no gold answers, where rewards give partial credit, or where being equal to the gold
answer does not explain the rewards (then the task's grader knows better).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixwright.errors import InputError
from mixwright.estimates.dependence import Dependence, dependence_of_margins, kappa
from mixwright.estimates.intervals import PRIOR_WEIGHT, Z, wilson
from mixwright.records import GroupOutcome
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.pool import Pool, answer_key

START_GROUP_ROLLOUTS = 8.0
"""Rollouts per prompt that a measurement is taken to have had; only how it mixes with later groups depends on it."""
CORRELATION_OF_UNKNOWN_CELL = 0.3
"""Intraclass correlation of a cell that nothing is known of, where choosing asks for it."""
Numbers = np.ndarray | float
"""One number, or one per group."""
EXAMPLE_HALF_LIFE, CELL_HALF_LIFE = 20.0, 40.0
"""Steps after which an example's own evidence, and recent evidence of a cell that is not drawn, count half."""
RECENT_ROLLOUTS, LASTING_ROLLOUTS = 128.0, 512.0
"""Memory of what choosing reads, short because band membership goes stale in steps; of what refusing reads, long because
ruling a cell out needs it."""
ROW_TYPE = np.dtype([("wins", "<f4"), ("tries", "<f4"), ("seen", "<i4"), ("drawn", "<i4")])
"""What is kept of an example, in one cache line: discounted evidence, step last seen, number of its last draw."""
UNTOUCHED_ROW = np.array((0, 0, -1, -1), dtype=ROW_TYPE)
WINDOW_GROUPS = 64
"""Groups of a cell that are kept, one per prompt."""
JUDGED_GROUPS = 32
"""Groups from which the run's answers count; before, only what was measured before it."""
PRIOR_GROUPS, UNMEASURED_PRIOR_GROUPS = 16.0, 4.0
"""Weight in groups, against the run's own, of the S that was measured before the run; and of S = 0 where none was measured,
for as long as the cell has fewer than `JUDGED_GROUPS` groups of its own."""
UNEARNED_S = 0.05
"""S under which a cell is never lucky: answers that earn nothing anywhere are too hard, until the first are right."""
MAX_ANSWERS_PER_GROUP = 16
"""Answers of a group that are kept."""
MAX_REWARD_DIFFERENCE = 0.05
"""Mean difference between reward and being equal to the gold answer above which answers say nothing."""
Group = tuple[int, float, tuple[int, ...]]
"""Gold answer, success, answers; answers as `answer_key`."""


class CellEvidence(Checkpointable):
    """Discounted success per cell: each new rollout shrinks the weight of all older ones by exp(-1 / memory).

    Args:
        count: number of cells.
        memory: rollouts that evidence is worth at most, about, in groups of up to 8; as many groups where they are larger.
        half_life: steps without a new rollout after which the posterior counts the evidence half; None: it never fades.
    """

    STATE_FIELDS = ("wins", "tries", "groups", "squares", "seen")

    def __init__(self, count: int, memory: float, half_life: float | None = None) -> None:
        self.memory, self.half_life, self.step = memory, half_life, 0
        # discounted sums over groups: successes, rollouts, groups, and squares of the share that succeeded
        self.wins, self.tries, self.groups, self.squares = np.zeros((4, count))
        self.seen = np.zeros(count, dtype=np.int64)

    def start(self, cell: int, success: float, n: float, effective: float | None = None) -> None:
        """Take a measurement made before the run as evidence, worth at most `memory` rollouts.

        Args:
            cell: number of the cell.
            success: share right, 0..1.
            n: rollouts behind it; taken as groups of `START_GROUP_ROLLOUTS`.
            effective: independent rollouts that its interval is worth; None when they count in full.
        """
        tries = min(n, self.memory)
        groups = tries / START_GROUP_ROLLOUTS
        correlation = min(max(n / START_GROUP_ROLLOUTS / (effective or n or 1), 1 / START_GROUP_ROLLOUTS), 1.0)
        self.wins[cell], self.tries[cell], self.groups[cell] = success * tries, tries, groups
        self.squares[cell] = groups * (success**2 + correlation * success * (1 - success))

    def add(self, cells: Numbers, step: int, wins: Numbers, tries: Numbers) -> None:
        """Groups of one step in order: `wins` is the sum of each one's successes in 0..1, out of `tries` rollouts."""
        cells, wins, tries = np.atleast_1d(cells), np.atleast_1d(wins), np.atleast_1d(tries)
        self.step = max(self.step, step)
        self.seen[cells] = step
        order = np.argsort(compact_numbers(cells), kind="stable")
        cells, wins, tries = cells[order], wins[order], tries[order]
        ends = np.flatnonzero(np.r_[cells[1:] != cells[:-1], True])
        # Rollouts of a prompt are alike, so a group ages the others by `START_GROUP_ROLLOUTS` rollouts at most: else
        # evidence in large groups could never rule a cell out, whatever it showed.
        total = np.cumsum(np.minimum(tries, START_GROUP_ROLLOUTS))
        # A group is discounted by the rollouts of its cell that came after it, the cell's older evidence by all of them.
        later = np.repeat(total[ends], np.diff(ends, prepend=-1)) - total
        last_cells, weights = cells[ends], np.exp(later / -self.memory)
        old = np.exp(np.diff(total[ends], prepend=0.0) / -self.memory)
        starts = np.r_[0, ends[:-1] + 1]
        new = np.stack([wins * weights, tries * weights, weights, (wins / tries) ** 2 * weights])
        arrays = self.wins, self.tries, self.groups, self.squares
        for array, sums in zip(arrays, np.add.reduceat(new, starts, 1), strict=True):
            array[last_cells] = array[last_cells] * old + sums

    def posterior(self, cells: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
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
        return wilson(*self.effective_counts(cells), z)

    def effective_counts(self, cells: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Wins and tries that are worth as much as independent ones; see `interval`."""
        groups, tries = np.maximum(self.groups[cells], 1e-12), np.maximum(self.tries[cells], 1e-12)
        effective = np.where(self.tries[cells] > 0, groups / self._between(cells, 1.0), 0.0)
        return np.clip(self.wins[cells] / tries, 0, 1) * effective, effective

    def intraclass_correlation(self, cells: np.ndarray | int) -> np.ndarray:
        """Intraclass correlation, 0..1: how much of the variance of success lies between prompts.

        1: every prompt is always right or always wrong, so no group carries signal; the variance within a prompt is
        mean (1 - mean) (1 - correlation). Drawn towards `CORRELATION_OF_UNKNOWN_CELL` while few successes or failures were
        seen.
        """
        least_correlation = np.maximum(self.groups[cells], 1e-12) / np.maximum(self.tries[cells], 1e-12)
        rho = self._between(cells, CORRELATION_OF_UNKNOWN_CELL)
        correlation = np.clip((rho - least_correlation) / np.maximum(1 - least_correlation, 1e-12), 0, 1)
        return np.where(self.tries[cells] > 0, correlation, CORRELATION_OF_UNKNOWN_CELL)

    def _between(self, cells: np.ndarray | int, prior: float) -> np.ndarray:
        """Share of the variance of group means, from 1 / group size to 1, drawn towards `prior`."""
        groups, tries = np.maximum(self.groups[cells], 1e-12), np.maximum(self.tries[cells], 1e-12)
        mean = np.clip(self.wins[cells] / tries, 0, 1)
        spread = np.maximum(mean * (1 - mean), 1e-12)
        between = np.maximum(self.squares[cells] / groups - mean**2, 0) * groups / np.maximum(groups - 1, 1)
        evidence = 4 * groups * spread
        return np.clip((evidence * between / spread + PRIOR_WEIGHT * prior) / (evidence + PRIOR_WEIGHT), groups / tries, 1.0)


def compact_numbers(numbers: np.ndarray) -> np.ndarray:
    """The same numbers in 16 bits where they fit: numpy sorts those in linear time."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 2**16 else numbers


class AnswerEvidence:
    """S and kappa per cell: the success of its answers on other prompts of the cell, and (success - S) / (1 - S).

    Args:
        cells: how many.
        golds: gold answer of each example of the pool as `answer_key`, 0 where there is none; None when nobody knows.
    """

    def __init__(self, cells: int, golds: np.ndarray | None) -> None:
        self._golds = golds
        self._groups: list[dict[int, Group]] = [{} for _ in range(cells)]
        self._has_partial_credit = np.zeros(cells, dtype=bool)
        self._before = np.full((2, cells), np.nan)  # S and the upper end of kappa, measured before the run
        self._swapped, self._high = np.zeros(cells), np.ones(cells)
        self._stale = set(range(cells))

    def start(self, cell: int, swapped: float | None, high: float | None) -> None:
        """Take over what was measured before the run: S, and the upper end of kappa."""
        self._before[:, cell] = np.nan if swapped is None else swapped, np.nan if high is None else high
        self._stale.add(cell)

    def forget(self, cells: Sequence[int] | np.ndarray) -> None:
        """What is known of these cells is about another model now."""
        for cell in np.asarray(cells).tolist():
            self._groups[cell].clear()
            self._before[:, cell] = np.nan
            self._stale.add(cell)

    def add(
        self,
        examples: np.ndarray,
        cells: np.ndarray,
        groups: Collection[GroupOutcome],
        success: np.ndarray,
        is_partial: np.ndarray,
    ) -> None:
        """Groups of these examples and cells in order, the mean success of each (0..1), and whether rewards were partial."""
        if self._golds is None:
            return
        self._has_partial_credit[cells[is_partial]] = True
        self._stale.update(cells[is_partial].tolist())
        for example, cell, group, mean_success in zip(
            examples.tolist(), cells.tolist(), groups, success.tolist(), strict=True
        ):
            gold, groups_of_cell = int(self._golds[example]), self._groups[cell]
            if not gold or len(group.answers) != len(group.rewards):
                continue
            groups_of_cell.pop(example, None)  # of a prompt that comes again its last group stands
            groups_of_cell[example] = (gold, mean_success, tuple(map(answer_key, group.answers[:MAX_ANSWERS_PER_GROUP])))
            if len(groups_of_cell) > WINDOW_GROUPS:
                del groups_of_cell[next(iter(groups_of_cell))]
            self._stale.add(cell)

    def swapped(self) -> np.ndarray:
        """Expected S of every cell, 0..1; 0 where nothing is known."""
        self._refresh()
        return self._swapped

    def kappa_high(self) -> np.ndarray:
        """Upper end of kappa's 95 % interval of every cell; 1 where nothing can be said."""
        self._refresh()
        return self._high

    def _refresh(self) -> None:
        for cell in self._stale:
            self._swapped[cell], self._high[cell] = self._judge(cell)
        self._stale.clear()

    def _judge(self, cell: int) -> tuple[float, float]:
        """Expected S and the upper end of kappa of a cell."""
        swapped_before, high = self._before[:, cell].tolist()
        is_measured = swapped_before == swapped_before
        groups = list(self._groups[cell].values())
        if self._golds is None or self._has_partial_credit[cell]:
            return (swapped_before if is_measured else 0.0), 1.0
        n, swapped = len(groups), swapped_before if is_measured else 0.0
        if n > 2:
            dependence = _measure_dependence(groups)
            if dependence is None:
                return swapped, 1.0
            weight = PRIOR_GROUPS if is_measured else UNMEASURED_PRIOR_GROUPS if n < JUDGED_GROUPS else 0.0
            swapped = min(max((n * dependence.swapped.value + weight * swapped) / (n + weight), 0.0), 1.0)
            if n >= JUDGED_GROUPS:  # no window rules kappa out where S is large: what was measured stands until it is shown
                high = (
                    min(high, dependence.kappa.high) if dependence.kappa.low <= 0 and high == high else dependence.kappa.high
                )
        return swapped, (high if high == high and swapped >= UNEARNED_S else 1.0)

    def state(self) -> dict[str, Any]:
        """Groups as bytes, the rest JSON-ready."""
        flat = [
            (cell, example, *group)
            for cell, groups_of_cell in enumerate(self._groups)
            for example, group in groups_of_cell.items()
        ]
        return {
            "places": np.array([row[:2] for row in flat], dtype="<i8").tobytes(),
            "golds": np.array([row[2] for row in flat], dtype="<i8").tobytes(),
            "success": np.array([row[3] for row in flat], dtype="<f8").tobytes(),
            "counts": np.array([len(row[4]) for row in flat], dtype="<i8").tobytes(),
            "answers": np.array([answer for row in flat for answer in row[4]], dtype="<i8").tobytes(),
            "has_partial_credit": self._has_partial_credit.tolist(),
            "before": [[None if value != value else value for value in row] for row in self._before.tolist()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, exactly."""
        cells_and_examples = np.frombuffer(state["places"], "<i8").reshape(-1, 2).tolist()
        golds, success = np.frombuffer(state["golds"], "<i8").tolist(), np.frombuffer(state["success"], "<f8").tolist()
        ends = np.cumsum(np.frombuffer(state["counts"], "<i8"))
        answers = np.split(np.frombuffer(state["answers"], "<i8"), ends[:-1]) if len(ends) else []
        self._groups = [{} for _ in self._groups]
        for (cell, example), gold, mean_success, answers_of_group in zip(
            cells_and_examples, golds, success, answers, strict=True
        ):
            self._groups[cell][example] = (gold, mean_success, tuple(answers_of_group.tolist()))
        self._has_partial_credit[:] = state["has_partial_credit"]
        self._before[:] = [[np.nan if value is None else value for value in row] for row in state["before"]]
        self._stale = set(range(len(self._groups)))


class Ledger:
    """Evidence of one run.

    Args:
        pool: what may be drawn.
        held_back: pool indices that must never be drawn (canaries).
    """

    def __init__(self, pool: Pool, held_back: Collection[int] = ()) -> None:
        self.pool = pool
        self._table = np.full(len(pool.ids), UNTOUCHED_ROW)
        self.wins, self.tries, self.seen, self.drawn = (self._table[name] for name in ROW_TYPE.names or ())
        self.answers = AnswerEvidence(len(pool.cells), pool.golds)
        self.recent = CellEvidence(len(pool.cells), RECENT_ROLLOUTS, CELL_HALF_LIFE)
        self.lasting = CellEvidence(len(pool.cells), LASTING_ROLLOUTS)
        self.step = self.draws = 0
        self._task_of_cell = pool.task_of_cell
        cell_order = np.lexsort((np.arange(len(pool.cells)), self._task_of_cell))
        self._order = _sort_by_cell(pool, cell_order, held_back)
        self.sizes = np.bincount(pool.cell_of[self._order], minlength=len(pool.cells))
        """Examples that may be drawn, per cell."""
        self._starts = np.empty(len(pool.cells), dtype=np.int64)
        self._starts[cell_order] = np.cumsum(self.sizes[cell_order]) - self.sizes[cell_order]
        self._task_ends = np.cumsum(np.bincount(self._task_of_cell, self.sizes, len(pool.tasks))).astype(np.int64)

    def random_members(self, cells: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` random pool indices from each of these cells, which have something to draw; shape (cells, count)."""
        offsets = rng.random((len(cells), count)) * self.sizes[cells, None]
        return self._order[self._starts[cells, None] + offsets.astype(np.int64)]

    def task_members(self, task: int) -> np.ndarray:
        """Pool indices that may be drawn from a task."""
        return self._order[self._task_ends[task - 1] if task else 0 : self._task_ends[task]]

    def task_cells(self, task: int) -> np.ndarray:
        """Numbers of the task's cells that have something to draw, ascending."""
        return np.flatnonzero((self._task_of_cell == task) & (self.sizes > 0))

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
        earlier, positions = self.faded(indices, step), np.arange(len(indices), dtype=np.int32)
        self.wins[indices], self.tries[indices] = earlier[0] + wins, earlier[1] + tries
        self.seen[indices] = positions
        repeated = np.flatnonzero(self.seen[indices] != positions)  # an example's last group stands; its others are added
        for array, new in ((self.wins, wins), (self.tries, tries)):
            np.add.at(array, indices[repeated], np.broadcast_to(new, indices.shape)[repeated])
        self.seen[indices] = step
        self.step = max(self.step, step)
        for evidence in (self.recent, self.lasting):
            evidence.add(self.pool.cell_of[indices], step, wins, tries)

    def advance_to(self, step: int) -> None:
        """Training has come to `step`, whether or not anything was rewarded in it (losses and pairs are not)."""
        self.step = max(self.step, step)
        for evidence in (self.recent, self.lasting):
            evidence.step = max(evidence.step, step)

    def learn(self, groups: Sequence[GroupOutcome], indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take in groups of these examples that `read_rewards` has read; returns successes and rollouts of each."""
        wins, tries = count_successes(groups)
        is_partial = np.array([any(0 < success < 1 for success in group.successes) for group in groups])
        self.answers.add(indices, self.pool.cell_of[indices], groups, wins / tries, is_partial)
        steps = np.array([group.step for group in groups])
        for step in np.unique(steps):
            of_step = steps == step
            self.add(indices[of_step], int(step), wins[of_step], tries[of_step])
        return wins, tries

    def faded(self, indices: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Successes and rollouts of examples so far, as much as they are worth at a step."""
        rows = self._table[indices]
        keep = np.exp2(np.minimum(rows["seen"] - step, 0) / EXAMPLE_HALF_LIFE)
        return rows["wins"] * keep, rows["tries"] * keep

    def kappa(self, success: np.ndarray, cells: np.ndarray | int) -> np.ndarray:
        """(success - S) / (1 - S) with the expected S of these cells, -1..1: what of a success depends on the prompt."""
        return kappa(success, self.answers.swapped()[cells])

    def state(self) -> dict[str, Any]:
        """Cells and counters JSON-ready; examples that were touched as bytes, 20 each: their numbers and their rows."""
        touched = np.flatnonzero((self.seen >= 0) | (self.drawn >= 0))
        cells = {"recent": self.recent.state(), "lasting": self.lasting.state()}
        examples = {"index": touched.astype("<i4").tobytes(), "rows": self._table[touched].tobytes()}
        return {"step": self.step, "draws": self.draws, **examples, "cells": cells, "answers": self.answers.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, exactly."""
        self._table[:] = UNTOUCHED_ROW
        self._table[np.frombuffer(state["index"], "<i4")] = np.frombuffer(state["rows"], ROW_TYPE)
        self.step, self.draws = int(state["step"]), int(state["draws"])
        for name, evidence in (("recent", self.recent), ("lasting", self.lasting)):
            evidence.restore(state["cells"][name])
            evidence.step = self.step
        self.answers.restore(state["answers"])


def read_rewards(groups: Sequence[GroupOutcome], reward_range: Sequence[float]) -> list[GroupOutcome]:
    """The groups with their rewards as successes by `reward_range`; those that were read already stay as they are.

    Raises:
        InputError: a group without rewards, or a reward that is not finite: it would stay in the evidence for good.
    """
    low, high = reward_range
    for group in groups:
        if not group.rewards or not all(map(math.isfinite, group.rewards)):
            got = f"{group.rewards} of {group.example!r}"[:120]
            raise InputError("groups with finite rewards", got, "Leave such groups out.")
    return [
        group
        if group.successes
        else replace(group, successes=tuple(success_of(reward, low, high) for reward in group.rewards))
        for group in groups
    ]


def success_of(reward: float, low: float, high: float) -> float:
    """A reward as success, 0..1, where `low` is that of a wrong answer and `high` that of a right one."""
    return min(1.0, max(0.0, (reward - low) / (high - low)))


def count_successes(groups: Sequence[GroupOutcome]) -> tuple[np.ndarray, np.ndarray]:
    """Successes and rollouts per group. Needs a group."""
    tries = np.array([len(group.successes) for group in groups])
    success = np.concatenate([group.successes for group in groups])
    return np.add.reduceat(success, np.cumsum(tries) - tries), tries.astype(float)


def _measure_dependence(groups: Sequence[Group]) -> Dependence | None:
    """Dependence among groups of different prompts; None where equal answers do not explain the rewards."""
    golds = np.array([gold for gold, _, _ in groups])
    counts = np.array([len(answers) for _, _, answers in groups])
    all_answers = np.concatenate([np.array(answers) for _, _, answers in groups])
    equal_share = (
        np.add.reduceat(all_answers[:, None] == golds[None, :], np.cumsum(counts) - counts, axis=0) / counts[:, None]
    )
    own_success, mean_success = np.diagonal(equal_share), np.array([success for _, success, _ in groups])
    if np.abs(own_success - mean_success).mean() > MAX_REWARD_DIFFERENCE:
        return None
    other_count = len(groups) - 1
    given_elsewhere, taken_from_others = ((equal_share.sum(axis=axis) - own_success) / other_count for axis in (1, 0))
    return dependence_of_margins(own_success, given_elsewhere, taken_from_others)


def _sort_by_cell(pool: Pool, cell_order: np.ndarray, held_back: Collection[int]) -> np.ndarray:
    """Pool indices that may be drawn, cells in the order `cell_order`, ascending in a cell; int32."""
    rank = np.empty(len(pool.cells), dtype=np.int64)
    rank[cell_order] = np.arange(len(pool.cells))
    order = np.argsort(compact_numbers(rank)[pool.cell_of], kind="stable").astype(np.int32)
    if not held_back:
        return order
    is_free = np.ones(len(order), dtype=bool)
    is_free[list(held_back)] = False
    return order[is_free[order]]
