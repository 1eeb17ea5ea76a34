"""Words and numbers about a run and the arms of its trial that several sections share."""

from __future__ import annotations

from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import Effect, TrialResult
from mixwright.verdict.page.text import NO_VALUE_SIGN, format_change, format_count


def describe_run(name: str, result: TrialResult | None) -> str:
    """Return what run a page is of: its folder's name, and the size of its trial."""
    if not result:
        return name
    return f"{name} · trial of {format_count(len(result.arms), 'arm')} over {format_count(len(result.seeds), 'seed')}"


def effect_word(result: TrialResult, effect: Effect) -> str:
    """What a change may be called, for people; a dash for what stands beside the primary outcome and is not judged."""
    return NO_VALUE_SIGN if effect.word is None else format_word(effect.word, result.margin, result.decoding)


def format_outcome(outcome: Outcome) -> str:
    """`success, greedy, all held-out items, mean over tasks`."""
    decoding_text = f", {outcome}" if outcome in GRADED_OUTCOMES else ""
    return f"{READINGS[outcome].title}{decoding_text}, all held-out items, mean over tasks"


def unit_of(result: TrialResult, effect: Effect) -> str:
    """Unit of an effect's difference: that of its rows, else a share."""
    return next((row.unit for row in result.rows if row.name == effect.name), "share")


def format_effect(result: TrialResult, effect: Effect) -> str:
    """The difference with its interval, in its unit."""
    return format_change(effect.difference, unit_of(result, effect))


def seed_differences(result: TrialResult, name: str, arm: str, against: str) -> tuple[float, ...]:
    """Arm minus reference in one number, one per seed that has both."""
    values = {(row.arm, row.seed): row.value for row in result.rows if row.name == name}
    pairs = [(values.get((arm, seed)), values.get((against, seed))) for seed in result.seeds]
    return tuple(of_arm - of_reference for of_arm, of_reference in pairs if of_arm is not None and of_reference is not None)
