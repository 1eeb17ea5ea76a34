"""Words and numbers about arms that several sections share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.estimates.intervals import mean_interval
from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import Effect, Interval, TrialResult
from mixwright.verdict.text import NO_VALUE_SIGN, change, format_interval

RATIO_SUFFIX = ".ratio"
"""End of the names of effects that are ratios, arm over reference."""
OUTCOME_WORDS = ("success", "swapped", "dependence", "start", "gain")
"""First words of numbers that say what was learnt; of the shares, the others say what was drawn."""


def primary_effect_name(result: TrialResult) -> str:
    """Name of the effects on the primary outcome."""
    return READINGS[result.decoding].name


def effect_of(result: TrialResult, arm: str, against: str, name: str = "") -> Effect | None:
    """One effect, if the trial has it; without a name that on the primary outcome."""
    name = name or primary_effect_name(result)
    return next((e for e in result.effects if (e.arm, e.against, e.name) == (arm, against, name)), None)


def effect_word(result: TrialResult, effect: Effect) -> str:
    """What a change may be called, for people; a dash for what stands beside the primary outcome and is not judged."""
    return NO_VALUE_SIGN if effect.word is None else format_word(effect.word, result.margin, result.decoding)


def format_outcome(outcome: Outcome) -> str:
    """`success, greedy, all held-out items, mean over tasks`."""
    how = f", {outcome}" if outcome in GRADED_OUTCOMES else ""
    return f"{READINGS[outcome].title}{how}, all held-out items, mean over tasks"


def format_change(found: Interval | None, unit: str = "share") -> str:
    """`+4.2 [+1.0, +7.4]` in its unit, shares in points; a dash for what was not measured."""
    return NO_VALUE_SIGN if found is None else f"{change(found.value, unit)} {format_interval(found, unit)}"


def unit_of(result: TrialResult, effect: Effect) -> str:
    """Unit of an effect's difference: `ratio`, or that of its rows, else a share."""
    if effect.name.endswith(RATIO_SUFFIX):
        return "ratio"
    return next((row.unit for row in result.rows if row.name == effect.name), "share")


def format_effect(result: TrialResult, effect: Effect) -> str:
    """The difference with its interval, in its unit."""
    unit, found = unit_of(result, effect), effect.difference
    if unit == "ratio":
        return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
    return format_change(found, unit) if found.n else NO_VALUE_SIGN


def join_words(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def differences(result: TrialResult, name: str, arm: str, against: str) -> tuple[float, ...]:
    """Arm minus reference in one number, one per seed that has both."""
    values = {(row.arm, row.seed): row.value for row in result.rows if row.name == name}
    both = [(values.get((arm, seed)), values.get((against, seed))) for seed in result.seeds]
    return tuple(a - b for a, b in both if a is not None and b is not None)


def over_seeds(values: Sequence[float]) -> Interval | None:
    """Mean with its t interval over seeds; None for fewer than two, which have none."""
    return mean_interval(np.array(values)) if len(values) > 1 else None
