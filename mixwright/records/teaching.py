"""What short trainings on the rows of one group showed: of the group itself, and of all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mixwright.records.trial import Interval

TeachingWord = Literal["known already", "skill", "facts", "format only", "nothing", "not graded", "cannot tell"]
"""What rows teach. `skill`: items that were not trained on rise. `facts`: trained items rise, others do not. `format only`:
the same rows with their answers dealt out among them raise success as much."""


@dataclass(frozen=True, slots=True)
class Taught:
    """What rows of one group taught; success is a share of items, and changes are after minus before training."""

    group: str
    """Its name: a task, or the value of another column."""
    word: TeachingWord
    """What it comes to."""
    rows: int
    """Distinct rows of a training."""
    items: int
    """Items of the group that were not trained on."""
    trainings: int
    """Trainings on true rows; as many were on dealt-out ones."""
    before: float | None
    """Success before, on items that are not trained on; None where nothing is graded."""
    unseen: Interval | None
    """Change on them."""
    over_dealt: Interval | None
    """The same minus the change by dealt-out rows."""
    trained: Interval | None
    """Change on the trained rows."""
    trained_over_dealt: Interval | None
    """The same minus the change by dealt-out rows."""


@dataclass(frozen=True, slots=True)
class Pull:
    """What training on one group did to another one."""

    trained_on: str
    """The group that was trained on."""
    read_on: str
    """The other one."""
    change: Interval
    """Change of success; a share of items."""
    shown: bool
    """Whether it is beyond chance among all pairs that were looked at (Holm)."""


@dataclass(frozen=True, slots=True)
class Teaching:
    """All groups, and all pairs of them."""

    steps: int
    """Steps of a training."""
    batch: int
    """Rows of a step."""
    taught: tuple[Taught, ...]
    """In the order of the groups' rows, most first."""
    pulls: tuple[Pull, ...]
    """Pairs of different groups, the largest loss first."""
    left_out: tuple[str, ...] = ()
    """Groups that were not trained on, for want of time or of rows."""
