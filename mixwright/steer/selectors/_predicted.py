"""Replacement of even draws by draws of predicted success, in tasks where no level tells rows apart."""

from __future__ import annotations

import numpy as np

from mixwright.estimates.cell_states import room_to_learn
from mixwright.steer.ledger import Ledger
from mixwright.steer.predictor import Predictor, share_following

UNPREDICTED_SHARE = 0.1
"""Share of draws that take any row, whatever is predicted: they judge the predictor, and find what it overlooks."""
REST_POOL_PASSES, RESTING_ROOM_FACTOR = 0.5, 0.35
"""How long an example that was drawn rests, in passes over the pool (0.5: half as many draws as there are examples), and the
factor on its room to learn until then: what comes again soon is memorised, and looks learnable for it; but a few rows in
reach among many that are not must come again."""
ROOM_POWER = 4
"""A candidate is taken with a probability in proportion to this power of its room to learn."""
MOST_CANDIDATES, ROWS_PER_CANDIDATE = 256, 8
"""Candidates of a draw: at most so many, and one row in so many, so that no small neighbourhood is drilled."""
DRAWS_AT_A_TIME = 1024
"""Draws whose candidates are weighed at a time: some 70 kB of memory each."""


class PredictedDraws:
    """Replaces draws of the tasks that the predictor covers.

    Args:
        predictor: of the run.
        ledger: of the run.
    """

    def __init__(self, predictor: Predictor, ledger: Ledger) -> None:
        self._predictor, self._ledger = predictor, ledger
        self.expected_success = np.zeros(0)
        """Expected success of each draw of the last batch, NaN where nothing is predicted."""
        self.even = np.zeros(0, dtype=bool)
        """Whether each draw of the last batch was made evenly."""

    def follow(self, tasks: np.ndarray, drawn: np.ndarray, rng: np.random.Generator) -> None:
        """Replace a share of these even draws, in place, by the best of random candidates; note what is thought of all.

        Args:
            tasks: of each draw, shape (draws,).
            drawn: pool indices drawn evenly, shape (draws,).
            rng: the only source of chance.
        """
        covered, chance = self._predictor.covers[tasks], rng.random(len(tasks))
        chosen = covered & (chance < share_following(self._predictor.trust, UNPREDICTED_SHARE))
        for task in np.unique(tasks[covered & (chance >= 1 - UNPREDICTED_SHARE)]).tolist():
            # Rows drawn the longest ago are those that the prediction avoids: they cannot judge it alone.
            places = np.flatnonzero(covered & (chance >= 1 - UNPREDICTED_SHARE) & (tasks == task))
            drawn[places] = rng.choice(self._ledger.task_members(task), len(places))
        taken = set(drawn[~chosen].tolist())
        for task in np.unique(tasks[chosen]).tolist():
            places = np.flatnonzero(chosen & (tasks == task))
            for start in range(0, len(places), DRAWS_AT_A_TIME):
                self._best(task, places[start : start + DRAWS_AT_A_TIME], drawn, taken, rng)
        self.expected_success, self.even = np.full(len(tasks), np.nan), ~chosen
        known = np.flatnonzero(covered)
        if len(known):
            self.expected_success[known] = self._predictor.expect(drawn[known], self.even[known])

    def _best(self, task: int, places: np.ndarray, drawn: np.ndarray, taken: set[int], rng: np.random.Generator) -> None:
        """For each of these draws a candidate with much room to learn by one draw of the weights, none twice in a batch."""
        members = self._ledger.task_members(task)
        count = max(1, min(MOST_CANDIDATES, len(members) // ROWS_PER_CANDIDATE))
        candidates = members[rng.integers(len(members), size=(len(places), count))]
        last = self._ledger.drawn[candidates]
        rested = (last < 0) | (self._ledger.draws - last > REST_POOL_PASSES * len(self._ledger.drawn))
        room = room_to_learn(*self._predictor.sampled(candidates, rng)) * np.where(rested, 1.0, RESTING_ROOM_FACTOR)
        keys = np.log(rng.random(room.shape)) / np.maximum(room, 1e-3) ** ROOM_POWER
        order = np.argsort(-keys, axis=1, kind="stable")
        for place, row in zip(places.tolist(), np.take_along_axis(candidates, order, axis=1).tolist(), strict=True):
            drawn[place] = next((example for example in row if example not in taken), row[0])
            taken.add(int(drawn[place]))
