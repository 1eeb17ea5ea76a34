"""Controllers of coefficients: one class each, named in settings in small letters, `drift`."""

from __future__ import annotations

from dataclasses import dataclass

from mixwright.contracts import Controller
from mixwright.errors import check_range
from mixwright.records import Action, Signals
from mixwright.steer.checkpointable import Checkpointable

OPTION_LIMITS = {
    "target": (1e-9, 1e9),
    "dead_band": (1, 1e9),
    "factor": (1.001, 1e9),
    "smooth": (1e-9, 1),
    "steps_between_moves": (0, 1e9),
    "max_beta_ratio": (1, 1e9),
}


@dataclass(kw_only=True, eq=False)
class Drift(Checkpointable, Controller):
    """Controller that keeps the model near its start: it moves beta when the KL leaves a dead band.

    The KL (nats per token, which TRL's trainer measures when beta > 0) is smoothed. Above `target` x `dead_band` beta is
    multiplied by `factor`; below `target` / `dead_band` it is divided by it, at most back to where it began. Beta is never
    moved to 0 nor from 0: there is no KL penalty then. At most one move in `steps_between_moves` steps; where readings are
    further apart, a reading counts for the steps that it stands for: in the running mean, and as one move per
    `steps_between_moves` of them.

    Measured (the study `overhard`, greedy success over everything held out, 80 steps on over-hard data): started at
    beta 0.01 it ends 2 points under not training (1 to 3), beta 0.01 alone 31 (16 to 45), uniform draws without either
    50. Without levels the trainer's own plan ends 3 under it with both (1 to 5), 23 without (18 to 29). From beta 0 it had
    lowered the learning rate instead, which showed no effect. So start with beta above 0; a trainer's own plan leaves it
    out where beta is 0.

    Source: adaptive KL coefficient of 1909.08593.
    Unit: nats per token.
    Cost: none beyond the KL, which the trainer measures anyway.
    Blind spot: one coefficient for all tasks; without a KL it sees nothing and does nothing.

    Args:
        target: KL from the start to aim under, nats per token.
        dead_band: factor around the target within which nothing is done.
        factor: how much one move multiplies or divides.
        smooth: weight of the newest step's KL in the running mean, 0..1.
        steps_between_moves: steps between two moves.
        max_beta_ratio: beta is never raised above this many times its first value.
    """

    STATE_FIELDS = ("_kl", "_moved", "_first_beta", "_read")

    target: float = 0.1
    dead_band: float = 1.5
    factor: float = 1.5
    smooth: float = 0.3
    steps_between_moves: int = 5
    max_beta_ratio: float = 64.0

    def __post_init__(self) -> None:
        check_range("controllers.drift", vars(self), **OPTION_LIMITS)
        self._kl: float | None = None
        self._first_beta: float | None = None
        self._moved: int | None = None
        """Step of the last move."""
        self._read: int | None = None
        """Step of the last reading of the KL."""

    def propose(self, signals: Signals) -> list[Action]:
        """One action when the smoothed KL is outside the dead band and the last move is long enough ago."""
        if signals.kl_nats is None or signals.beta <= 0:
            return []
        steps_since_read = 1 if self._read is None else max(signals.step - self._read, 1)
        self._read = signals.step
        old_weight = 0.0 if self._kl is None else (1 - self.smooth) ** steps_since_read
        self._kl = old_weight * (self._kl or 0.0) + (1 - old_weight) * signals.kl_nats
        if self._first_beta is None:
            self._first_beta = signals.beta
        is_far, is_near = self._kl > self.target * self.dead_band, self._kl < self.target / self.dead_band
        if not (is_far or is_near) or (self._moved is not None and signals.step - self._moved < self.steps_between_moves):
            return []
        factor = self.factor ** max(1, steps_since_read // max(self.steps_between_moves, 1))
        beta, first_beta = signals.beta, self._first_beta
        new_beta = beta * factor if is_far else beta / factor
        new_beta = min(max(new_beta, min(first_beta, beta)), max(first_beta * self.max_beta_ratio, beta))
        if new_beta == beta:
            return []
        self._moved = signals.step
        side = "above" if is_far else "below"
        because = f"KL {self._kl:.3g} nats per token, {side} {self.target:g} by more than a factor of {self.dead_band:g}"
        return [Action("coefficient", "beta", new_beta, because)]
