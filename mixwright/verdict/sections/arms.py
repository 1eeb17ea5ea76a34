"""Section of the trial's arms against each other: their outcomes with intervals, and the raw rows of every seed.

Source: trial/result.json.
Unit: differences in points (shares) or in the number's own unit; 95 % intervals over seeds and items.
Cost: reads one small file, draws one chart per number.
Blind spot: an arm changes several levers at once; runs that missed a target are counted at the whole budget.
"""

from __future__ import annotations

from collections import defaultdict

from mixwright.contracts import Section
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, format_unit
from mixwright.records import Effect, TrialResult
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.arm_words import effect_word, format_effect, format_outcome, seed_differences, unit_of
from mixwright.verdict.page.blocks import Block, Fold, Forest, ForestRow, Grid, Paragraph, Table
from mixwright.verdict.page.text import (
    NO_VALUE_SIGN,
    format_change,
    format_count,
    format_magnitude,
    format_p,
    format_signed,
    format_value,
    percent,
    words_for,
)
from mixwright.verdict.rules.evidence import trial_of

ROLLOUTS_NUMBER = "rollouts"
"""Number that is 0 of every branch that only reads rows, and is left out then."""


class Arms(Section):
    """The judgement of each lever, a forest of the primary outcome, every comparison, and the raw rows."""

    ORDER = 35
    TITLE = "Trial arms"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Charts, effects, notes and raw rows; how many rollouts a gain takes is counted for graded answers alone."""
        result = trial_of(run)
        if result is None:
            return []
        graded, unit = result.decoding in GRADED_OUTCOMES, READINGS[result.decoding].unit
        roles = f"References: {', '.join(result.references) or 'none'}. Nulls: {', '.join(result.nulls) or 'none ran'}."
        if result.ablations:
            roles += f" Ablations, the plan without one part: {', '.join(result.ablations)}."
        margin_text = f"{format_magnitude(result.margin, unit)} {format_unit(unit)}"
        chart_note = f" Dots are seeds; changes inside the shaded strip, {margin_text} either way, do not matter."
        text = f"{format_count(len(result.seeds), 'seed')}, paired; {format_outcome(result.decoding)}. {roles}{chart_note}"
        judgement_rows = [
            (
                judgement.arm,
                judgement.word,
                judgement.because,
                ", ".join(judgement.missing) or NO_VALUE_SIGN,
                judgement.proof,
            )
            for judgement in result.judgements
        ]
        task_rows = [
            (
                effect.task,
                words_for(effect.name),
                effect.arm,
                effect.against,
                format_effect(result, effect),
                format_p(effect.p),
            )
            for effect in result.by_task
        ]
        task_columns = ("task", "number", "arm", "against", "difference", "p")
        rollouts_text = ", ".join(f"{arm} {format_value(rollouts, 'rollouts')}" for arm, rollouts in result.rollouts.items())
        rollouts_text = f"Rollouts charged, measuring and canaries included: {rollouts_text or 'none'}."
        targets = ", ".join(f"{words_for(name)} {percent(value)}" for name, value in result.success_targets.items())
        return [
            Paragraph(text),
            Table(
                "What is said of each lever",
                ("lever", "word", "what decided", "did not run", "against its nulls"),
                judgement_rows,
            ),
            *_charts(result),
            _comparison_table(result),
            Fold("Levers in each task", (Table("Each task by itself, not judged", task_columns, task_rows, (4, 5)),)),
            Paragraph(rollouts_text if graded or any(result.rollouts.values()) else ""),
            Paragraph(f"Targets, fixed before the run: {targets}." if targets and graded else ""),
            Fold("Raw rows, one per arm and seed", (_raw_table(result),)),
            Fold("How these numbers are made", tuple(map(Paragraph, result.notes))),
        ]


def _charts(result: TrialResult) -> list[Block]:
    """A forest per number: the primary outcome open, the others folded."""
    groups: dict[str, list[Effect]] = defaultdict(list)
    for effect in result.effects:
        groups[effect.name].append(effect)
    primary_effects = groups.pop(READINGS[result.decoding].name, [])
    other_charts = Grid(tuple(_forest(result, effects) for effects in groups.values()))
    return [
        *([_forest(result, primary_effects)] if primary_effects else []),
        Fold("Charts of the other numbers", (other_charts,)),
    ]


def _forest(result: TrialResult, effects: list[Effect]) -> Block:
    unit, name = unit_of(result, effects[0]), effects[0].name
    sign = "/" if unit == "ratio" else "\N{MINUS SIGN}"
    rows = tuple(
        ForestRow(
            f"{effect.arm} {sign} {effect.against}",  # short: names are cut, and ablations begin alike
            effect.difference.value if effect.difference.n else None,
            effect.difference.low,
            effect.difference.high,
            seed_differences(result, name, effect.arm, effect.against),
            effect_word(result, effect),
        )
        for effect in effects
    )
    word_by_effect = {
        arm_effect: f", {effect_word(result, arm_effect)}" if arm_effect.word else "" for arm_effect in effects
    }
    text = "; ".join(
        f"{arm_effect.arm} against {arm_effect.against}: {format_effect(result, arm_effect)}{word_by_effect[arm_effect]}"
        for arm_effect in effects
    )
    caption = words_for(name)[:1].upper() + words_for(name)[1:]
    if unit == "ratio":
        return Forest(caption, text + ".", "ratio, arm over reference", rows)
    label, scale = ("difference, points", 100.0) if unit == "share" else (f"difference, {unit}", 1.0)
    margin = result.margin if unit == READINGS[result.decoding].unit else 0.0
    return Forest(caption, text + ".", label, rows, margin, scale)


def _comparison_table(result: TrialResult) -> Table:
    """Every effect; without the columns of S, D and censored runs where nothing is graded, which has none of them."""
    rows = []
    for effect in result.effects:
        unit = unit_of(result, effect)
        arm, against = (
            f"{name_of_arm} (null)" if name_of_arm in result.nulls else name_of_arm
            for name_of_arm in (effect.arm, effect.against)
        )
        row = {
            "number": words_for(effect.name),
            "arm": arm,
            "against": against,
            "difference": format_effect(result, effect),
            "change of S": format_change(effect.swapped),
            "change of D": format_change(effect.dependence),
            "p": format_p(effect.p) if effect.items else NO_VALUE_SIGN,
            "word": effect_word(result, effect),
            "would be seen": format_signed(effect.detectable, unit).lstrip("+") if effect.items else NO_VALUE_SIGN,
            "censored": str(effect.censored),
        }
        if result.decoding not in GRADED_OUTCOMES:
            row = {name: text for name, text in row.items() if name not in ("change of S", "change of D", "censored")}
        rows.append(row)
    columns = tuple(rows[0]) if rows else ()
    numeric = tuple(column for column, name in enumerate(columns) if name not in ("number", "arm", "against", "word"))
    return Table("Every comparison against another arm", columns, [tuple(row.values()) for row in rows], numeric)


def _raw_table(result: TrialResult) -> Table:
    has_rollouts = any(row.value for row in result.rows if row.name == ROLLOUTS_NUMBER)
    rows = [row for row in result.rows if has_rollouts or row.name != ROLLOUTS_NUMBER]
    names = list(dict.fromkeys(row.name for row in rows))
    values = {(row.arm, row.seed, row.name): format_value(row.value, row.unit) for row in rows}
    branches = dict.fromkeys((row.arm, row.seed) for row in result.rows)
    cells = [(arm, str(seed), *(values.get((arm, seed, name), NO_VALUE_SIGN) for name in names)) for arm, seed in branches]
    columns = ("arm", "seed", *map(words_for, names))
    return Table("What every branch showed", columns, cells, tuple(range(1, len(columns))))
