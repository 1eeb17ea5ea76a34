"""Controllers of coefficients and learning-rate factors: one class each, named in settings in small letters, `drift`."""

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
    "min_lr_factor": (1e-9, 1),
}


@dataclass(kw_only=True, eq=False)
class Drift(Checkpointable, Controller):
    """Controller that keeps the model near its start: it moves beta, or the learning rate, when the KL leaves a dead band.

    The KL (nats per token, which TRL's trainer measures when beta > 0) is smoothed. Above `target` x `dead_band` beta is
    multiplied by `factor`; below `target` / `dead_band` it is divided by it, at most back to where it began. Where beta is
    0 there is no KL penalty to raise: a loop that measures the KL itself gets a lower learning-rate factor instead, not
    under `min_lr_factor`, which comes back up to 1 the same way. Beta is never moved to 0 nor from 0. At most one move in
    `steps_between_moves` steps; where readings are further apart, a reading counts for the steps that it stands for: in the
    running mean, and as one move per `steps_between_moves` of them.

    Measured (the study `overhard`, greedy success over everything held out, 80 steps on over-hard data): started at
    beta 0.01 it ends 2 points under not training (1 to 3), beta 0.01 alone 31 (16 to 45), uniform draws without either
    50. Without levels the trainer's own plan ends 3 under it with both (1 to 5), 23 without (18 to 29). From beta 0 an
    earlier run showed no effect: a lower rate pulls nothing back, and comes when most is lost. So start with beta above
    0; a trainer's own plan leaves it out where beta is 0.

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
        min_lr_factor: the learning-rate factor is never lowered under this.
    """

    STATE_FIELDS = ("_kl", "_moved", "_first_beta", "_read")

    target: float = 0.1
    dead_band: float = 1.5
    factor: float = 1.5
    smooth: float = 0.3
    steps_between_moves: int = 5
    max_beta_ratio: float = 64.0
    min_lr_factor: float = 0.1

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
        if signals.kl_nats is None:
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
        if signals.beta > 0:
            first_beta = self._first_beta or signals.beta
            old_value, new_value = signals.beta, signals.beta * factor if is_far else signals.beta / factor
            new_value = min(max(new_value, min(first_beta, old_value)), max(first_beta * self.max_beta_ratio, old_value))
        else:
            old_value = signals.lr_factor
            new_value = (
                max(old_value / factor, min(self.min_lr_factor, old_value)) if is_far else min(old_value * factor, 1.0)
            )
        if new_value == old_value:
            return []
        self._moved = signals.step
        side = "above" if is_far else "below"
        because = f"KL {self._kl:.3g} nats per token, {side} {self.target:g} by more than a factor of {self.dead_band:g}"
        return [
            Action("coefficient", "beta", new_value, because)
            if signals.beta > 0
            else Action("lr_factor", "lr", new_value, because)
        ]
