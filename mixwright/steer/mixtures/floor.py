"""Gives every task at least a share of the draws, however rare it is in the data.

Tasks under the floor are raised to it and the others scaled down alike. Where the tasks are so many that their floors would
take more than `most` of the run, the floor is lowered to `most` / tasks. Tasks that the stage leaves out stay out.

Source: up-weighting as the cheap alternative to scaling, 2605.29548.
Unit: share of draws.
Cost: none; the weights never move.
Blind spot: knows how rare a task is, not whether it needs more: simple tasks and mastered ones are raised alike. On tables
    (benchmarks/rare_task.py) a floor of 2 % gave the rare tasks 0.99 accuracy against 0.60 without it, at no cost to others;
    equal weights for all gave 1.00. Off unless a plan names it.
"""

from __future__ import annotations

from mixwright.contracts import Mixture, Scene
from mixwright.errors import InputError
from mixwright.steer.mixtures._steady import raised, stage_shares


class Floor(Mixture):
    """Least shares.

    Args:
        share: least share of a task.
        most: share of the run that all floors may take together.
    """

    def __init__(self, *, share: float = 0.02, most: float = 0.5) -> None:
        if not (0 <= share <= 1 and 0 <= most <= 1):
            raise InputError("share and most between 0 and 1", f"{share:g} and {most:g}", "Correct mixtures.floor.")
        self.share, self.most = share, most

    def begin(self, scene: Scene) -> None:
        """Work the weights out, once."""
        shares = stage_shares(scene)
        floor = min(self.share, self.most / (shares > 0).sum())
        self._weights = dict(zip(scene.pool.tasks, raised(shares, floor).tolist(), strict=True))

    def weights(self, step: int) -> dict[str, float]:
        """The same at every step."""
        return self._weights
