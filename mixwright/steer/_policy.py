"""What the engine does about alarms and about steps that few groups survive: the whole policy, in one place.

- **Few survivors.** A refused group has zero advantage, but Adam's momentum still moves the weights, and the few groups left
  are rescaled to a full step. So in a batch where the share of groups that are admitted and carry signal is under
  `survivors`, the learning rate is scaled by share / `survivors` until the next batch; with no survivor the step is skipped.
  Only in stages that have a gate: a stage without one takes every step, as a trainer without steering does.
- **Alarm.** Each inspection with an alarm tightens once, at most `DEEPEST` times: beta doubles where there is one, else the
  learning-rate factor halves. Each inspection of fresh canaries without an alarm undoes one tightening. After `patience`
  alarmed inspections in a row the `then` action is taken, if the user asked for one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mixwright.errors import InputError
from mixwright.records import Action, Alarm

DEEPEST = 4
"""Tightenings at most: a factor of 16."""


@dataclass(frozen=True)
class EngineOptions:
    """What `options.engine` of a stage may say."""

    reward_range: tuple[float, float] = (0.0, 1.0)
    """Reward of a wrong and of a right answer; rewards are mapped to 0..1 by it and clipped."""
    canaries: int = 16
    """Fixed items watched per mastered task, never trained on; at most a quarter of a cell."""
    survivors: float = 0.25
    """Share of groups that must teach, below which the step is scaled; 0 turns the rule off."""
    on_alarm: Literal["tighten", "log"] = "tighten"
    """What an alarm does: tighten as described, or only write it down."""
    patience: int = 3
    """Alarmed inspections in a row before `then`."""
    then: Literal["nothing", "stop", "restore"] = "nothing"
    """What follows when tightening did not help."""

    def __post_init__(self) -> None:
        low, high = self.reward_range
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError("a reward_range of two finite numbers, low < high", repr(self.reward_range), "Correct it.")
        if not 0 <= self.survivors <= 1:
            raise InputError("survivors between 0 and 1", repr(self.survivors), "Correct it.")
        if self.canaries < 0 or self.patience < 1:
            got = f"canaries {self.canaries}, patience {self.patience}"
            raise InputError("canaries of 0 or more and patience of at least 1", got, "Correct it.")


class Policy:
    """Turns survivors and alarms into actions; keeps the learning-rate factor's parts apart.

    Args:
        options: the user's settings.
    """

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self.steady = 1.0
        """Learning-rate factor that controllers asked for."""
        self.scaled = 1.0
        """Factor of the current batch, for few survivors."""
        self.tight = 0
        """How often the learning rate is halved because of alarms."""
        self.tight_beta = 0
        """How often beta is doubled because of alarms."""
        self.alarmed = 0
        """Alarmed inspections in a row."""
        self.told = 1.0
        """Learning-rate factor that the trainer was last told."""

    @property
    def lr_factor(self) -> float:
        """The learning-rate factor that should hold now."""
        return self.steady * 0.5**self.tight * self.scaled

    def survivors(self, teaching: int, groups: int) -> tuple[str, Action | None]:
        """Scale or skip the step of this batch.

        Args:
            teaching: groups admitted with rewards that differ.
            groups: groups of the batch.

        Returns:
            The reason when the learning rate is scaled (else ""), and the action that skips the step, if any.
        """
        self.scaled = 1.0
        if not groups or teaching >= self._options.survivors * groups:
            return "", None
        reason = f"{teaching} of {groups} groups teach, under {self._options.survivors:.0%}"
        if not teaching:
            return "", Action("skip_step", "step", None, f"{reason}: momentum alone would move the weights")
        self.scaled = teaching / groups / self._options.survivors
        return reason, None

    def alarms(self, alarms: Sequence[Alarm], fresh: bool, beta: float) -> tuple[float, str, Action | None]:
        """React to one inspection.

        Args:
            alarms: what the monitors raised.
            fresh: whether there were fresh canaries; without them silence says nothing.
            beta: KL coefficient before.

        Returns:
            The KL coefficient after, the reason ("" when nothing changed), and a stop or restore action, if any.
        """
        if not alarms:
            if fresh:
                self.alarmed = 0
                return self._relax(beta)
            return beta, "", None
        self.alarmed += 1
        if self._options.on_alarm == "log":
            return beta, "", None
        reason, last = alarms[0].message, None
        if self.alarmed >= self._options.patience and self._options.then != "nothing":
            kind: Literal["stop", "restore"] = "stop" if self._options.then == "stop" else "restore"
            target = "run" if kind == "stop" else "last checkpoint without alarm"
            last = Action(kind, target, None, f"{self.alarmed} alarmed inspections in a row; {reason}")
        if self.tight + self.tight_beta >= DEEPEST:
            return beta, "", last
        if beta > 0:
            self.tight_beta += 1
            return beta * 2, reason, last
        self.tight += 1
        return beta, reason, last

    def _relax(self, beta: float) -> tuple[float, str, None]:
        """Undo one tightening."""
        reason = "canaries are back within their start's error: one tightening undone"
        if self.tight_beta:
            self.tight_beta -= 1
            return beta / 2, reason, None
        if self.tight:
            self.tight -= 1
            return beta, reason, None
        return beta, "", None

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        for name in self.state():
            setattr(self, name, state[name])
