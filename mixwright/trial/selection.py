"""Advice on mined rows after a trial over data: whether they beat as many random ones, and what it cost to know. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, format_change
from mixwright.records import Interval, MiningSummary, Selection, SelectionAdvice, TrialResult
from mixwright.trial.arm_roles import MINED_ARM, RANDOM_ARM, SIMPLE_RULE_ARM, UNTRAINED_ARM
from mixwright.trial.effects import RETENTION_OUTCOME, Contrast


def advise(
    table: MiningSummary,
    contrasts: Sequence[Contrast],
    *,
    costs: Mapping[str, float],
    price: str,
    any_right: bool = True,
) -> Selection:
    """Say what to do with mined rows: the first rule that holds decides.

    Args:
        table: of the mined rows, `miner` being its name.
        contrasts: contrasts of the arm `mined` with the references.
        costs: arm -> what a branch was trained on: target tokens (SFT, DPO) or rollouts (GRPO), mean over seeds.
        price: of the trial, in words.
        any_right: whether any arm has any held-out item right; success of none compares no rows.
    """
    contrast_by_reference = {contrast.against: contrast for contrast in contrasts}
    advice, why = _decide(contrast_by_reference, table, any_right=any_right)
    is_new = table.kind == "new rows"
    rows_described = f"{table.rows:,} new rows" if is_new else f"{table.rows:,} of {table.training_rows:,} rows"
    described = f"{table.miner} ({rows_described})"
    sentence_start = {
        "train on it": f"Train on {described}",
        "fewer rows do": f"{described} does as well as all rows",
        "keep all rows": f"Keep all rows, not {described}",
        "not recommended": f"Not recommended: {described}",
    }.get(advice, f"Inconclusive: it is not clear whether {described} is worth it")
    beaten = {arm for arm, contrast in contrast_by_reference.items() if contrast.uncorrected_word == "improves"}
    return Selection(
        name=table.miner,
        advice=advice,
        sentence=f"{sentence_start}: {why}.",
        rows=table.rows,
        of=table.training_rows,
        made=is_new,
        trained_on=dict(costs),
        price=price,
        simple_rule_does=advice == "not recommended"
        and {RANDOM_ARM, UNTRAINED_ARM, "all"} <= beaten
        and SIMPLE_RULE_ARM in contrast_by_reference.keys() - beaten,
    )


def _decide(
    contrast_by_reference: Mapping[str, Contrast], table: MiningSummary, *, any_right: bool
) -> tuple[SelectionAdvice, str]:
    """Return the advice, and why; `contrast_by_reference`: the reference of a contrast -> the contrast with it."""
    against_random, against_untrained, against_all, against_rule = (
        contrast_by_reference.get(arm) for arm in (RANDOM_ARM, UNTRAINED_ARM, "all", SIMPLE_RULE_ARM)
    )
    if against_random is None or against_untrained is None or against_all is None:
        return "not recommended", "a reference arm was not measured on the same items"
    change, outcome = against_random.change.estimate, against_random.change.outcome
    random_rows = "random" if table.kind == "new rows" else "as many random"
    gain = f"{READINGS[outcome].title} {format_change(change, outcome)} against {random_rows} rows"
    if change.seeds < MIN_SEEDS:
        return "too few seeds", f"{change.seeds} seeds, and a conclusion takes at least {MIN_SEEDS} ({gain})"
    if not any_right:
        why = f"no arm has any of the {change.items:,} held-out items right, so success cannot compare rows"
        return "cannot tell", why
    if change.low <= 0 <= change.high:
        return "not recommended", f"{gain}: the interval includes 0, so the choice of rows is not shown to matter"
    if change.high < 0:
        return "not recommended", f"{gain}: random rows did better"
    if against_random.uncorrected_word != "improves":
        return "not recommended", f"{gain}, but answers are not shown to depend more on their prompts"
    if against_untrained.uncorrected_word != "improves":
        untrained = format_change(against_untrained.change.estimate, outcome)
        return "not recommended", f"{gain}, but training on these rows is not shown to beat no training ({untrained})"
    if against_rule is not None:
        rule = table.simple_rule or "the simple rule"
        comparison = f"{format_change(against_rule.change.estimate, outcome)} against {rule}"
        if against_rule.uncorrected_word != "improves":
            return "not recommended", f"{gain}, but {comparison}: it is not shown to beat that simple rule"
        gain = f"{gain}, {comparison}"
    comparison = f"{format_change(against_all.change.estimate, outcome)} against all rows"
    if against_all.uncorrected_word == "improves":
        return "train on it", f"{gain}, {comparison}"
    if against_all.uncorrected_word in ("no change", "sharper"):
        return "fewer rows do", f"{gain}, {comparison}, which is within the margin"
    if against_all.change.estimate.high < 0:
        return "keep all rows", f"{gain}, but {comparison}"
    return "keep all rows", f"{gain}, but {comparison}: all rows are not shown to be worse or equal"


def format_selection(result: TrialResult) -> list[str]:
    """Say what a trial over data found of mined rows, in sentences; empty for any other trial."""
    selection = result.selection
    if selection is None:
        return []
    unit = "rollouts" if any(row.name == "zero_signal_share" for row in result.rows) else "target tokens"
    costs = ", ".join(f"{arm} {amount:,.0f}" for arm, amount in selection.trained_on.items())
    retention = _differences(result, RETENTION_OUTCOME).get(UNTRAINED_ARM)
    lines = [selection.sentence]
    if retention is not None and result.decoding in GRADED_OUTCOMES:
        ends = ", ".join(f"{100 * end:+.1f}" for end in (retention.low, retention.high))
        lines.append(f"On mastered or protected tasks: {100 * retention.value:+.1f} points [{ends}] against no training.")
    losses = _differences(result, READINGS["loss"].name)
    if losses and result.decoding != "loss":
        differences = ", ".join(
            f"{difference.value:+.3g} [{difference.low:+.3g}, {difference.high:+.3g}] against {arm}"
            for arm, difference in losses.items()
        )
        lines.append(f"Held-out loss, {READINGS['loss'].unit}, lower is better: {differences}.")
    return [*lines, f"Training data per run, in {unit}: {costs}.", f"Cost of this answer: {selection.price}."]


def _differences(result: TrialResult, name: str) -> dict[str, Interval]:
    """Return reference -> the difference of mined rows from it in an outcome."""
    return {effect.against: effect.difference for effect in result.effects if (effect.arm, effect.name) == (MINED_ARM, name)}
