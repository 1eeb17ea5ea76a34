"""Contracts of the laboratory's two kinds of plug-ins, findings and worlds, and the records of what a finding expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mixwright.records import Example


@dataclass(frozen=True, slots=True)
class Term:
    """One reading of one arm, with its weight in a contrast."""

    arm: str
    """Arm that was run."""
    reading: str
    """Number that the arm gave."""
    weight: float = 1.0
    """Factor of the reading."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A contrast that a claim expects to be above 0: a weighted sum of readings, formed within each seed."""

    name: str
    """The contrast in words, as a difference: "hard only - before, known problems"."""
    terms: tuple[Term, ...]
    """What is added up; written so that the claim says "above 0"."""
    least: float
    """Least size, above 0, that the claim is worth; fixed before the run."""
    refuted: str
    """What would refute it, one sentence."""
    unit: str = "points"
    """`points` for a difference of shares (0.1 is shown as 10), else the name of the unit that stands as it is."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot: a reading of an arm at each place."""

    name: str
    """In the legend."""
    places: tuple[tuple[float, str, str], ...]
    """(place, arm, reading), places ascending."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Shares over something that arms differ in, with intervals over seeds."""

    caption: str
    """Heading."""
    x: str
    """Name and unit of the horizontal axis."""
    y: str
    """Name of the vertical axis, a share."""
    curves: tuple[Curve, ...]
    """At most four."""


def difference(arm: str, against: str, reading: str) -> tuple[Term, Term]:
    """Terms of "arm minus the other", of one reading."""
    return Term(arm, reading), Term(against, reading, -1.0)


class World(ABC):
    """A generated task family with a known ground truth."""

    @abstractmethod
    def make(self, index: int, level: float, split: str) -> Example:
        """The example at that index: random access, same arguments same example, splits never share a prompt."""


class Finding(ABC):
    """One published claim, re-run on tiny models from scratch; what it expects is written before the run.

    The laboratory runs each arm with each seed in a process of its own, forms the contrasts of `EXPECT` within seeds, and
    decides the word; a finding only trains and measures.
    """

    CLAIM: ClassVar[str] = ""
    """The claim as it is tested here, one sentence."""
    SOURCE: ClassVar[str] = ""
    """Paper: first author, title, number."""
    WHAT_IT_SHOWS: ClassVar[str] = ""
    """What the source itself shows, with its figures."""
    POPULAR_READING: ClassVar[str] = ""
    """What the popular version says, and where it goes beyond the source."""
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Plug-ins of Mixwright that rest on the claim, "kind/name" -> the contrasts that judge it, by their names in `EXPECT`;
    with "-" in front where the plug-in is what is subtracted. Written out: `mixwright explain` reads the source."""
    EXPECT: ClassVar[tuple[Expectation, ...]] = ()
    """Contrasts that the claim says are above 0."""
    PRIMARY: ClassVar[str] = ""
    """Contrast of the source that gives the word, by its name in `EXPECT`."""
    PUBLISHED: ClassVar[tuple[str, ...]] = ()
    """Other contrasts of the source, by their names; those that are left are ours, and do not change the word."""
    CONTROL: ClassVar[str] = ""
    """Contrast that holds wherever the claim could be shown, by its name; empty without one."""
    RUN_TWICE: ClassVar[tuple[str, ...]] = ()
    """Arms that are run twice, with other seeds of their training: what two runs of one differ by is the noise floor of the
    contrasts of its readings; the first that has them all counts."""
    SCALES: ClassVar[Mapping[str, Any]] = {}
    """Settings of `smoke` (seconds) and `laptop` (minutes), each a frozen dataclass."""
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 5}
    """Paired seeds of each scale."""
    PLOTS: ClassVar[tuple[Plot, ...]] = ()
    """Drawn from the readings."""
    REAL: ClassVar[str] = ""
    """What came of the claim on a real model, with the study that has the figure; empty where none has tried it."""
    REMARKS: ClassVar[str] = ""
    """Why the result differs from its source, and other remarks: written after the run, may be edited without a new one."""

    @abstractmethod
    def arms(self, settings: Any) -> tuple[str, ...]:
        """Every arm of that scale, nulls included."""

    @abstractmethod
    def run(self, arm: str, seed: int, settings: Any, *, again: bool = False) -> Mapping[str, float]:
        """Readings of one arm: train it from the starting point of the seed, and measure it.

        Args:
            arm: one of `arms`.
            seed: of the world, of the starting point and of the training; arms of one seed share the first two.
            settings: of the scale.
            again: train with another seed, on the same world and from the same starting point.
        """

    def prepare(self, seed: int, settings: Any) -> None:  # noqa: B027
        """What the arms of a seed share, such as a starting model that is kept on disk; done once before they start."""
