"""Rows that a miner chose or made."""

from __future__ import annotations

from dataclasses import dataclass

from mixwright.records.corpus import Example


@dataclass(frozen=True, slots=True)
class MinedRow:
    """A training row that was chosen."""

    id: str
    """Of the example in the corpus."""
    weight: float
    """Above 0, relative to the other rows of its task."""
    reason: str
    """One sentence: what speaks for it."""


@dataclass(frozen=True, slots=True)
class MiningResult:
    """What a miner found: chosen rows, or new ones."""

    miner: str
    """Name of the plug-in."""
    rows: tuple[MinedRow, ...] = ()
    """Chosen training rows; empty where new rows are made."""
    new_rows: tuple[Example, ...] = ()
    """New rows; `extra` has `parents` (ids of the examples they come from) and `provenance` (one sentence)."""
    null_rows: tuple[Example, ...] = ()
    """As many new rows made without what the miner knows; empty where random rows of the corpus are the null."""
    simple_rule_rows: tuple[MinedRow, ...] = ()
    """Rows that the simplest rule with the same knowledge takes; empty where that rule is all rows or random ones."""
    simple_rule_description: str = ""
    """What that rule is, in words that follow "against"."""
    rollouts: int = 0
    """Completions that were sampled for it, which are charged."""
    harmful: tuple[MinedRow, ...] = ()
    """Training rows that speak against a protected task; weights say how much."""
    notes: tuple[str, ...] = ()
    """What a reader has to know before it is used; one sentence each."""
