"""Selector that prefers what the model can just do: success inside the band, by Thompson sampling, without extra rollouts.

Cells of the task that are not known to be outside the band compete by one draw from each posterior: weight
4k(1 - k)(1 - a) when the drawn success lies in the band, k being the kappa that it means (what of it depends on the prompt:
a soft weight, no cut) and a how alike the rollouts of a prompt are (a cell of always right and always wrong prompts has no
signal), `weight_above` above it, `weight_below` under it. Mastered cells get a small review share; cells that are too hard,
or shown not to depend on the prompt, are re-evaluated, ever further apart (`_states.py`). Within a cell rows are drawn
evenly: of `candidates` random ones that which was drawn the longest ago.

A task of one cell (data without levels) is drawn evenly.

Source: MoPPS 2507.04632 (Beta posterior, Thompson), LILO 2502.12272 (learnability u(1 - u)), Pilot-Commit 2605.26606 (defer
    what is too hard); kappa, cells and reviews are ours.
Unit: success and kappa, 0..1.
Cost: O(cells of the task + candidates) arithmetic per draw, a whole batch at once; no rollouts.
Blind spot: follows evidence that is one generation batch old; rows of a cell are alike to it. Choosing among them by their
    own evidence was dropped: nothing gained with levels, 1.2 points lost without [0.1, 2.3] (mixwright_lab/log.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.contracts import Scene, Selector
from mixwright.errors import check_range
from mixwright.estimates.cell_states import HALF_WEIGHT_EXAMPLES, LUCKY_KAPPA, room_to_learn
from mixwright.records import GroupOutcome, PairOutcome, SFTOutcome
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.selectors._states import MASTERED, CellStates

MAX_POSTERIOR_SAMPLES = 256  # samples of posteriors in a batch, at most
OPTION_LIMITS = {"candidates": (1, 256), "memory": (1, 1e9), "weight_below": (1e-9, 1)}
OPTION_LIMITS |= dict.fromkeys(("explore", "weight_above", "retrial_share", "review_share", "lucky_kappa"), (0, 1))
PARKED_WEIGHT, DEFERRED_WEIGHT = 1e-4, 1e-8
"""Weight of mastered cells, and of deferred and lucky ones: they are drawn freely only where a task has nothing better."""


@dataclass(kw_only=True, eq=False)
class Difficulty(Checkpointable, Selector):
    """Thompson draw towards the band.

    Args:
        candidates: examples of the chosen cell of which the one drawn the longest ago is taken.
        explore: share of draws that take any example of the task.
        weight_above: weight of a draw above the band, against 1 for one in its middle.
        weight_below: weight of a draw under the band.
        memory: rollouts that a cell is judged by; older ones fade.
        retrial_share: largest share of a task's draws that goes to re-evaluations of cells outside the band, to see whether
            they came back.
        review_share: share of a task's draws that goes to mastered cells.
        lucky_kappa: kappa that must be excluded from above before a cell is lucky; 0 draws lucky cells like any other.
    """

    STATE_FIELDS = ("_states",)

    candidates: int = 8
    explore: float = 0.02
    weight_above: float = 0.05
    weight_below: float = 0.005
    memory: float = 128.0
    retrial_share: float = 0.05
    review_share: float = 0.02
    lucky_kappa: float = LUCKY_KAPPA

    def __post_init__(self) -> None:
        check_range("selectors.difficulty", vars(self), **OPTION_LIMITS)

    def begin(self, scene: Scene) -> None:
        """Note each task's cells; small cells count less, so that a handful of examples is not drilled."""
        self._ledger = scene.ledger
        self._states = CellStates(
            scene,
            memory=self.memory,
            retrial_share=self.retrial_share,
            review_share=self.review_share,
            lucky_kappa=self.lucky_kappa,
        )
        cells = [scene.ledger.task_cells(task) for task in range(len(scene.pool.tasks))]
        is_cell = np.arange(max(map(len, cells))) < np.array([[len(cells_of_task)] for cells_of_task in cells])
        self._cells = np.zeros(is_cell.shape, dtype=np.int64)
        self._cells[is_cell] = np.concatenate(cells)
        sizes = np.where(is_cell, scene.ledger.sizes[self._cells], 0)
        self._size_weights = sizes / (sizes + HALF_WEIGHT_EXAMPLES)

    def draw_weight(self, success: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Weight of cells, by success drawn for them; both of one shape, or `cells` of its last axis."""
        states = self._states
        correlation = self._ledger.lasting.intraclass_correlation(np.arange(len(states.cell_state)))
        weight_by_state = np.where(
            states.drawn_freely, 1.0, np.where(states.cell_state == MASTERED, PARKED_WEIGHT, DEFERRED_WEIGHT)
        )
        room = room_to_learn(success, self._ledger.answers.swapped()[cells]) * (1 - correlation)[cells]
        above = np.where(
            success > states.high[cells], max(self.weight_above, DEFERRED_WEIGHT), np.maximum(room, self.weight_below)
        )
        return np.where(success < states.low[cells], self.weight_below, above) * weight_by_state[cells]

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Examples of the tasks. A batch draws no example twice while its candidates allow."""
        cells = self._choose_cells(tasks, rng)
        self._states.serve(tasks, cells, rng)
        picked = self._choose_examples(cells, rng)
        explored = rng.random(len(tasks)) < self.explore
        for task in np.unique(tasks[explored]):
            positions = np.flatnonzero(explored & (tasks == task))
            picked[positions] = rng.choice(self._ledger.task_members(task), len(positions))
        return picked

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | SFTOutcome | PairOutcome]) -> None:
        """Move the cells' states."""
        self._states.observe(step, [outcome for outcome in outcomes if isinstance(outcome, GroupOutcome)])

    def _choose_cells(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A cell per draw; in a large batch draws share samples from the posteriors of the cells."""
        ledger, cells, draws = self._ledger, self._cells[tasks], np.arange(len(tasks))
        all_cells = np.arange(len(ledger.sizes))
        wins, losses = self._states.evidence.posterior(all_cells)
        if len(tasks) <= MAX_POSTERIOR_SAMPLES:
            weights = self.draw_weight(rng.beta(wins[cells], losses[cells]), cells)
        else:
            success = rng.beta(wins, losses, (MAX_POSTERIOR_SAMPLES, len(wins)))
            weights = self.draw_weight(success, all_cells)[draws[:, None] % MAX_POSTERIOR_SAMPLES, cells]
        weights = np.cumsum(weights * self._size_weights[tasks], axis=1)
        column = (weights <= rng.random((len(tasks), 1)) * weights[:, -1:]).sum(axis=1)
        return cells[draws, np.minimum(column, cells.shape[1] - 1)]

    def _choose_examples(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Of random candidates the one drawn the longest ago, none twice in a batch while others are there."""
        ledger, draws = self._ledger, np.arange(len(cells))
        candidates = ledger.random_members(cells, self.candidates, rng)
        last_drawn = ledger.drawn[candidates].astype(np.int64)  # -1 for never
        best = last_drawn.argmin(axis=1)
        for _ in range(self.candidates):
            repeated = repeated_positions(candidates[draws, best])
            if not len(repeated):
                break
            last_drawn[repeated, best[repeated]] = np.iinfo(np.int64).max
            best[repeated] = last_drawn[repeated].argmin(axis=1)
        return candidates[draws, best].astype(np.int64)


def repeated_positions(numbers: np.ndarray) -> np.ndarray:
    """Places of numbers that stand earlier in the array too."""
    keys = np.sort((numbers.astype(np.int64) << 32) + np.arange(len(numbers)))  # a full sort: the same on every machine
    return keys[1:][keys[1:] >> 32 == keys[:-1] >> 32] & (2**32 - 1)
