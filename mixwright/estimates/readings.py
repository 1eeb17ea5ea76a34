"""Readings of the primary outcome: success where answers are graded, else held-out loss or preference accuracy.

What is not graded is never called success: each reading has its own name, unit and direction.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from mixwright.estimates.crossed import Estimate
from mixwright.records import Interval

Decoding = Literal["greedy", "sampled"]
Outcome = Literal["greedy", "sampled", "loss", "preference", "margin"]
"""What a primary outcome is read from: graded answers under a decoding, held-out loss, or held-out preferences. Margin and
gold never are primary: they stand beside preference accuracy and success."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to say how good a model is."""

    name: str
    """Of its effects and seed rows."""
    probe: str
    """Probe that measures it."""
    column: str
    """Name of its measurement of single items."""
    title: str
    """For people."""
    unit: str = "share"
    """share (0..1) or nats per token."""
    sign: int = 1
    """-1 where lower is better."""

    def turned(self, interval: Interval) -> Interval:
        """A measured difference so that above 0 is better, and back."""
        return interval if self.sign > 0 else Interval(-interval.value, -interval.high, -interval.low, interval.n)


READINGS: dict[Outcome, Reading] = {
    "greedy": Reading("success", "competence", "greedy", "success"),
    "sampled": Reading("success", "competence", "pass@1", "success"),
    "preference": Reading("preference", "preference", "preference", "held-out preference accuracy"),
    "loss": Reading("loss", "held_out_loss", "loss", "held-out loss", "nats per token", -1),
    "margin": Reading("margin", "preference", "margin", "margin of chosen over rejected", "nats"),
}
GRADED_OUTCOMES = ("greedy", "sampled")


def outcome_of(probes: Collection[str], decoding: Decoding) -> Outcome | None:
    """What the primary outcome of a run with these probes is read from, success first; None where nothing measures one."""
    if READINGS[decoding].probe in probes:
        return decoding
    return next((name for name in ("preference", "loss") if READINGS[name].probe in probes), None)


def format_difference(value: float, unit: str) -> str:
    """A difference with its sign in its unit, without the unit: shares in points."""
    return f"{100 * value:+.1f}" if unit == "share" else f"{value:+.3g}"


def format_unit(unit: str) -> str:
    """What differences in that unit are called."""
    return "points" if unit == "share" else unit


def as_measured(estimate: Estimate, outcome: Outcome) -> Interval:
    """The change as a record in the unit and direction of the measurement: a loss that fell is below 0."""
    return READINGS[outcome].turned(estimate.interval)


def format_change(estimate: Estimate, outcome: Outcome) -> str:
    """`-0.33 nats per token [-0.41, -0.25]`, `+4.2 points [+1.0, +7.4]`."""
    interval, unit = as_measured(estimate, outcome), READINGS[outcome].unit
    ends = f"[{format_difference(interval.low, unit)}, {format_difference(interval.high, unit)}]"
    return f"{format_difference(interval.value, unit)} {format_unit(unit)} {ends}"
