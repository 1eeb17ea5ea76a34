"""What a training run shows, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

ActionKind = Literal["weights", "refuse", "coefficient", "lr_factor", "skip_step", "replay", "stop", "restore"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What SFT showed of one example."""

    example: str
    task: str
    level: float | None
    step: int
    loss: float
    """Nats per target token."""
    tokens: int
    """Target tokens."""


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What GRPO showed of one prompt: its whole group of completions."""

    example: str
    """Example id."""
    task: str
    level: float | None
    step: int
    """Optimiser step the group was generated for."""
    rewards: tuple[float, ...]
    """One per completion, true (never permuted), weighted sum of the reward functions."""
    lengths: tuple[int, ...] = ()
    """Completion tokens."""
    formats: tuple[str, ...] = ()
    """Answer skeleton of each completion."""
    entropy: float | None = None
    """Mean token entropy in nats, where the trainer shows it."""

    @property
    def no_signal(self) -> bool:
        """All rewards equal: every advantage is zero."""
        return max(self.rewards) - min(self.rewards) < 1e-9


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """What DPO showed of one preference pair."""

    example: str
    task: str
    level: float | None
    step: int
    loss: float
    """Nats."""
    chosen_logprob: float
    """Sum over tokens, nats."""
    rejected_logprob: float
    """Sum over tokens, nats."""


@dataclass(frozen=True, slots=True)
class CanaryOutcome:
    """What the model made of one fixed item that it could do before the run."""

    example: str
    task: str
    level: float | None
    step: int
    success: float
    """Graded greedy answer, 0..1."""
    kl_nats: float | None = None
    """KL(start || now) per token on the start model's own completion of the item."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What a controller or monitor may look at, besides outcomes: the step's own numbers."""

    step: int
    beta: float = 0.0
    """Current KL coefficient of the trainer."""
    lr_factor: float = 1.0
    """Current factor on the scheduled learning rate."""
    kl_nats: float | None = None
    """Mean KL per token, from the trainer (beta > 0) or from the canaries."""
    entropy: float | None = None
    """Mean token entropy, nats."""
    groups: int = 0
    """Groups seen in this generation batch."""
    refused: int = 0
    """Groups refused in it."""
    canaries: tuple[CanaryOutcome, ...] = ()
    """Fresh canary results; empty in most steps."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a monitor saw."""

    monitor: str
    step: int
    task: str | None
    value: float
    threshold: float
    message: str
    """One sentence with the numbers."""


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done; a closed list of kinds, executed by trainers/."""

    kind: ActionKind
    target: str
    """What it acts on: `beta`, `lr`, an example id (refuse), a task (weights, replay), a checkpoint (restore)."""
    value: float | None
    """The new value, where there is one."""
    because: str
    """One sentence with the numbers."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One logged change: a line of decisions.jsonl."""

    step: int
    what: str
    """`weights.gcd`, `beta`, `refuse.lcm@3`, `alarm.canary` ..."""
    old: Any
    new: Any
    because: str
