"""Words and numbers about arms that several sections share."""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.records import Effect, TrialResult
from mixwright.verdict._blocks import Tone
from mixwright.verdict._text import between, change, name_of

START = "start"
"""In `Effect.against`: the arm's own starting model."""
JUDGED = (
    "teaching_share",
    "zero_signal_share",
    "success.reachable",
    "success.mastered",
    "success.all",
    "rollouts_to_target",
    "first_to_target",
)
"""Numbers that the headline speaks of, most important first: where an effect is good or bad for everybody."""
TONES: dict[str, Tone] = {"helps": "good", "harms": "bad", "inconclusive": "plain", "no measurable effect": "plain"}


def unit_of(result: TrialResult, effect: Effect) -> str:
    """Unit of an effect's difference: that of its rows, or a share where the difference is one (who was first)."""
    units = {row.unit for row in result.rows if row.name == effect.name}
    within = max(abs(effect.difference.low), abs(effect.difference.high), abs(effect.noise_floor)) <= 1
    return "share" if within or "share" in units else next(iter(sorted(units)), "share")


def in_words(result: TrialResult, effect: Effect) -> str:
    """`zero-signal share +21 [+16, +26]`, with a true minus sign below 0."""
    unit = unit_of(result, effect)
    difference = effect.difference
    return f"{name_of(effect.name)} {change(difference.value, unit)} {between(difference.low, difference.high, unit)}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def judged(effects: Sequence[Effect]) -> list[Effect]:
    """The effects that the headline speaks of, in its order; all of them when none has such a name."""
    found = [effect for name in JUDGED for effect in effects if effect.name == name]
    return found or list(effects)


def differences(result: TrialResult, effect: Effect) -> tuple[float, ...]:
    """Arm minus reference, one per seed that both finished; empty when the rows do not hold both."""
    values = {(row.arm, row.name, row.seed): row.value for row in result.rows}
    reference = (effect.against, effect.name)
    if effect.against == START:
        reference = (effect.arm, effect.name.replace("success.", "start."))
    both = [(values.get((effect.arm, effect.name, seed)), values.get((*reference, seed))) for seed in result.seeds]
    return tuple(a - b for a, b in both if a is not None and b is not None)
