"""The trial's arms against their references: intervals, noise floor, nulls and the raw rows of every seed.

Source: trial/result.json.
Unit: differences in points (shares) or in the number's own unit; 95 % paired t interval over seeds.
Cost: reads one small file, draws one chart per number.
Blind spot: an arm changes several levers at once; censored seeds carry no value and are counted, not guessed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import Effect, TrialResult
from mixwright.runs import RunFolder
from mixwright.verdict._arms import JUDGED, START, differences, in_words, unit_of
from mixwright.verdict._blocks import Block, Fold, Forest, ForestRow, Grid, Paragraph, Table
from mixwright.verdict._evidence import trial_of
from mixwright.verdict._text import NONE, amount, between, change, count, name_of, percent

NUMERIC = (3, 4, 5, 7, 8)


class Arms(Section):
    """A forest of intervals per number, the table under it, and the raw rows."""

    ORDER: ClassVar[int] = 35
    TITLE: ClassVar[str] = "Trial arms"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Charts, effects, notes and raw rows."""
        result = trial_of(run)
        if result is None:
            return []
        seeds = f"{count(len(result.seeds), 'seed')}, paired. "
        nulls = f"Null arms: {', '.join(result.nulls)}." if result.nulls else "No null arm ran: nothing here is controlled."
        drawn = " Dots are seeds; the shaded strip is the noise floor, what two identical arms would show."
        blocks: list[Block] = [Paragraph(seeds + nulls + drawn)]
        if result.unproven:
            text = "A null arm shows a gain: what the other arms show is not proof that their levers work."
            blocks.append(Paragraph(text, "caution"))
        blocks += [Paragraph(note, "caution") for note in result.notes if note.startswith("Unproven")]
        blocks += _charts(result)
        columns = ("number", "arm", "against", "difference", "95 % interval", "noise floor", "verdict", "seeds", "censored")
        rows = [_row(result, effect) for effect in result.effects]
        tables = {of_start: [row for row in rows if (row[2] == START) == of_start] for of_start in (False, True)}
        blocks.append(Table("Every comparison against another arm", columns, tables[False], NUMERIC))
        charged = ", ".join(f"{arm} {amount(spent, 'rollouts')}" for arm, spent in result.rollouts.items())
        blocks.append(Paragraph(f"Rollouts charged, measuring and canaries included: {charged or 'none'}."))
        targets = ", ".join(f"{name_of(name)} {percent(value)}" for name, value in result.target.items())
        if targets:
            blocks.append(Paragraph(f"Targets, fixed before the run: {targets}."))
        if tables[True]:
            gains = Table("Gains over each arm's own start", columns, tables[True], NUMERIC)
            blocks.append(Fold("Gains over each arm's own start", (gains,)))
        blocks.append(Fold("Raw rows, one per arm and seed", (_raw(result),)))
        notes = tuple(Paragraph(note) for note in result.notes if not note.startswith("Unproven"))
        return [*blocks, Fold("How these numbers are made", notes)] if notes else blocks


def _charts(result: TrialResult) -> list[Block]:
    """A forest per number: those the headline speaks of open, the others folded."""
    groups: dict[tuple[str, bool], list[Effect]] = defaultdict(list)
    for effect in result.effects:
        groups[effect.name, effect.against == START].append(effect)
    first = [key for key in groups if not key[1] and key[0] in JUDGED] or list(groups)
    blocks: list[Block] = [Grid(tuple(_forest(result, groups[key]) for key in first))]
    rest = tuple(_forest(result, groups[key]) for key in groups if key not in first)
    return [*blocks, Fold("Charts of the other numbers", (Grid(rest),))] if rest else blocks


def _forest(result: TrialResult, effects: list[Effect]) -> Block:
    unit = unit_of(result, effects[0])
    scale = 100.0 if unit == "share" else 1.0
    rows = tuple(
        ForestRow(
            f"{e.arm} (null)" if e.arm in result.nulls else e.arm,
            e.difference.value if e.difference.n else None,
            e.difference.low,
            e.difference.high,
            tuple(
                d for d in differences(result, e) if e.difference.low - 1 <= d <= e.difference.high + 1 or unit != "share"
            ),
            e.word,
        )
        for e in effects
    )
    better = f"{effects[0].better} is better"
    text = "; ".join(f"{e.arm} against {e.against}: {in_words(result, e)}, {e.word}" for e in effects)
    label = f"difference, {'points' if unit == 'share' else unit} ({better})"
    noise = max(effect.noise_floor for effect in effects)
    name = name_of(effects[0].name).capitalize() + (": gain over its own start" if effects[0].against == START else "")
    return Forest(name, text + ".", label, rows, noise, scale)


def _row(result: TrialResult, effect: Effect) -> tuple[str, ...]:
    unit = unit_of(result, effect)
    difference = effect.difference
    return (
        name_of(effect.name),
        f"{effect.arm} (null)" if effect.arm in result.nulls else effect.arm,
        effect.against,
        change(difference.value, unit) if difference.n else NONE,
        between(difference.low, difference.high, unit),
        "±" + change(abs(effect.noise_floor), unit).lstrip("+"),
        effect.word,
        str(difference.n),
        str(effect.censored),
    )


def _raw(result: TrialResult) -> Table:
    names = list(dict.fromkeys(row.name for row in result.rows))
    units = {row.name: row.unit for row in result.rows}
    values = {(row.arm, row.seed, row.name): row.value for row in result.rows}
    rows = []
    for arm, seed in dict.fromkeys((row.arm, row.seed) for row in result.rows):
        cells = [amount(values[arm, seed, name], units[name]) if (arm, seed, name) in values else NONE for name in names]
        rows.append((arm, str(seed), *cells))
    columns = ("arm", "seed", *(name_of(name) for name in names))
    return Table("What every branch showed", columns, rows, tuple(range(1, len(columns))))
