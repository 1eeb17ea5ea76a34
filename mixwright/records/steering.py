"""Records of a training run: outcomes, alarms, actions and decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

ActionKind = Literal["refuse", "coefficient", "lr_factor", "skip_step", "stop"]


@dataclass(frozen=True, slots=True)
class ExampleOutcome:
    """What a run showed of one example; its children say what."""

    example: str
    """Example id."""
    task: str
    """Task name."""
    level: float | None
    """Level of its cell; None for a task without levels."""
    step: int
    """Optimiser step that it was drawn or generated for."""


@dataclass(frozen=True, slots=True)
class SFTOutcome(ExampleOutcome):
    """What SFT showed of one example."""

    loss: float
    """Nats per target token."""
    tokens: int
    """Target tokens."""


@dataclass(frozen=True, slots=True)
class GroupOutcome(ExampleOutcome):
    """What GRPO showed of one prompt: its whole group of completions."""

    rewards: tuple[float, ...]
    """One per completion, true (never permuted), weighted sum of the reward functions."""
    answers: tuple[str, ...] = ()
    """Final answer of each completion, normalised and bounded (`mixwright.final_answer`); empty when the trainer did not
    say."""
    successes: tuple[float, ...] = ()
    """Each reward as success, from wrong (0) to right (1), clipped; empty until steering has read the group."""

    @property
    def no_signal(self) -> bool:
        """All rewards equal: every advantage is zero (with weighted sums normalised, which is TRL's default)."""
        return max(self.rewards) - min(self.rewards) < 1e-9


@dataclass(frozen=True, slots=True)
class PairOutcome(ExampleOutcome):
    """What DPO showed of one preference pair."""

    chosen_logprob: float
    """Sum over tokens, nats."""
    rejected_logprob: float
    """Sum over tokens, nats."""
    chosen_reference: float = 0.0
    """The same of the reference model; 0 where there is none."""
    rejected_reference: float = 0.0
    """The same of the reference model; 0 where there is none."""
    beta: float = 1.0
    """DPO's loss temperature; read, never moved."""

    @property
    def chosen_logratio(self) -> float:
        """Log-probability of the chosen completion above the reference's, nats."""
        return self.chosen_logprob - self.chosen_reference

    @property
    def rejected_logratio(self) -> float:
        """Log-probability of the rejected completion above the reference's, nats."""
        return self.rejected_logprob - self.rejected_reference

    @property
    def margin(self) -> float:
        """Difference of implicit rewards: beta x (chosen - rejected log-ratio), as DPO's sigmoid loss reads it."""
        return self.beta * (self.chosen_logratio - self.rejected_logratio)


@dataclass(frozen=True, slots=True)
class Signals:
    """What a controller or monitor may look at, besides outcomes: the step's own numbers."""

    step: int
    """Optimiser step that these numbers are of."""
    beta: float = 0.0
    """Current KL coefficient of the trainer."""
    kl_nats: float | None = None
    """Mean KL per token, from the trainer; None where it measures none (beta 0)."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a monitor saw."""

    monitor: str
    """Name of the monitor."""
    step: int
    """Optimiser step at which it was raised."""
    task: str | None
    """Task it is about; None when it is about the whole run."""
    value: float
    """What the monitor measured, in its own unit (the `Unit:` line of its docstring)."""
    threshold: float
    """Limit that `value` passed, in the same unit; the monitor says on which side."""
    message: str
    """One sentence with the numbers."""


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done; a closed list of kinds, executed by trainers/."""

    kind: ActionKind
    """Which of the closed list."""
    target: str
    """What it acts on: `beta`, `lr`, an example id (refuse)."""
    value: float | None
    """The new value, where there is one."""
    because: str
    """One sentence with the numbers."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One logged change: a line of decisions.jsonl."""

    step: int
    """Optimiser step from which it holds."""
    what: str
    """`lr_factor`, `beta`, `refuse.lcm@3`, `alarm.displacement` ..."""
    old: Any
    """Value before the change; None where there was none. JSON value."""
    new: Any
    """Value after the change; None where there is none. JSON value."""
    because: str
    """One sentence with the numbers."""
