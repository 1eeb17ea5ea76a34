"""Section of the trial's arms against each other: their outcomes with intervals, and the raw rows of every seed.

Source: trial/result.json.
Unit: differences in points (shares) or in the number's own unit; 95 % intervals over seeds and items.
Cost: reads one small file, draws one chart per number.
Blind spot: an arm changes several levers at once; runs that missed a target are counted at the whole budget.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, format_unit
from mixwright.records import Effect, TrialResult
from mixwright.runs import RunFolder
from mixwright.verdict.advice import format_amount
from mixwright.verdict.arm_words import (
    differences,
    effect_word,
    format_change,
    format_effect,
    format_outcome,
    primary_effect_name,
    unit_of,
)
from mixwright.verdict.blocks import Block, Fold, Forest, ForestRow, Grid, Paragraph, Table
from mixwright.verdict.evidence import trial_of
from mixwright.verdict.text import NO_VALUE_SIGN, amount, change, count, format_p, name_of, percent

JUDGED_COLUMNS = ("lever", "word", "what decided", "did not run", "against its nulls")
EFFECT_COLUMNS = (
    "number", "arm", "against", "difference", "change of S", "change of D", "p", "word", "would be seen", "censored",
)  # fmt: skip
NUMERIC_COLUMNS = (3, 4, 5, 6, 8, 9)
ROLLOUTS_NUMBER = "rollouts"
"""Number that is 0 of every branch that only reads rows, and is left out then."""
GRADED_COLUMNS = (4, 5, 9)
"""Columns that only graded answers fill."""


class Arms(Section):
    """The judgement of each lever, a forest of the primary outcome, every comparison, and the raw rows."""

    ORDER: ClassVar[int] = 35
    TITLE: ClassVar[str] = "Trial arms"
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Charts, effects, notes and raw rows."""
        result = trial_of(run)
        if result is None:
            return []
        roles = f"References: {', '.join(result.references) or 'none'}. Nulls: {', '.join(result.nulls) or 'none ran'}."
        if result.ablations:
            roles += f" Ablations, the plan without one part: {', '.join(result.ablations)}."
        unit = READINGS[result.decoding].unit
        near = f"{format_amount(result.margin, unit)} {format_unit(unit)}"
        drawn = f" Dots are seeds; changes inside the shaded strip, {near} either way, do not matter."
        text = f"{count(len(result.seeds), 'seed')}, paired; {format_outcome(result.decoding)}. {roles}{drawn}"
        judged = [(j.arm, j.word, j.because, ", ".join(j.missing) or NO_VALUE_SIGN, j.proof) for j in result.judgements]
        blocks: list[Block] = [Paragraph(text)]
        if judged:
            blocks.append(Table("What is said of each lever", JUDGED_COLUMNS, judged))
        blocks += _charts(result)
        blocks.append(_comparisons(result))
        if result.by_task:
            blocks.append(Fold("Levers in each task", (_by_task(result),)))
        charged = ", ".join(f"{arm} {amount(spent, 'rollouts')}" for arm, spent in result.rollouts.items())
        if result.decoding in GRADED_OUTCOMES or any(result.rollouts.values()):
            blocks.append(Paragraph(f"Rollouts charged, measuring and canaries included: {charged or 'none'}."))
        targets = ", ".join(f"{name_of(name)} {percent(value)}" for name, value in result.target.items())
        if (
            targets and result.decoding in GRADED_OUTCOMES
        ):  # how many rollouts a gain takes is counted for graded answers alone
            blocks.append(Paragraph(f"Targets, fixed before the run: {targets}."))
        blocks.append(Fold("Raw rows, one per arm and seed", (_raw(result),)))
        notes = tuple(Paragraph(note) for note in result.notes)
        return [*blocks, Fold("How these numbers are made", notes)] if notes else blocks


