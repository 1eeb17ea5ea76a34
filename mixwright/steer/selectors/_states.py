"""States of a cell in the run that draws from it: unknown, active, mastered, review, deferred or lucky, and its trials.

    unknown   fewer than `MIN_RECENT_ROLLOUTS` rollouts; drawn like active
    active    not shown to be outside the band: drawn by its posterior
    mastered  success shown to lie over the band (one-sided 90 %): a small review share, the longest unseen first
    review    was mastered until a review group fell short; decided by a re-evaluation
    deferred  success shown to lie under the band (one-sided 90 %): only re-evaluated, ever further apart
    lucky     in or over the band without depending on the prompt, shown by the upper end of kappa: re-evaluated alike

A re-evaluation is `RETRIAL_GROUPS` groups, judged by themselves; those of a lucky cell are judged together with its
earlier ones, a group as one trial, because the answer that it always gives is right for some prompts and wrong for others.
When a cell comes back to active, its older evidence is forgotten: it is about another model. Waits double from
`FIRST_WAIT_STEPS` to `LONGEST_WAIT_STEPS` steps while re-evaluations fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mixwright.estimates.cell_states import LUCKY_KAPPA, Z_PROVISIONAL, side_of_band
from mixwright.estimates.intervals import wilson
from mixwright.records import GroupOutcome, cell_key
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.ledger import CellEvidence, count_successes
from mixwright.steer.scene import Scene

UNKNOWN, ACTIVE, MASTERED, REVIEW, DEFERRED, LUCKY = range(6)
MIN_RECENT_ROLLOUTS = 12.0
"""Rollouts before a cell is judged, the older ones fading: two groups of 8."""
RETRIAL_GROUPS = 2
"""Groups of a re-evaluation."""
FIRST_WAIT_STEPS, LONGEST_WAIT_STEPS = 8, 64
"""Steps to the first re-evaluation of a cell, and at most between two."""
STATE_ARRAYS = ("cell_state", "due", "wait", "retrial_groups_served", "turn")


class CellStates(Checkpointable):
    """The states of a pool's cells, and the draws that reviews and re-evaluations are owed.

    Args:
        scene: of the run; what its ledger knows at the start is taken over.
        memory: rollouts of evidence per cell.
        retrial_share: share of a task's draws that re-evaluations may take.
        review_share: share of a task's draws that reviews of mastered cells take.
        lucky_kappa: kappa that must be excluded from above before a cell is lucky; 0 calls none so.
    """

    STATE_FIELDS = (*STATE_ARRAYS, "_owed", "evidence", "_retrial_evidence")

    def __init__(
        self, scene: Scene, *, memory: float, retrial_share: float, review_share: float, lucky_kappa: float = LUCKY_KAPPA
    ) -> None:
        cells, self._ledger, self._lucky_kappa = scene.pool.cells, scene.ledger, lucky_kappa
        self._cell_numbers = {cell.key: number for number, cell in enumerate(cells)}
        self._task_of, (self.low, self.high) = scene.pool.task_of_cell, scene.band_edges
        self.cell_state, self.due, self.wait, self.retrial_groups_served, self.turn = np.zeros(
            (len(STATE_ARRAYS), len(cells)), dtype=np.int64
        )
        self._shares = np.array([[retrial_share], [review_share]])
        self._owed = np.zeros((2, len(scene.pool.tasks)))
        self.evidence = CellEvidence(len(cells), memory, scene.ledger.recent.half_life)
        self._retrial_evidence = CellEvidence(len(cells), math.inf)
        recent = scene.ledger.recent
        keep = np.minimum(1.0, memory / np.maximum(recent.tries, 1e-12))
        for name in ("wins", "tries", "groups", "squares"):
            getattr(self.evidence, name)[:] = getattr(recent, name) * keep
        self._settle(np.flatnonzero(recent.tries > 0), 0)

    @property
    def drawn_freely(self) -> np.ndarray:
        """Whether each cell is drawn by its posterior: unknown and active ones."""
        return self.cell_state <= ACTIVE

    def observe(self, step: int, groups: Sequence[GroupOutcome]) -> None:
        """Take in the groups of a batch and move the states of their cells."""
        if not groups:
            return
        wins, tries = count_successes(groups)
        cells = np.array([self._cell_numbers[cell_key(group.task, group.level)] for group in groups])
        step = max(step, self.evidence.step)
        self.evidence.add(cells, step, wins, tries)
        batch_cells, cell_positions = np.unique(cells, return_inverse=True)
        is_under = self._under(np.bincount(cell_positions, wins), np.bincount(cell_positions, tries), batch_cells, self.high)
        doubted = batch_cells[(self.cell_state[batch_cells] == MASTERED) & is_under]
        self.cell_state[doubted], self.due[doubted], self.retrial_groups_served[doubted] = REVIEW, step, 0
        self._retrial_evidence.add(cells, step, wins, tries)
        self._settle(batch_cells, step)
        self._judge_retried(batch_cells, step)
        self._clear(batch_cells[self.cell_state[batch_cells] == MASTERED])

    def serve(self, tasks: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> None:
        """Give some draws of a batch to re-evaluations and reviews, in place.

        Args:
            tasks: of each draw, shape (draws,).
            cells: of each draw, shape (draws,).
            rng: chooses the places.
        """
        step = self._ledger.step
        self.evidence.step = max(self.evidence.step, step)
        draws_by_task = np.bincount(tasks, minlength=self._owed.shape[1])
        self._owed += self._shares * draws_by_task
        due_now = (self.cell_state >= REVIEW) & (self.due <= step) & (self._ledger.sizes > 0)
        mastered = (self.cell_state == MASTERED) & (self._ledger.sizes > 0)
        for task in np.flatnonzero((draws_by_task > 0) & (self._owed >= 1).any(axis=0)):
            of_task = self._task_of == task
            retried = self._choose_retried(
                np.flatnonzero(due_now & of_task), int(min(self._owed[0, task], draws_by_task[task])), step
            )
            self._owed[0, task] -= len(retried)
            most_reviews = int(min(self._owed[1, task], draws_by_task[task] - len(retried)))
            reviewed = self._choose_reviewed(np.flatnonzero(mastered & of_task), most_reviews)
            self._owed[1, task] -= len(reviewed)
            served = np.r_[retried, reviewed].astype(np.int64)
            if len(served):
                cells[rng.permutation(np.flatnonzero(tasks == task))[: len(served)]] = served
        np.minimum(self._owed, RETRIAL_GROUPS, out=self._owed)  # a quiet time saves up one re-evaluation, no more

    def _choose_retried(self, cells: np.ndarray, most_cells: int, step: int) -> np.ndarray:
        """Up to `most_cells` cells to re-evaluate now, the longest due first, each as often as it still lacks groups."""
        order = cells[np.argsort(self.due[cells], kind="stable")]
        chosen = np.repeat(order, RETRIAL_GROUPS - self.retrial_groups_served[order])[:most_cells]
        np.add.at(self.retrial_groups_served, chosen, 1)
        fully_served = order[self.retrial_groups_served[order] >= RETRIAL_GROUPS]
        # Should no outcome come back (a batch that was lost), the cell is due again all the same.
        self.due[fully_served] = step + np.maximum(self.wait[fully_served], FIRST_WAIT_STEPS)
        self.retrial_groups_served[fully_served] = 0
        return chosen

    def _choose_reviewed(self, cells: np.ndarray, cell_count: int) -> np.ndarray:
        """`cell_count` mastered cells, the longest unseen first; none when there are none."""
        if not len(cells) or cell_count < 1:
            return cells[:0]
        chosen = np.resize(cells[np.argsort(self.turn[cells], kind="stable")], cell_count)
        self.turn[chosen] = self.turn.max() + 1 + np.arange(cell_count)
        return chosen

    def _settle(self, cells: np.ndarray, step: int) -> None:
        """Judge cells that are drawn freely, by all that is known of them."""
        evidence = self.evidence
        cells = cells[self.drawn_freely[cells] & (evidence.tries[cells] >= MIN_RECENT_ROLLOUTS)]
        side = side_of_band(evidence.wins[cells], evidence.tries[cells], self.low[cells], self.high[cells], Z_PROVISIONAL)
        # kappa may lie under 0
        lucky = (self._lucky_kappa > 0) & (self._ledger.answers.kappa_high()[cells] < self._lucky_kappa)
        state = np.where(side > 0, MASTERED, np.where(side < 0, DEFERRED, np.where(lucky, LUCKY, ACTIVE)))
        self.cell_state[cells] = state
        self._put_off(cells[state >= DEFERRED], step)
        in_band = cells[(state == ACTIVE) & (evidence.tries[cells] >= 4 * MIN_RECENT_ROLLOUTS)]
        self.wait[in_band] = 0  # it was there: should it fall out again, it is looked for soon
        self._clear(cells)

    def _judge_retried(self, cells: np.ndarray, step: int) -> None:
        """Decide on re-evaluations that have all their groups."""
        retrial = self._retrial_evidence
        cells = cells[(self.cell_state[cells] >= REVIEW) & (retrial.groups[cells] >= RETRIAL_GROUPS)]
        wins, tries, review = retrial.wins[cells], retrial.tries[cells], self.cell_state[cells] == REVIEW
        fell = review & self._under(wins, tries, cells, self.high)
        retrial_weights = np.where(self.cell_state[cells] == LUCKY, retrial.groups[cells] / np.maximum(tries, 1e-12), 1.0)
        # a cell that is right by S alone stays out
        kappa_low = self._ledger.kappa(wilson(wins * retrial_weights, tries * retrial_weights, Z_PROVISIONAL)[0], cells)
        risen = ~review & (kappa_low > 1e-9) & (wins / np.maximum(tries, 1e-12) >= self.low[cells])
        returned, confirmed, failed = cells[fell | risen], cells[review & ~fell], cells[~review & ~risen]
        for name in CellEvidence.PER_CELL:
            getattr(self.evidence, name)[returned] = getattr(retrial, name)[returned]
        self._ledger.answers.forget(returned[self.cell_state[returned] == LUCKY])
        goes_on = failed[self.cell_state[failed] == LUCKY]
        self.cell_state[returned], self.cell_state[confirmed] = ACTIVE, MASTERED
        self._put_off(failed, step)
        self._clear(np.setdiff1d(cells, goes_on))

    def _put_off(self, cells: np.ndarray, step: int) -> None:
        """Re-evaluate these cells after twice as long as last time."""
        self.wait[cells] = np.clip(2 * self.wait[cells], FIRST_WAIT_STEPS, LONGEST_WAIT_STEPS)
        self.due[cells], self.retrial_groups_served[cells] = step + self.wait[cells], 0

    def _clear(self, cells: np.ndarray) -> None:
        """Begin the next re-evaluation of these cells with nothing."""
        for name in CellEvidence.PER_CELL:
            getattr(self._retrial_evidence, name)[cells] = 0

    def _under(self, wins: np.ndarray, tries: np.ndarray, cells: np.ndarray, edge: np.ndarray) -> np.ndarray:
        """Whether the upper end of success lies under an edge of the band."""
        return wilson(wins, tries, Z_PROVISIONAL)[1] < edge[cells]
