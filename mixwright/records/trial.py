"""Records of a run as a whole: its manifest and its trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ChangeWord = Literal["improves", "worsens", "commonest", "less dependent", "sharper", "no change", "cannot tell"]
"""What a change may be called (`estimates/judgement.py`):

- improves: success rose, and D, what of it depends on the prompt, rose too.
- worsens: success fell.
- commonest: success and S, what the same answers earn on other prompts, rose: the commonest answer is given more often.
- less dependent: D fell, success is not shown to.
- sharper: sampled success and its D rose, success under the declared decoding did not.
- no change: the whole interval lies within the margin.
- cannot tell: none of these is shown.
"""
LeverWord = Literal["helps", "harms", "no change", "cannot tell"]
SelectionAdvice = Literal["train on it", "fewer rows do", "keep all rows", "not recommended", "too few seeds", "cannot tell"]
Proof = Literal["not tried", "beats its nulls", "does not beat its nulls"]


@dataclass(frozen=True, slots=True)
class RunManifest:
    """What has to be known to read or repeat a run."""

    seeds: Mapping[str, int]
    """By purpose; `trial_seed_count` is how many seeds each arm of a trial has."""
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
    """The estimate, in the unit of what it is about."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    n: int
    """Seeds (or items) it rests on."""


@dataclass(frozen=True, slots=True)
class SeedRow:
    """One arm, one seed, one number: the raw rows under every interval."""

    arm: str
    """Name of the arm."""
    seed: int
    """Training seed, 0-based; arms are paired by it."""
    name: str
    """success, swapped, dependence, success.sampled, success.items, zero_signal_share ..."""
    value: float | None
    """None: not measurable."""
    unit: str = "share"
    """share (0..1), rollouts, nats or nats per token."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One arm against another on one outcome, paired by seed and item."""

    arm: str
    """Name of the arm."""
    against: str
    """Name of the arm it is compared with."""
    name: str
    """success (the declared decoding, mean over tasks: the primary outcome), success.sampled, success.items ...; where
    nothing is graded loss or preference is the primary one."""
    difference: Interval
    """arm minus reference, 95 %, over seeds x items (numbers without items: over seeds)."""
    word: ChangeWord | None
    """What the change may be called; None for what stands beside the primary outcome and is not judged."""
    p: float = 1.0
    """Two-sided, corrected by Holm over the lever's contrasts with its references; of what is not judged the plain one."""
    items: int = 0
    """Held-out items behind it; 0 for numbers without items."""
    detectable: float = 0.0
    """Size of a true difference that such a trial would see in 80 % of cases."""
    swapped: Interval | None = None
    """Change of S, the success of the cell's own answers on other prompts; None for numbers without items."""
    dependence: Interval | None = None
    """Change of D = success - S."""
    sampled: Interval | None = None
    """Change of sampled success; None where that is the outcome itself."""
    task: str = ""
    """Task that it is about; empty for all of them."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a trial says of one lever, over all held-out items."""

    arm: str
    """Name of the lever."""
    word: LeverWord
    """helps: improves the primary outcome against not training, uniform and equal shares, each."""
    because: str
    """The contrast that decided, with its numbers."""
    missing: tuple[str, ...] = ()
    """References that did not run: without them nothing helps."""
    proof: Proof = "not tried"
    """Nulls run only for a lever that helps; against each of them it must improve again."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a trial over data says of mined rows."""

    name: str
    """Of their table."""
    advice: SelectionAdvice
    """train on it: beats as many random rows, all rows and not training. fewer rows do: beats random rows and not training,
    and is within the margin of all rows. not recommended: among others, its interval against random rows includes 0."""
    sentence: str
    """For people, with the contrasts that decided."""
    rows: int
    """Mined rows."""
    of: int
    """Training rows of the corpus."""
    made: bool
    """Whether they are new rows."""
    trained_on: Mapping[str, float]
    """Arm -> what one branch was trained on, mean over seeds: target tokens (SFT, DPO) or rollouts (GRPO)."""
    price: str
    """What the answer cost, in words."""
    simple_rule_does: bool = False
    """Whether they beat random rows and all rows, but not the simple rule with the same knowledge."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Arms x seeds, paired differences, judgements, and all rollouts charged."""

    arms: tuple[str, ...]
    """All arms that ran, by name."""
    references: tuple[str, ...]
    """Which of the arms a lever must beat: frozen, uniform, equal_shares."""
    nulls: tuple[str, ...]
    """Which of the arms are nulls."""
    seeds: tuple[int, ...]
    """Training seeds, the same for every arm."""
    rows: tuple[SeedRow, ...]
    """Raw numbers: one row per arm, seed and number."""
    effects: tuple[Effect, ...]
    """Paired differences of arms."""
    judgements: tuple[Judgement, ...]
    """One per lever."""
    rollouts: Mapping[str, int]
    """Charged per arm, measuring included."""
    decoding: Literal["greedy", "sampled", "loss", "preference", "margin"] = "greedy"
    """What the primary outcome is read from: success under a decoding, or where nothing is graded held-out loss or
    preference accuracy."""
    margin: float = 0.05
    """Change that does not matter."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers has to know, one sentence each."""
    selection: Selection | None = None
    """Of a trial over data, what it says of the mined rows."""
    by_task: tuple[Effect, ...] = ()
    """Levers against references in each task, on the primary outcome and on what else is read of held-out rows. They are not
    judged."""
