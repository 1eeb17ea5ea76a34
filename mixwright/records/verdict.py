"""What a run was, what a trial found, what is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

VerdictWord = Literal["helps", "no measurable effect", "harms", "inconclusive"]
ClaimKind = Literal["learnt", "damaged", "unchanged", "unmeasurable"]


@dataclass(frozen=True, slots=True)
class RunManifest:
    """What has to be known to read or repeat a run."""

    seeds: Mapping[str, int]
    """By purpose."""
    versions: Mapping[str, str]
    """python, mixwright, and the packages that matter."""
    inputs: Mapping[str, str]
    """Input name -> sha256 of its content."""
    settings: Mapping[str, Any]
    """Settings that matter: loss_type, scale_rewards, beta, learning_rate, num_generations ..."""
    parent: str = ""
    """Checkpoint the run started from."""
    command: str = ""
    """How to repeat it."""
    created: str = ""
    """ISO time, UTC."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int
    """Seeds (or items) it rests on."""


@dataclass(frozen=True, slots=True)
class SeedRow:
    """One arm, one seed, one number: the raw rows under every interval."""

    arm: str
    seed: int
    name: str
    """zero_signal_share, rollouts_to_target, success.mastered, success.reachable ..."""
    value: float | None
    """None: censored (the target was not reached) or not measurable."""
    unit: str = "share"


@dataclass(frozen=True, slots=True)
class Effect:
    """One arm against its reference on one number, paired by seed."""

    arm: str
    against: str
    name: str
    difference: Interval
    """arm minus reference, paired t over seeds."""
    noise_floor: float
    """Half-width of the difference two identical arms would show (same base, other seeds)."""
    word: VerdictWord
    better: Literal["higher", "lower"]
    censored: int = 0
    """Pairs left out because one side missed the target."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Arms x seeds, paired differences, nulls, and all rollouts charged."""

    arms: tuple[str, ...]
    nulls: tuple[str, ...]
    """Which of the arms are nulls."""
    seeds: tuple[int, ...]
    rows: tuple[SeedRow, ...]
    effects: tuple[Effect, ...]
    rollouts: Mapping[str, int]
    """Charged per arm, measuring and canaries included."""
    target: Mapping[str, float]
    """Targets fixed before the run, by name."""
    unproven: bool
    """True when a permuted arm shows a gain: then no lever of this run is proven."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What the verdict says of one task (or cell)."""

    kind: ClaimKind
    task: str
    level: float | None
    before: float
    after: float
    difference: Interval
    """after minus before."""
    evidence: str
    """What it rests on, in one sentence."""
    arm: str = ""
    """Arm of the trial it is about; empty for a plain before/after."""
    luck: float = 0.0
    """Success in the cell without the skill, 0..1."""
    adjusted_p: float | None = None
    """p value of the difference after Holm's correction over the claims of its arm; None when it was not computed."""