def _charts(result: TrialResult) -> list[Block]:
    """A forest per number: the primary outcome open, the others folded."""
    groups: dict[str, list[Effect]] = defaultdict(list)
    for effect in result.effects:
        groups[effect.name].append(effect)
    first = primary_effect_name(result)
    blocks: list[Block] = [_forest(result, groups[first])] if first in groups else []
    rest = tuple(_forest(result, effects) for name, effects in groups.items() if name != first)
    return [*blocks, Fold("Charts of the other numbers", (Grid(rest),))] if rest else blocks


def _forest(result: TrialResult, effects: list[Effect]) -> Block:
    unit, name = unit_of(result, effects[0]), effects[0].name
    sign = "/" if unit == "ratio" else "\N{MINUS SIGN}"
    rows = tuple(
        ForestRow(
            f"{effect.arm} {sign} {effect.against}",  # short: names are cut, and ablations begin alike
            effect.difference.value if effect.difference.n else None,
            effect.difference.low,
            effect.difference.high,
            differences(result, name, effect.arm, effect.against),
            effect_word(result, effect),
        )
        for effect in effects
    )
    said = {e: f", {effect_word(result, e)}" if e.word else "" for e in effects}
    text = "; ".join(f"{e.arm} against {e.against}: {format_effect(result, e)}{said[e]}" for e in effects)
    caption = name_of(name)
    caption = caption[:1].upper() + caption[1:]
    if unit == "ratio":
        return Forest(caption, text + ".", "ratio, arm over reference", rows)
    shares = unit == "share"
    label = f"difference, {'points' if shares else unit}"
    margin = result.margin if unit == READINGS[result.decoding].unit else 0.0
    return Forest(caption, text + ".", label, rows, margin, 100.0 if shares else 1.0)


def _comparisons(result: TrialResult) -> Table:
    """Every effect; without the columns of S, D and censored runs where nothing is graded, which has none of them."""
    rows = [_row(result, effect) for effect in result.effects]
    kept = [
        place for place in range(len(EFFECT_COLUMNS)) if result.decoding in GRADED_OUTCOMES or place not in GRADED_COLUMNS
    ]
    numeric = tuple(place for place, column in enumerate(kept) if column in NUMERIC_COLUMNS)
    shown = [tuple(row[place] for place in kept) for row in rows]
    return Table("Every comparison against another arm", tuple(EFFECT_COLUMNS[place] for place in kept), shown, numeric)


def _by_task(result: TrialResult) -> Table:
    """Levers against references in each task; nothing here is judged."""
    rows = [(e.task, name_of(e.name), e.arm, e.against, format_effect(result, e), format_p(e.p)) for e in result.by_task]
    return Table("Each task by itself, not judged", ("task", "number", "arm", "against", "difference", "p"), rows, (4, 5))


def _row(result: TrialResult, effect: Effect) -> tuple[str, ...]:
    unit = unit_of(result, effect)
    return (
        name_of(effect.name),
        f"{effect.arm} (null)" if effect.arm in result.nulls else effect.arm,
        f"{effect.against} (null)" if effect.against in result.nulls else effect.against,
        format_effect(result, effect),
        format_change(effect.swapped),
        format_change(effect.dependence),
        format_p(effect.p) if effect.items else NO_VALUE_SIGN,
        effect_word(result, effect),
        change(effect.detectable, unit).lstrip("+") if effect.items else NO_VALUE_SIGN,
        str(effect.censored),
    )


def _raw(result: TrialResult) -> Table:
    spent = any(row.value for row in result.rows if row.name == ROLLOUTS_NUMBER)
    names = [name for name in dict.fromkeys(row.name for row in result.rows) if spent or name != ROLLOUTS_NUMBER]
    units = {row.name: row.unit for row in result.rows}
    values = {(row.arm, row.seed, row.name): row.value for row in result.rows}
    rows = []
    for arm, seed in dict.fromkeys((row.arm, row.seed) for row in result.rows):
        cells = [
            amount(values[arm, seed, name], units[name]) if (arm, seed, name) in values else NO_VALUE_SIGN for name in names
        ]
        rows.append((arm, str(seed), *cells))
    columns = ("arm", "seed", *(name_of(name) for name in names))
    return Table("What every branch showed", columns, rows, tuple(range(1, len(columns))))
