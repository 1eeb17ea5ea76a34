"""Records of a finding of the laboratory: what it expects, written before the run, and what its plots show."""

from __future__ import annotations

from dataclasses import dataclass


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
