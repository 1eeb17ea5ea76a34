"""Parts of the page of a trial: its arms against each other, with the raw numbers of every seed."""

from __future__ import annotations

from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, format_unit
from mixwright.records import Effect, TrialResult
from mixwright.verdict.page.blocks import Block, Fold, Forest, ForestRow, Paragraph, Part, Table, Tone, tabulate
from mixwright.verdict.page.text import (
    MINUS_SIGN,
    NO_VALUE_SIGN,
    format_change,
    format_count,
    format_magnitude,
    format_p,
    format_value,
    words_for,
)

ROLLOUTS_NUMBER = "rollouts"
"""Number that is 0 of every branch that only reads rows, and is left out then."""
ARM_WORDS = {
    "frozen": "not trained",
    "uniform": "your files as they are",
    "equal_shares": "every task and level equally often",
    "steered": "by the plan",
    "mined": "on the mined rows",
    "random_like": "on as many random rows",
    "all": "on all rows",
}
"""Method -> what it does, where its name does not say so."""
TONES: dict[str | None, Tone] = {"improves": "good", "worsens": "bad"}
SIGNS: dict[str | None, str] = {"improves": "▲ ", "worsens": "▼ ", "cannot tell": "? ", "no change": "= "}


def arms_chart(result: TrialResult) -> Forest:
    """Return the primary outcome of every arm against the arms that it is compared with."""
    reading = READINGS[result.decoding]
    rows = tuple(
        ForestRow(
            f"{effect.arm} {MINUS_SIGN} {effect.against}",
            effect.difference.value if effect.difference.n else None,
            effect.difference.low,
            effect.difference.high,
            seed_differences(result, effect.name, effect.arm, effect.against),
            SIGNS.get(effect.word, "") + effect_word(result, effect),
            text=format_effect(result, effect) if effect.difference.n else "no estimate",
            tone=TONES.get(effect.word, "plain"),
        )
        for effect in result.effects
        if effect.name == reading.name
    )
    caption = f"Difference in {reading.title} between methods, with the 95 % interval"
    return Forest(caption, format_unit(reading.unit), rows, result.margin, 100.0 if reading.unit == "share" else 1.0)


def describe_arms(result: TrialResult) -> Paragraph:
    """Return one line on what the compared methods are."""
    names = dict.fromkeys(name for effect in result.effects for name in (effect.arm, effect.against))
    known = [f"{name}: {ARM_WORDS[name]}" for name in names if name in ARM_WORDS]
    return Paragraph(f"{'; '.join(known)}." if known else "")


def trial_parts(result: TrialResult) -> list[Part]:
    """Return the comparisons and the raw rows."""
    judgements = [
        (row.arm, row.word, row.because, ", ".join(row.missing) or NO_VALUE_SIGN, row.proof) for row in result.judgements
    ]
    by_task = [
        (row.task, words_for(row.name), row.arm, row.against, format_effect(result, row), format_p(row.p))
        for row in result.by_task
    ]
    comparisons: list[Block] = [
        *_about(result),
        Table("Each method", ("method", "word", "decided by", "did not run", "against its nulls"), judgements),
        _comparison_table(result),
        Fold(
            "Each task by itself, not judged",
            (Table("Tasks", ("task", "number", "method", "against", "difference", "p"), by_task, (4, 5)),),
        ),
        Fold("How these numbers are made", tuple(map(Paragraph, result.notes))),
    ]
    branches = format_count(len({(row.arm, row.seed) for row in result.rows}), "branch")
    return [
        Part("comparisons", "All comparisons", comparisons, f"{len(result.effects):,}"),
        Part("rows", "Raw numbers of every seed", [_raw_table(result)], branches.replace("branchs", "branches")),
    ]


def _about(result: TrialResult) -> list[Block]:
    roles = {"References": result.references, "Nulls": result.nulls}
    named = " ".join(f"{role}: {', '.join(arms)}." for role, arms in roles.items() if arms)
    unit = READINGS[result.decoding].unit
    margin = f"{format_magnitude(result.margin, unit)} {format_unit(unit)}"
    seeds = format_count(len(result.seeds), "seed")
    about = f"{format_outcome(result.decoding)}. {seeds}, paired. {named} Changes within {margin} do not matter."
    rollouts = ", ".join(f"{arm} {count:,}" for arm, count in result.rollouts.items() if count)
    return [
        Paragraph(about[:1].upper() + about[1:]),
        Paragraph(f"Rollouts, measuring included: {rollouts}." if rollouts else ""),
    ]


def _comparison_table(result: TrialResult) -> Table:
    rows = []
    for effect in result.effects:
        unit = unit_of(result, effect)
        arm, against = (f"{name} (null)" if name in result.nulls else name for name in (effect.arm, effect.against))
        row = {
            "number": words_for(effect.name),
            "method": arm,
            "against": against,
            "difference": format_effect(result, effect),
            "change of S": format_change(effect.swapped),
            "change of D": format_change(effect.dependence),
            "p": format_p(effect.p) if effect.items else NO_VALUE_SIGN,
            "word": effect_word(result, effect),
            "shown in 80 % of cases": format_magnitude(effect.detectable, unit) if effect.items else NO_VALUE_SIGN,
        }
        rows.append(row)
    return tabulate("Every comparison against another method", rows, ("number", "method", "against", "word"))


def _raw_table(result: TrialResult) -> Table:
    has_rollouts = any(row.value for row in result.rows if row.name == ROLLOUTS_NUMBER)
    rows = [row for row in result.rows if has_rollouts or row.name != ROLLOUTS_NUMBER]
    names = list(dict.fromkeys(row.name for row in rows))
    values = {(row.arm, row.seed, row.name): format_value(row.value, row.unit) for row in rows}
    branches = dict.fromkeys((row.arm, row.seed) for row in result.rows)
    cells = [(arm, str(seed), *(values.get((arm, seed, name), NO_VALUE_SIGN) for name in names)) for arm, seed in branches]
    columns = ("method", "seed", *map(words_for, names))
    return Table("One row per method and seed", columns, cells, tuple(range(1, len(columns))))


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
