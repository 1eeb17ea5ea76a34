"""Ledger of what the run has shown so far: discounted evidence per cell, and the last draw of each example.

Per example 8 bytes (last draw, place in the order), 16 with the pool's own task and cell numbers. Nothing here loops over
all examples after the start.

Per cell the evidence is discounted successes and rollouts. Rollouts of one prompt are alike, so they count for what they are
worth. The ledger also estimates how much answers depend on their prompts: it compares the answers of a cell's last
`WINDOW_GROUPS` groups with the gold answers of the other prompts among them, S and kappa as `mixwright measure` has them,
without a reward call. It says nothing if there are no gold answers, if rewards give partial credit, or if being equal to the
gold answer does not explain the rewards (then the task's grader knows better).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
CELL_HALF_LIFE = 40.0
"""Steps after which recent evidence of a cell that is not drawn counts half."""
RECENT_ROLLOUTS, LASTING_ROLLOUTS = 128.0, 512.0
"""Memory of what choosing reads, short because band membership goes stale in steps; of what refusing reads, long because
ruling a cell out needs it."""
NEVER_DRAWN = -1
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
Group = list[Any]
"""Gold answer, mean success, list of answers; answers as `answer_key`."""


class CellEvidence(Checkpointable):
    """Discounted success per cell: each new rollout shrinks the weight of all older ones by exp(-1 / memory).

    Args:
        count: number of cells.
        memory: rollouts that evidence is worth at most, about, in groups of up to 8; as many groups where they are larger.
        half_life: steps without a new rollout after which the posterior counts the evidence half; None: it never fades.
    """

    PER_CELL = ("wins", "tries", "groups", "squares", "seen")
    """Arrays with a number for each cell."""
    STATE_FIELDS = (*PER_CELL, "step")

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
        order = np.argsort(cells, kind="stable")
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
        groups, _, mean = self._positive_counts(cells)
        effective = np.where(self.tries[cells] > 0, groups / self._between(cells, 1.0), 0.0)
        return mean * effective, effective

    def intraclass_correlation(self, cells: np.ndarray | int) -> np.ndarray:
        """Intraclass correlation, 0..1: how much of the variance of success lies between prompts.

        1: every prompt is always right or always wrong, so no group carries signal; the variance within a prompt is
        mean (1 - mean) (1 - correlation). Drawn towards `CORRELATION_OF_UNKNOWN_CELL` while few successes or failures were
        seen.
        """
        groups, tries, _ = self._positive_counts(cells)
        least_correlation = groups / tries
        rho = self._between(cells, CORRELATION_OF_UNKNOWN_CELL)
        correlation = np.clip((rho - least_correlation) / np.maximum(1 - least_correlation, 1e-12), 0, 1)
        return np.where(self.tries[cells] > 0, correlation, CORRELATION_OF_UNKNOWN_CELL)

    def _between(self, cells: np.ndarray | int, prior: float) -> np.ndarray:
        """Share of the variance of group means, from 1 / group size to 1, drawn towards `prior`."""
        groups, tries, mean = self._positive_counts(cells)
        spread = np.maximum(mean * (1 - mean), 1e-12)
        between = np.maximum(self.squares[cells] / groups - mean**2, 0) * groups / np.maximum(groups - 1, 1)
        evidence = 4 * groups * spread
        return np.clip((evidence * between / spread + PRIOR_WEIGHT * prior) / (evidence + PRIOR_WEIGHT), groups / tries, 1.0)

    def _positive_counts(self, cells: np.ndarray | int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Groups and rollouts, above 0 so that they can be divided by, and mean success."""
        groups, tries = np.maximum(self.groups[cells], 1e-12), np.maximum(self.tries[cells], 1e-12)
        return groups, tries, np.clip(self.wins[cells] / tries, 0, 1)


class AnswerEvidence(Checkpointable):
    """S and kappa per cell: the success of its answers on other prompts of the cell, and (success - S) / (1 - S).

    Args:
        cells: how many.
        golds: gold answer of each example of the pool as `answer_key`, 0 where there is none; None when nobody knows.
    """

    STATE_FIELDS = ("_groups", "_has_partial_credit", "_measured")

    def __init__(self, cells: int, golds: np.ndarray | None) -> None:
        self._golds = golds
        self._groups: list[dict[str, Group]] = [{} for _ in range(cells)]
        """Last groups of each cell, oldest first, by example number."""
        self._has_partial_credit = np.zeros(cells, dtype=bool)
        self._measured: list[list[float | None]] = [[None, None] for _ in range(cells)]
        """S and the upper end of kappa of each cell, measured before the run."""
        self._swapped, self._high = np.zeros(cells), np.ones(cells)
        self._stale = set(range(cells))

    def start(self, cell: int, swapped: float | None, high: float | None) -> None:
        """Take over what was measured before the run: S, and the upper end of kappa."""
        self._measured[cell] = [swapped, high]
        self._stale.add(cell)

    def forget(self, cells: np.ndarray) -> None:
        """Drop what is known of these cells: it is about another model now."""
        for cell in cells.tolist():
            self._groups[cell].clear()
            self.start(cell, None, None)

    def add(self, examples: np.ndarray, cells: np.ndarray, groups: Sequence[GroupOutcome]) -> None:
        """Take in groups of these examples and cells, in order."""
        if self._golds is None:
            return
        for example, cell, group in zip(examples.tolist(), cells.tolist(), groups, strict=True):
            if any(0 < success < 1 for success in group.successes):
                self._has_partial_credit[cell] = True
            self._stale.add(cell)
            gold, groups_of_cell = int(self._golds[example]), self._groups[cell]
            if not gold or len(group.answers) != len(group.rewards):
                continue
            answers = [answer_key(answer) for answer in group.answers[:MAX_ANSWERS_PER_GROUP]]
            groups_of_cell.pop(str(example), None)  # of a prompt that comes again only its last group counts
            groups_of_cell[str(example)] = [gold, sum(group.successes) / len(group.successes), answers]
            if len(groups_of_cell) > WINDOW_GROUPS:
                del groups_of_cell[next(iter(groups_of_cell))]

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
        measured_swapped, high = self._measured[cell]
        swapped, groups = measured_swapped or 0.0, list(self._groups[cell].values())
        if self._golds is None or self._has_partial_credit[cell]:
            return swapped, 1.0
        n = len(groups)
        if n > 2:
            dependence = _measure_dependence(groups)
            if dependence is None:
                return swapped, 1.0
            weight = UNMEASURED_PRIOR_GROUPS if n < JUDGED_GROUPS else 0.0
            weight = weight if measured_swapped is None else PRIOR_GROUPS
            swapped = min(max((n * dependence.swapped.value + weight * swapped) / (n + weight), 0.0), 1.0)
            kappa = dependence.kappa
            if n >= JUDGED_GROUPS:  # no window rules kappa out where S is large, so a measurement holds until kappa is shown
                high = kappa.high if high is None or kappa.low > 0 else min(high, kappa.high)
        return swapped, 1.0 if high is None or swapped < UNEARNED_S else high

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        super().restore(state)
        self._stale = set(range(len(self._groups)))


