"""Records of measurements, and of the plan that is made from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from mixwright.errors import InputError
from mixwright.records.corpus import cell_key
from mixwright.records.serial import from_data

Objective = Literal["sft", "grpo", "dpo"]
TRAINING_ONLY_FIELDS = ("learning_rate", "expected", "rehearse")
"""Fields of a stage that steering does not read."""
CellState = Literal["unknown", "mastered", "reachable", "hopeless", "lucky"]

ROUNDING_TOLERANCE = 1e-9
"""Numbers that are this near are one: an estimate may leave its interval by it."""
Share = Annotated[float, Ge(-ROUNDING_TOLERANCE), Le(1 + ROUNDING_TOLERANCE)]
"""A share of 0 to 1."""
Count = Annotated[int, Ge(0)]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number about what the model does now; long format, one row each."""

    probe: str
    """Name of the probe."""
    task: str
    """Task name; `*` for all."""
    name: str
    """What was measured (greedy, pass@1, pass@1.dependence, pass@8, entropy, ...)."""
    value: float
    """The estimate; NaN is refused."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    n: int
    """How many samples, items or tokens it rests on."""
    unit: str
    """share, nats per token, characters ..."""
    level: float | None = None
    """Level of the cell; None for a task without levels or for the whole task."""
    null: float | None = None
    """The same number under the null (chance level for success, 0 for dependence and drift)."""
    null_of: str = ""
    """What the null is."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value + self.low + self.high + (self.level or 0) + (self.null or 0)):
            raise ValueError(f"{self.probe}.{self.name} of {self.task}: a number that is not finite")
        if not self.low - ROUNDING_TOLERANCE <= self.value <= self.high + ROUNDING_TOLERANCE:
            problem = f"{self.value} is not within its interval, {self.low} to {self.high}"
            raise ValueError(f"{self.probe}.{self.name} of {self.task}: {problem}")


@dataclass(frozen=True, slots=True)
class CellAssessment:
    """What the plan thinks of one cell: success, and how much of it depends on the prompt."""

    task: str
    """Task name."""
    level: float | None
    """Level."""
    state: CellState
    """mastered, hopeless (success over, under the band), lucky (shown not to depend on the prompt), reachable or unknown."""
    success: Share | None
    """Measured pass@1, 0..1; None when it was not measured."""
    chance: Share
    """Chance level of the cell, 0..1."""
    n: Count
    """Graded samples behind `success`."""
    examples: Count
    """Training examples in the cell."""
    low: float | None = None
    """Lower end of the 95 % interval of `success`; None when it is not known."""
    high: float | None = None
    """Upper end of it."""

    learnability: Share | None = None
    """Variance of a 0/1 reward within one prompt, 0..0.25; None when it was not measured."""
    swapped: float | None = None
    """S, success of the cell's own sampled answers on other prompts, 0..1; None when it was not measured."""
    kappa: float | None = None
    """(success - S) / (1 - S), -1..1."""
    kappa_high: float | None = None
    """Upper end of its 95 % interval: under 0.10 the cell is lucky."""
    p: Share | None = None
    """Of the permutation test that answers depend on their prompts."""

    @property
    def key(self) -> str:
        """`task@level`."""
        return cell_key(self.task, self.level)


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """Training that a plan is made for, as the settings have it."""

    steps: int
    """Optimiser steps."""
    objective: Objective = "grpo"
    """Which trainer runs it."""
    batch: int = 8
    """Prompts (GRPO), rows (SFT) or pairs (DPO) per optimiser step."""
    kl_penalty: bool = True
    """Whether the trainer's KL coefficient is above 0; DPO's beta is another thing."""
    generations: int = 8
    """Completions per prompt (GRPO)."""


@dataclass(frozen=True)
class EngineOptions:
    """Options of the engine: what `options.engine` of a stage may say."""

    reward_range: tuple[float, float] = (0.0, 1.0)
    """Reward of a wrong and of a right answer; rewards are mapped to 0..1 by it and clipped."""
    min_informative_share: float = 0.25
    """Share of informative groups (admitted, rewards differ) below which the step is scaled, 0..1; 0 turns the rule off. It
    needs a gate."""
    on_alarm: Literal["log", "stop"] = "log"
    """Reaction to an alarm. log: it is only written down. stop: training ends."""

    def __post_init__(self) -> None:
        low, high = self.reward_range
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError("a reward_range of two finite numbers, low < high", repr(self.reward_range), "Correct it.")
        if not 0 <= self.min_informative_share <= 1:
            raise InputError("min_informative_share between 0 and 1", repr(self.min_informative_share), "Correct it.")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stretch of training under one objective. Everything in it may be edited by hand."""

    name: str
    """Unique in the plan."""
    objective: Objective
    """Which trainer runs it."""
    steps: int
    """Optimiser steps."""
    weights: Mapping[str, float]
    """Share of draws per task; sums to 1."""
    band: tuple[float, float] = (0.1, 0.9)
    """Success to aim for: (low, high), 0..1."""
    selector: str = "uniform"
    """Selector that picks items within a task."""
    gates: tuple[str, ...] = ()
    """Gates that may refuse a group; all must admit."""
    controllers: tuple[str, ...] = ()
    """Controllers of coefficients."""
    monitors: tuple[str, ...] = ()
    """Monitors that raise alarms."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments per plug-in, by `kind.name` (`selectors.difficulty`)."""
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Band of a task where it differs from `band`: levels of different families are not comparable."""
    learning_rate: float | None = None
    """Of this stage; None takes that of the settings."""
    expected: Mapping[str, float] = field(default_factory=dict)
    """Success of each task that is expected after this stage, 0..1, under the declared decoding; empty says nothing."""
    rehearse: tuple[str, ...] = ()
    """Tasks of which rows of `corpus.rehearse` are drawn, too; those of other tasks are not."""

    def band_of(self, task: str) -> tuple[float, float]:
        """Success to aim for in a task: (low, high)."""
        return self.bands.get(task, self.band)

    @property
    def engine(self) -> EngineOptions:
        """The engine's options, typed: "0" of a YAML file is a number. Raises InputError for those it lacks."""
        return from_data(EngineOptions, dict(self.options.get("engine", {})))


@dataclass(frozen=True, slots=True)
class Plan:
    """Weights, order, band and levers of a run, with a reason for each number."""

    planner: str
    """Name of the planner."""
    stages: tuple[Stage, ...]
    """In order."""
    cells: tuple[CellAssessment, ...] = ()
    """State of each cell when the plan was made."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Path of a number (`stages.0.weights.gcd`) -> the reason for it."""
