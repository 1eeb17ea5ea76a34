"""Advice that a page may begin with, and the words that its sentences share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mixwright.records import Claim
from mixwright.verdict.arm_words import join_words
from mixwright.verdict.text import level, points

Advice = Literal[
    "check the grader", "none right", "too few seeds", "stop", "do not train", "mined rows", "train", "train with losses",
    "equal shares", "keep uniform", "no gain", "not this plan", "missing", "do not ship", "ship", "may replace",
    "unjudged", "gate", "cannot tell",
]  # fmt: skip
NONE_RIGHT_SENTENCE = "Cannot tell: no answer was right before or after by the declared decoding, only samples were."


def format_amount(value: float, unit: str) -> str:
    """The size of a difference in its unit, without it: shares in points."""
    return points(abs(value)).lstrip("+").removesuffix(".0") if unit == "share" else f"{abs(value):.3g}"


def better_or_worse(*, lower: bool, by: float = 1.0) -> str:
    """How the outcome moved: `better` or `worse`, and of what should fall `lower` or `higher`.

    Args:
        lower: whether a lower value of the outcome is better.
        by: the move; at least 0 where it is better.
    """
    up, down = ("lower", "higher") if lower else ("better", "worse")
    return up if by >= 0 else down


def with_verb(names: Sequence[str]) -> str:
    """`gcd is`, `gcd and lcm are`."""
    return f"{join_words(names)} {'is' if len(names) == 1 else 'are'}"


def format_cell(claim: Claim) -> str:
    """`products level 1`, or `task products`."""
    return f"task {claim.task}" if claim.level is None else f"{claim.task} {level(claim.level)}"
