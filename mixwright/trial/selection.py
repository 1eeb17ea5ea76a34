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
    contrasts: Sequence[Contrast],
    *,
    rows: int,
    training_rows: int,
    new_rows: bool,
    costs: Mapping[str, float],
    price: str,
    rule: str = "",
    any_right: bool = True,
) -> Selection:
    """What to do with mined rows: the first rule that holds decides.

    Args:
        name: of the table.
        contrasts: contrasts of the arm `mined` with the references.
        rows: of the table.
        training_rows: training rows of the corpus.
        new_rows: whether they are new rows.
        costs: arm -> what a branch was trained on: target tokens (SFT, DPO) or rollouts (GRPO), mean over seeds.
        price: of the trial, in words.
        rule: what the arm `simple_rule` trains on, in words that follow "against".
        any_right: whether any arm has any held-out item right; success of none compares no rows.
    """
    contrast_by_reference = {contrast.against: contrast for contrast in contrasts}
    against_random = contrast_by_reference.get(RANDOM_ARM)
    advice, why = _decide(contrast_by_reference, new_rows=new_rows, rule=rule, any_right=any_right)
    rows_described = f"{rows:,} new rows" if new_rows else f"{rows:,} of {training_rows:,} rows"
    sentence_start = {
        "train on it": f"Train on {name} ({rows_described})",
        "fewer rows do": f"{name} ({rows_described}) does as well as all rows",
        "keep all rows": f"Keep all rows, not {name} ({rows_described})",
        "not recommended": f"Not recommended: {name} ({rows_described})",
    }.get(advice, f"Inconclusive: it is not clear whether {name} ({rows_described}) is worth it")
    gain_over_random = None if against_random is None else against_random.change.estimate
    simple_rule_does = advice == "not recommended" and all(
        (contrast := contrast_by_reference.get(arm)) is not None and (contrast.uncorrected_word == "improves") is improves
        for arm, improves in ((RANDOM_ARM, True), (builtin_arm("untrained"), True), ("all", True), (SIMPLE_RULE_ARM, False))
    )
    return Selection(
        name=name,
        advice=advice,
        sentence=f"{sentence_start}: {why}.",
        rows=rows,
        of=training_rows,
        made=new_rows,
        trained_on=dict(costs),
        price=price,
        beats_random=gain_over_random is not None and gain_over_random.low > 0,
        simple_rule_does=simple_rule_does,
    )


def _decide(
    contrast_by_reference: Mapping[str, Contrast], *, new_rows: bool, rule: str, any_right: bool
) -> tuple[SelectionAdvice, str]:
    """The advice, and why; `contrast_by_reference`: the reference of a contrast -> the contrast with it."""
    against_random, against_untrained, against_all, against_right_answers = (
        contrast_by_reference.get(arm) for arm in (RANDOM_ARM, builtin_arm("untrained"), "all", RIGHT_ANSWERS_ARM)
    )
    if against_random is None or against_untrained is None or (against_all is None and against_right_answers is None):
        return "not recommended", "a reference arm was not measured on the same items"
    change, outcome = against_random.change.estimate, against_random.change.outcome
    better = READINGS[outcome].title
    gain = f"{better} {format_change(change, outcome)} against {'random' if new_rows else 'as many random'} rows"
    if change.seeds < MIN_SEEDS:
        return "too few seeds", f"{change.seeds} seeds, and a conclusion takes at least {MIN_SEEDS} ({gain})"
    if not any_right:
        return (
            "cannot tell",
            f"no arm has any of the {change.items:,} held-out items right, so success cannot compare rows",
        )
    if change.low <= 0 <= change.high:
        return "not recommended", f"{gain}: the interval includes 0, so the choice of rows is not shown to matter"
    if change.high < 0:
        return "not recommended", f"{gain}: random rows did better"
    if against_random.uncorrected_word != "improves":
        return "not recommended", f"{gain}, but answers are not shown to depend more on their prompts"
    if against_untrained.uncorrected_word != "improves":
        change_from_untrained = format_change(against_untrained.change.estimate, outcome)
        return (
            "not recommended",
            f"{gain}, but training on these rows is not shown to beat no training ({change_from_untrained})",
        )
    reference_described = {RIGHT_ANSWERS_ARM: "SFT on the right answers alone", SIMPLE_RULE_ARM: rule or "the simple rule"}
    reason_by_reference = {
        RIGHT_ANSWERS_ARM: "the wrong answers are not shown to teach anything",
        SIMPLE_RULE_ARM: "it is not shown to beat that simple rule",
    }
    for arm in (RIGHT_ANSWERS_ARM, SIMPLE_RULE_ARM):
        if (contrast := contrast_by_reference.get(arm)) is not None:
            comparison = f"{format_change(contrast.change.estimate, outcome)} against {reference_described[arm]}"
            if contrast.uncorrected_word != "improves":
                return "not recommended", f"{gain}, but {comparison}: {reason_by_reference[arm]}"
            gain = f"{gain}, {comparison}"
    return ("train on it", gain) if against_all is None else _beside_all(against_all, gain)


def _beside_all(against_all: Contrast, gain: str) -> tuple[SelectionAdvice, str]:
    """The advice on rows that passed all else, by the contrast with all rows."""
    comparison = f"{format_change(against_all.change.estimate, against_all.change.outcome)} against all rows"
    if against_all.uncorrected_word == "improves":
        return "train on it", f"{gain}, {comparison}"
    if against_all.uncorrected_word in ("no change", "sharper"):
        return "fewer rows do", f"{gain}, {comparison}, which is within the margin"
    if against_all.change.estimate.high < 0:
        return "keep all rows", f"{gain}, but {comparison}"
    return "keep all rows", f"{gain}, but {comparison}: all rows are not shown to be worse or equal"


def format_selection(result: TrialResult) -> list[str]:
    """What a trial over data says of mined rows, in sentences; empty for any other trial."""
    selection = result.selection
    if selection is None:
        return []
    unit = "rollouts" if any(row.name == "zero_signal_share" for row in result.rows) else "target tokens"
    costs = ", ".join(f"{arm} {amount:,.0f}" for arm, amount in selection.trained_on.items())
    pair = (MINED_ARM, builtin_arm("untrained"), RETENTION_OUTCOME)
    retention = next(
        (effect.difference for effect in result.effects if (effect.arm, effect.against, effect.name) == pair), None
    )
    lines = [selection.sentence]
    if retention is not None and result.decoding in GRADED_OUTCOMES:
        ends = ", ".join(f"{100 * end:+.1f}" for end in (retention.low, retention.high))
        lines.append(f"On mastered or protected tasks: {100 * retention.value:+.1f} points [{ends}] against no training.")
    lines += _format_losses(result)
    return [*lines, f"Training data per run, in {unit}: {costs}.", f"Cost of this answer: {selection.price}."]


def _format_losses(result: TrialResult) -> list[str]:
    """Held-out loss of mined rows beside that of every reference, where it was measured and is not the outcome itself."""
    reading = READINGS["loss"]
    if READINGS[result.decoding] is reading:
        return []
    difference_by_arm = {
        effect.against: effect.difference
        for effect in result.effects
        if (effect.arm, effect.name) == (MINED_ARM, reading.name)
    }
    differences = [
        f"{difference.value:+.3g} [{difference.low:+.3g}, {difference.high:+.3g}] against {arm}"
        for arm, difference in difference_by_arm.items()
    ]
    return [f"Held-out {reading.name}, {reading.unit}, lower is better: {', '.join(differences)}."] if differences else []