class Ledger(Checkpointable):
    """Evidence of one run.

    Args:
        pool: what may be drawn.
    """

    STATE_FIELDS = ("draws", "recent", "lasting", "answers")

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.drawn = np.full(len(pool.ids), NEVER_DRAWN, dtype=np.int32)
        """Number of the last draw of each example."""
        self.draws = 0
        """Draws so far."""
        self.answers = AnswerEvidence(len(pool.cells), pool.golds)
        self.recent = CellEvidence(len(pool.cells), RECENT_ROLLOUTS, CELL_HALF_LIFE)
        self.lasting = CellEvidence(len(pool.cells), LASTING_ROLLOUTS)
        cell_order = np.argsort(pool.task_of_cell, kind="stable")
        rank = np.argsort(cell_order).astype(np.int32)
        self._order = np.argsort(rank[pool.cell_of], kind="stable").astype(np.int32)
        """Pool indices that may be drawn, by task and cell."""
        self.sizes = np.bincount(pool.cell_of[self._order], minlength=len(pool.cells))
        """Examples that may be drawn, per cell."""
        self._starts = np.empty(len(pool.cells), dtype=np.int64)
        self._starts[cell_order] = np.cumsum(self.sizes[cell_order]) - self.sizes[cell_order]
        self._task_ends = np.cumsum(np.bincount(pool.task_of_cell, self.sizes, len(pool.tasks))).astype(np.int64)

    @property
    def step(self) -> int:
        """Last step known."""
        return self.recent.step

    def random_members(self, cells: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` random pool indices from each of these cells, which have something to draw; shape (cells, count)."""
        offsets = rng.random((len(cells), count)) * self.sizes[cells, None]
        return self._order[self._starts[cells, None] + offsets.astype(np.int64)]

    def task_members(self, task: int) -> np.ndarray:
        """Pool indices that may be drawn from a task."""
        return self._order[self._task_ends[task - 1] if task else 0 : self._task_ends[task]]

    def task_cells(self, task: int) -> np.ndarray:
        """Numbers of the task's cells that have something to draw, ascending."""
        return np.flatnonzero((self.pool.task_of_cell == task) & (self.sizes > 0))

    def mark_drawn(self, indices: Numbers) -> None:
        """Note that these examples are drawn now, in this order."""
        indices = np.atleast_1d(indices)
        self.drawn[indices] = np.arange(self.draws, self.draws + len(indices))
        self.draws += len(indices)

    def add(self, indices: np.ndarray | int, step: int, wins: Numbers, tries: Numbers) -> None:
        """Groups of one step in order: `wins` is the sum of each one's successes in 0..1, out of `tries` rollouts."""
        cells = np.atleast_1d(self.pool.cell_of[indices])
        for evidence in (self.recent, self.lasting):
            evidence.add(cells, step, wins, tries)

    def advance_to(self, step: int) -> None:
        """Training has come to `step`, whether or not anything was rewarded in it (losses and pairs are not)."""
        for evidence in (self.recent, self.lasting):
            evidence.step = max(evidence.step, step)

    def learn(self, groups: Sequence[GroupOutcome], indices: np.ndarray) -> None:
        """Take in groups of these examples that `read_rewards` has read."""
        self.answers.add(indices, self.pool.cell_of[indices], groups)
        self.add(indices, max(group.step for group in groups), *count_successes(groups))

    def kappa(self, success: np.ndarray, cells: np.ndarray | int) -> np.ndarray:
        """(success - S) / (1 - S) with the expected S of these cells, -1..1: what of a success depends on the prompt."""
        return kappa(success, self.answers.swapped()[cells])

    def state(self) -> dict[str, Any]:
        """JSON-ready, with the examples that were drawn."""
        drawn_indices = np.flatnonzero(self.drawn != NEVER_DRAWN)
        return super().state() | {"drawn": [drawn_indices.tolist(), self.drawn[drawn_indices].tolist()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, exactly."""
        super().restore(state)
        drawn_indices, numbers = state["drawn"]
        self.drawn[:] = NEVER_DRAWN
        self.drawn[np.array(drawn_indices, dtype=np.int64)] = numbers


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
    wins = np.array([sum(group.successes) for group in groups])
    return wins, np.array([float(len(group.successes)) for group in groups])


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
