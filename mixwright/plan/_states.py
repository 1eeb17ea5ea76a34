"""What a cell's success says about it: success above luck, and the five states that plan and steer share."""

from __future__ import annotations

from mixwright.records import CellState

LEAST_EVIDENCE = 32
"""Graded rollouts below which a cell is unknown: with none right out of 32 the 95 % interval still reaches 11 %."""

ABOVE_LUCK = 0.02
"""Success above luck that the lower end of an interval must exceed before a cell counts as able to do something."""

FEW = 64
"""Examples at which a cell counts half: fewer would be drawn again and again, and learnt by heart."""


def above_luck(success: float, luck: float) -> float:
    """Share of the room above luck that is used: (success - luck) / (1 - luck). Negative when worse than luck.

    Args:
        success: share of right answers, 0..1.
        luck: share that is right without the skill, 0..1; 1 leaves no room, and the result is 0.
    """
    return 0.0 if luck >= 1 else (success - luck) / (1 - luck)


def classify(
    success: float, low: float, high: float, luck: float, n: float, band: tuple[float, float] = (0.1, 0.9)
) -> CellState:
    """The state of a cell.

    In this order: `unknown` with fewer than `LEAST_EVIDENCE` rollouts; `mastered` when success above luck is at or over the
    band; `reachable` when the interval of success above luck lies over `ABOVE_LUCK`; `unknown` when the estimate lies in the
    band but its interval does not exclude luck; then, below the band: `lucky` when the cell is right sometimes (interval of
    plain success over `ABOVE_LUCK`) yet not shown to be right more often than luck; else `hopeless`.

    Args:
        success: share of right answers, 0..1.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        luck: luck of the cell, 0..1.
        n: rollouts behind it.
        band: success above luck to aim for.
    """
    if n < LEAST_EVIDENCE or not low <= success <= high:
        return "unknown"
    if above_luck(success, luck) >= band[1]:
        return "mastered"
    if above_luck(low, luck) > ABOVE_LUCK:
        return "reachable"
    if above_luck(success, luck) >= band[0]:
        return "unknown"
    return "lucky" if low > ABOVE_LUCK else "hopeless"
