"""Advice on mined rows after a trial over data: whether they beat as many random ones, and what it cost to know. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, format_change
from mixwright.records import Selection, SelectionAdvice, TrialResult
from mixwright.trial.arm_roles import MINED_ARM, RANDOM_ARM, RIGHT_ANSWERS_ARM, SIMPLE_RULE_ARM, builtin_arm
from mixwright.trial.effects import RETENTION_OUTCOME, Contrast

RECOMMENDING_ADVICE: tuple[SelectionAdvice, ...] = ("train on it", "fewer rows do")
"""Advice that recommends mined rows."""


def advise(
    name: str,
    found: Sequence[Contrast],
    *,
    rows: int,
    of: int,
    made: bool,
    costs: Mapping[str, float],
    price: str,
    rule: str = "",
    answered: bool = True,
) -> Selection:
    """What to do with mined rows: the first rule that holds decides.

    Args:
        name: of the table.
        found: contrasts of the arm `mined` with the references.
        rows: of the table.
        of: training rows of the corpus.
        made: whether they are new rows.
        costs: arm -> what a branch was trained on: target tokens (SFT, DPO) or rollouts (GRPO), mean over seeds.
        price: of the trial, in words.
        rule: what the arm `simple_rule` trains on, in words that follow "against".
        answered: whether any arm has any held-out item right; success of none compares no rows.
    """
    by = {contrast.against: contrast for contrast in found}
    chance = by.get(RANDOM_ARM)
    advice, why = _decided(by, made=made, rule=rule, answered=answered)
    what = f"{rows:,} new rows" if made else f"{rows:,} of {of:,} rows"
    head = {
        "train on it": f"Train on {name} ({what})",
        "fewer rows do": f"{name} ({what}) does as well as all rows",
        "keep all rows": f"Keep all rows, not {name} ({what})",
        "not recommended": f"Not recommended: {name} ({what})",
    }.get(advice, f"Cannot tell whether {name} ({what}) is worth it")
    close = None if chance is None else chance.change.success
    return Selection(
        name=name,
        advice=advice,
        sentence=f"{head}: {why}.",
        rows=rows,
        of=of,
        made=made,
        trained_on=dict(costs),
        price=price,
        beats_random=close is not None and close.low > 0,
    )


def _decided(by: Mapping[str, Contrast], *, made: bool, rule: str, answered: bool) -> tuple[SelectionAdvice, str]:
    """The advice, and why; `by`: the reference of a contrast -> the contrast with it."""
    chance, untrained, whole, right = (
        by.get(arm) for arm in (RANDOM_ARM, builtin_arm("untrained"), "all", RIGHT_ANSWERS_ARM)
    )
    if chance is None or untrained is None or (whole is None and right is None):
        return "not recommended", "an arm that it must be compared with was not measured on the same items"
    moved, outcome = chance.change.success, chance.change.outcome
    better = READINGS[outcome].title
    gain = f"{better} {format_change(moved, outcome)} against {'random' if made else 'as many random'} rows"
    if moved.seeds < MIN_SEEDS:
        return "too few seeds", f"{moved.seeds} of {MIN_SEEDS} seeds that a word takes at least ({gain})"
    if not answered:
        return "cannot tell", f"no arm has any of the {moved.items:,} held-out items right, so success does not compare rows"
    if moved.low <= 0 <= moved.high:
        return "not recommended", f"{gain}: the interval includes 0, so it is not shown that it matters which rows are taken"
    if moved.high < 0:
        return "not recommended", f"{gain}: random rows did better"
    if chance.plain != "improves":
        return "not recommended", f"{gain}, but answers are not shown to depend more on their prompts"
    if untrained.plain != "improves":
        still = format_change(untrained.change.success, outcome)
        return "not recommended", f"{gain}, but training on it is not shown to beat not training ({still})"
    told = {RIGHT_ANSWERS_ARM: "SFT on the right answers alone", SIMPLE_RULE_ARM: rule or "the simple rule"}
    lacks = {
        RIGHT_ANSWERS_ARM: "it is not shown that the wrong answers teach anything",
        SIMPLE_RULE_ARM: "it is not shown to beat that simple rule",
    }
    for arm in (RIGHT_ANSWERS_ARM, SIMPLE_RULE_ARM):
        if (other := by.get(arm)) is not None:
            beside = f"{format_change(other.change.success, outcome)} against {told[arm]}"
            if other.plain != "improves":
                return "not recommended", f"{gain}, but {beside}: {lacks[arm]}"
            gain = f"{gain}, {beside}"
    return ("train on it", gain) if whole is None else _beside_all(whole, gain)


def _beside_all(whole: Contrast, gain: str) -> tuple[SelectionAdvice, str]:
    """The advice on rows that passed all else, by the contrast with all rows."""
    beside = f"{format_change(whole.change.success, whole.change.outcome)} against all rows"
    if whole.plain == "improves":
        return "train on it", f"{gain}, {beside}"
    if whole.plain in ("no change", "sharper"):
        return "fewer rows do", f"{gain}, {beside}, which is within the margin"
    if whole.change.success.high < 0:
        return "keep all rows", f"{gain}, but {beside}"
    return "keep all rows", f"{gain}, but {beside}: it is not shown that all rows are worse, or that they are no better"


def format_selection(result: TrialResult) -> list[str]:
    """What a trial over data says of mined rows, in sentences; empty for any other trial."""
    found = result.selection
    if found is None:
        return []
    unit = "rollouts" if any(row.name == "zero_signal_share" for row in result.rows) else "target tokens"
    costs = ", ".join(f"{arm} {spent:,.0f}" for arm, spent in found.trained_on.items())
    pair = (MINED_ARM, builtin_arm("untrained"), RETENTION_OUTCOME)
    kept = next((effect.difference for effect in result.effects if (effect.arm, effect.against, effect.name) == pair), None)
    lines = [found.sentence]
    if kept is not None and result.decoding in GRADED_OUTCOMES:
        ends = ", ".join(f"{100 * end:+.1f}" for end in (kept.low, kept.high))
        lines.append(f"Of what was mastered or is protected: {100 * kept.value:+.1f} points [{ends}] against not training.")
    lines += _losses(result)
    return [*lines, f"Trained on, {unit} of a branch: {costs}.", f"What this answer cost: {found.price}."]


def _losses(result: TrialResult) -> list[str]:
    """Held-out loss of mined rows beside that of every reference, where it was measured and is not the outcome itself."""
    reading = READINGS["loss"]
    if READINGS[result.decoding] is reading:
        return []
    found = {
        effect.against: effect.difference
        for effect in result.effects
        if (effect.arm, effect.name) == (MINED_ARM, reading.name)
    }
    moved = [f"{own.value:+.3g} [{own.low:+.3g}, {own.high:+.3g}] against {arm}" for arm, own in found.items()]
    return [f"Held-out {reading.name}, {reading.unit}, lower is better: {', '.join(moved)}."] if moved else []
