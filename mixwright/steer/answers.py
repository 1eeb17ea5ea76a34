"""Estimates in a run of how much answers depend on their prompts, from recent answers of a cell and its gold answers.

The answers of a cell's last `WINDOW_GROUPS` groups are compared with the gold answers of the other prompts among them: S and
kappa as `mixwright measure` has them, without a reward call. Nothing is said where there are no gold answers, where rewards
are graded, or where being equal to the gold answer does not explain the rewards (then the task's grader knows better).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.estimates.dependence import Dependence, dependence_of_margins
from mixwright.records import GroupOutcome

WINDOW_GROUPS = 64
"""Groups of a cell that are kept, one per prompt."""
JUDGED_GROUPS = 32
"""Groups from which the run's answers count; before, only what was measured before it."""
PRIOR_GROUPS, UNMEASURED_PRIOR_GROUPS = 16.0, 4.0
"""Weight in groups, against the run's own, of the S that was measured before the run; and of S = 0 where none was measured,
for as long as the cell has fewer than `JUDGED_GROUPS` groups of its own."""
UNEARNED_S = 0.05
"""S under which a cell is never lucky: answers that earn nothing anywhere are too hard, until the first are right."""
MOST_ANSWERS_PER_GROUP = 16
"""Answers of a group that are kept."""
MOST_REWARD_DIFFERENCE = 0.05
"""Mean difference between reward and being equal to the gold answer above which answers say nothing."""
Group = tuple[int, float, tuple[int, ...]]
"""Gold answer, success, answers; answers as `answer_key`."""


def answer_key(text: str) -> int:
    """An answer as a 31-bit number, which any two of a window share by chance in 1 of 60,000 cases; 0 is no answer."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).digest(), "big") >> 1 or 1


class AnswerEvidence:
    """S and kappa per cell: the success of its answers on other prompts of the cell, and (success - S) / (1 - S).

    Args:
        cells: how many.
        golds: gold answer of each example of the pool as `answer_key`, 0 where there is none; None when nobody knows.
    """

    def __init__(self, cells: int, golds: np.ndarray | None) -> None:
        self._golds = golds
        self._groups: list[dict[int, Group]] = [{} for _ in range(cells)]
        self._graded = np.zeros(cells, dtype=bool)
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
        graded: np.ndarray,
    ) -> None:
        """Groups of these examples and cells in order, the mean success of each (0..1), and whether rewards were partial."""
        if self._golds is None:
            return
        self._graded[cells[graded]] = True
        self._stale.update(cells[graded].tolist())
        for example, cell, group, right in zip(examples.tolist(), cells.tolist(), groups, success.tolist(), strict=True):
            gold, kept = int(self._golds[example]), self._groups[cell]
            if not gold or len(group.answers) != len(group.rewards):
                continue
            kept.pop(example, None)  # of a prompt that comes again its last group stands
            kept[example] = (gold, right, tuple(map(answer_key, group.answers[:MOST_ANSWERS_PER_GROUP])))
            if len(kept) > WINDOW_GROUPS:
                del kept[next(iter(kept))]
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
        before, high = self._before[:, cell].tolist()
        known = before == before
        groups = list(self._groups[cell].values())
        if self._golds is None or self._graded[cell]:
            return (before if known else 0.0), 1.0
        n, swapped = len(groups), before if known else 0.0
        if n > 2:
            found = _measure_dependence(groups)
            if found is None:
                return swapped, 1.0
            weight = PRIOR_GROUPS if known else UNMEASURED_PRIOR_GROUPS if n < JUDGED_GROUPS else 0.0
            swapped = min(max((n * found.swapped.value + weight * swapped) / (n + weight), 0.0), 1.0)
            if n >= JUDGED_GROUPS:  # no window rules kappa out where S is large: what was measured stands until it is shown
                high = min(high, found.kappa.high) if found.kappa.low <= 0 and high == high else found.kappa.high
        return swapped, (high if high == high and swapped >= UNEARNED_S else 1.0)

    def state(self) -> dict[str, Any]:
        """Groups as bytes, the rest JSON-ready."""
        flat = [(cell, example, *group) for cell, kept in enumerate(self._groups) for example, group in kept.items()]
        return {
            "places": np.array([row[:2] for row in flat], dtype="<i8").tobytes(),
            "golds": np.array([row[2] for row in flat], dtype="<i8").tobytes(),
            "success": np.array([row[3] for row in flat], dtype="<f8").tobytes(),
            "counts": np.array([len(row[4]) for row in flat], dtype="<i8").tobytes(),
            "answers": np.array([answer for row in flat for answer in row[4]], dtype="<i8").tobytes(),
            "graded": self._graded.tolist(),
            "before": [[None if value != value else value for value in row] for row in self._before.tolist()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned, exactly."""
        places = np.frombuffer(state["places"], "<i8").reshape(-1, 2).tolist()
        golds, success = np.frombuffer(state["golds"], "<i8").tolist(), np.frombuffer(state["success"], "<f8").tolist()
        ends = np.cumsum(np.frombuffer(state["counts"], "<i8"))
        answers = np.split(np.frombuffer(state["answers"], "<i8"), ends[:-1]) if len(ends) else []
        self._groups = [{} for _ in self._groups]
        for (cell, example), gold, right, given in zip(places, golds, success, answers, strict=True):
            self._groups[cell][example] = (gold, right, tuple(given.tolist()))
        self._graded[:] = state["graded"]
        self._before[:] = [[np.nan if value is None else value for value in row] for row in state["before"]]
        self._stale = set(range(len(self._groups)))


def _measure_dependence(groups: Sequence[Group]) -> Dependence | None:
    """Dependence among groups of different prompts; None where equal answers do not explain the rewards."""
    golds = np.array([gold for gold, _, _ in groups])
    counts = np.array([len(answers) for _, _, answers in groups])
    given = np.concatenate([np.array(answers) for _, _, answers in groups])
    equal = np.add.reduceat(given[:, None] == golds[None, :], np.cumsum(counts) - counts, axis=0) / counts[:, None]
    own_success, right = np.diagonal(equal), np.array([success for _, success, _ in groups])
    if np.abs(own_success - right).mean() > MOST_REWARD_DIFFERENCE:
        return None
    rest = len(groups) - 1
    given_elsewhere, taken_from_others = ((equal.sum(axis=axis) - own_success) / rest for axis in (1, 0))
    return dependence_of_margins(own_success, given_elsewhere, taken_from_others)
