"""Page of a verdict: the answer first, and behind it all tasks, all answers, how sure, and how it was measured.

Left out on purpose: reading files, and judging; the page is a function of the verdict and the answers alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.behaviours import IN_WORDS
from mixwright.records import SEVERITIES, Observation
from mixwright.records.verdict import AnswerPair, Feature, GateOutcome, TaskChange, TaskWord, Verdict
from mixwright.verdict.page.blocks import (
    Answers,
    Block,
    Code,
    Fold,
    Forest,
    ForestRow,
    Headline,
    Paragraph,
    Part,
    Rows,
    RowSide,
    SideBySide,
    Table,
    Tone,
    keep_filled,
    tabulate,
)
from mixwright.verdict.page.frame import list_sides, render_frame
from mixwright.verdict.page.text import (
    NO_VALUE_SIGN,
    cell_name,
    format_bounds,
    format_change,
    format_count,
    format_magnitude,
    format_p,
    format_signed,
    format_value,
    join_sentences,
    percent,
)
from mixwright.verdict.page.trial import arms_chart, describe_arms, trial_parts
from mixwright.verdict.words import (
    CAUSES,
    SAMPLES,
    START,
    describe_certainty,
    has_interval,
    is_in_wrong_format,
    list_rows,
    name_task,
    say_average,
    show_word,
)

SIGNS: dict[GateOutcome, tuple[str, Tone]] = {
    "passed": ("✓", "good"),
    "damaged": ("✕", "bad"),
    "inconclusive": ("?", "caution"),
}
TASK_SIGNS: dict[TaskWord, tuple[str, Tone]] = {
    "learned": ("▲", "good"),
    "lost": ("▼", "bad"),
    "kept": ("=", "plain"),
    "higher": ("↑", "plain"),
    "lower": ("↓", "plain"),
    "less dependent": ("▼", "bad"),
    "commonest": ("≈", "caution"),
    "sharper": ("≈", "caution"),
}
"""Sign of a task's word, `?` of others, and the colour of its row."""
FEATURE_WORDS: dict[Feature, str] = {
    "cut": "cut at the token limit",
    "repeating": "one piece again and again",
    "prompt copied": "a copy of the prompt",
    "other language": "in another language",
    "data": "JSON, tags or code",
    "one answer": "one and the same",
    "shorter": "at most half as long",
    "longer": "at least twice as long",
    "own form gone": "in the task's own format",
    "new form": "in a format of no task",
    "form of another task": "in another task's format",
}
MAX_TASKS = 12
"""Tasks of the chart on the first screen."""
MAX_WHY = 3
"""Sentences of the explanation on the first screen."""
MAX_NOTES = 200
"""Notes, and findings of the audit; the others are counted."""


def render_page(verdict: Verdict, answers: Sequence[AnswerPair]) -> str:
    """Return the page as HTML.

    Args:
        verdict: everything that the page says.
        answers: all answers of both models, for the browser of answers.
    """
    models = f"{verdict.after} compared with {verdict.before}" if verdict.before and verdict.after else verdict.name
    made = verdict.manifest.created[:10] if verdict.manifest else ""
    items = format_count(verdict.total.items, "item") if verdict.total else ""
    about = " · ".join(filter(None, (models, verdict.about, items, made)))
    trial = verdict.trial if verdict.reason == "trial" else None
    total = verdict.total
    counts = f": {total.lost:,} lost, {total.gained:,} gained" if total and total.lost + total.gained else ""
    examples = _examples(verdict, verdict.pairs, f"Answers that changed{counts}")
    charts: list[list[Block]] = [[_task_chart(verdict)], [examples]]
    if trial:
        charts = [[arms_chart(trial), describe_arms(trial)], [_task_chart(verdict)]]
    columns: list[list[Block]] = [
        *charts,
        _why(verdict),
        _next(verdict),
    ]
    browser = Answers(_names(verdict), answers, verdict.graded)
    parts = [
        Part("tasks", "All tasks", [_task_table(verdict), _part_table(verdict)], f"{len(verdict.tasks):,}"),
        Part("why", "Why it got worse", _causes(verdict), ", ".join(dict.fromkeys(one.task for one in verdict.causes))),
        Part("behaviour", "What answers do", _behaviours(verdict), "asking back, hedging, lists, tool calls"),
        Part("answers", "Answers", [browser], f"{len(answers):,}, filter and search"),
        Part("sure", "How sure is this?", _sure(verdict), items),
        *(trial_parts(verdict.trial) if verdict.trial else ()),
        *(Part(name, title, blocks) for name, (title, blocks) in verdict.extra.items()),
        Part("measured", "How it was measured", _measured(verdict), verdict.decoding),
    ]
    filled = [part._replace(blocks=found) for part in parts if (found := keep_filled(part.blocks))]
    shown = [keep_filled(column) for column in columns]
    return render_frame(f"{verdict.after or verdict.name}: {verdict.outcome}", about, _headline(verdict), shown, filled)


def _names(verdict: Verdict) -> tuple[str, str]:
    return verdict.before or "before", verdict.after or "after"


def _headline(verdict: Verdict) -> Headline:
    """Return the sentence, with the outcome that it begins with as a badge."""
    (sign, tone), start = SIGNS[verdict.outcome], START[verdict.outcome]
    if not verdict.headline.startswith(start):
        return Headline(verdict.headline, tone, note=say_average(verdict))
    return Headline(verdict.headline.removeprefix(start).strip(" :"), tone, f"{sign} {start}", say_average(verdict))


def _task_chart(verdict: Verdict) -> Forest:
    changes = list_rows(verdict)
    hidden = len(changes) - MAX_TASKS
    unit = "%" if verdict.unit == "share" else verdict.unit
    caption = f"{verdict.measure[:1].upper()}{verdict.measure[1:]} of each task: ○ before, ● now, with the 95 % interval"
    more = f" ({hidden:,} more under All tasks)" if hidden > 0 else ""
    rows = tuple(_task_row(change, verdict) for change in changes[:MAX_TASKS])
    is_share = verdict.unit == "share"
    return Forest(caption + more, unit, rows, scale=100.0 if is_share else 1.0, bounds=(0.0, 1.0) if is_share else None)


def _word(change: TaskChange, verdict: Verdict) -> str:
    return f"{_sign(change, verdict)[0]} {show_word(change, verdict)}".strip()


def _sign(change: TaskChange, verdict: Verdict) -> tuple[str, Tone]:
    return TASK_SIGNS.get("lost" if is_in_wrong_format(change, verdict) else change.word, ("?", "plain"))


def _task_row(change: TaskChange, verdict: Verdict) -> ForestRow:
    unit, word = verdict.unit, _word(change, verdict)
    tone, label = _sign(change, verdict)[1], name_task(change)
    before = "no grader" if change.before is None else format_value(change.before, unit)
    if change.before is None or change.after is None:
        return ForestRow(label, None, 0.0, 0.0, note=word, text=before, tone=tone)
    text = f"{before.removesuffix(' %')} → {format_value(change.after, unit)}"
    if not has_interval(change):
        return ForestRow(label, change.after, change.after, change.after, (), word, change.before, text, tone)
    low, high = (change.before + end for end in (change.change.low, change.change.high))
    return ForestRow(label, change.after, low, high, (), word, change.before, text, tone)


def _examples(verdict: Verdict, pairs: Sequence[AnswerPair], caption: str) -> Rows:
    items = []
    for pair in pairs:
        sides = zip(_names(verdict), list_sides(pair, graded=verdict.graded), strict=False)
        shown = tuple(RowSide(f"{name} {sign}".strip(), text, "", tone) for name, (text, sign, tone) in sides)
        items.append(SideBySide(shown, title=pair.prompt))
    return Rows(caption, tuple(items))


def _why(verdict: Verdict) -> list[Block]:
    return [Paragraph(join_sentences(text), lead="" if place else "Why") for place, text in enumerate(verdict.why[:MAX_WHY])]


def _next(verdict: Verdict) -> list[Block]:
    steps = [Code(f"{step.text}:", step.command) for step in verdict.next]
    return [*steps[:1], Fold("More to do", tuple(steps[1:]))]


def _task_table(verdict: Verdict) -> Table:
    unit, graded = verdict.unit, verdict.graded
    rows = [
        {
            "task": cell_name(change.task, change.level, whole_task=change.whole) + ", protected" * change.protected,
            "result": _word(change, verdict),
            "before": NO_VALUE_SIGN if change.before is None else format_value(change.before, unit),
            "after": NO_VALUE_SIGN if change.after is None else format_value(change.after, unit),
            "change, 95 % CI": format_change(change.change, unit) if has_interval(change) else NO_VALUE_SIGN,
            "items": f"{change.items:,}",
            "gained": f"{change.gained:,}" if graded else NO_VALUE_SIGN,
            "lost": f"{change.lost:,}" if graded else NO_VALUE_SIGN,
            "by chance": percent(change.chance.value if change.chance else None),
        }
        for change in verdict.tasks
    ]
    return tabulate("Worst first", rows, ("task", "result"))


def _part_table(verdict: Verdict) -> Table:
    rows = [
        {
            "task": cell_name(change.task, change.level, whole_task=change.whole),
            "part": part.name,
            "before": f"{percent(part.before.value)} {format_bounds(part.before.low, part.before.high)}",
            "after": f"{percent(part.after.value)} {format_bounds(part.after.low, part.after.high)}",
        }
        for change in verdict.tasks
        for part in change.parts
    ]
    return tabulate("Parts of the answers that are right, share with its 95 % interval", rows, ("task", "part"))


def _causes(verdict: Verdict) -> list[Block]:
    """Causes of the losses with their remedies, and lost answers as examples of each."""
    rows = [
        {
            "task": cause.task,
            "lost answers that": CAUSES[cause.kind][0].format(cause.pattern),
            "of the lost": f"{cause.items:,} of {cause.lost:,}",
            "of those that stayed right": f"{cause.kept_with:,} of {cause.kept:,}",
            "what to do": CAUSES[cause.kind][1],
        }
        for cause in verdict.causes
    ]
    examples = [_examples(verdict, cause.examples, f"{cause.task}: {cause.kind}") for cause in verdict.causes]
    known = [
        {
            "task": one.task,
            "lost answers that were begun": f"{one.items:,}",
            "end right": f"{one.completed:,}",
            "other answers of the task that the right one beats": percent(one.beaten),
        }
        for one in verdict.recalled
    ]
    caption = "What the answers are now that were right before and are wrong; each counts once"
    columns = [
        {
            "items whose": f"{one.column} is {one.value}",
            "items": f"{one.items:,}",
            "changed by": format_signed(one.change, verdict.unit),
            "compared with others of their tasks, 95 % CI": format_change(one.gap),
            "p": format_p(one.adjusted_p),
        }
        for one in verdict.by_column
    ]
    recalled = "Lost answers, begun in the earlier model's words up to the right answer: what the later model knows"
    return [
        tabulate(caption, rows, ("task", "lost answers that", "what to do")),
        tabulate(recalled, known, ("task",)),
        tabulate("By other columns of the items", columns, ("items whose",)),
        *examples,
    ]


def _behaviours(verdict: Verdict) -> list[Block]:
    """What answers do beside answering, shown changes first."""

    def table(caption: str, *, shown: bool) -> Table:
        rows = [
            {
                "task": one.task + ", protected" * one.protected,
                "answers": SAMPLES.get(one.behaviour) or IN_WORDS[one.behaviour][0],
                "before": percent(one.before),
                "after": percent(one.after),
                "change, 95 % CI": format_change(one.change),
                "items": f"{one.change.n:,}",
                "p": format_p(one.adjusted_p),
            }
            for one in verdict.behaviours
            if one.shown == shown and (shown or one.before != one.after)
        ]
        return tabulate(caption, rows, ("task", "answers"))

    changed = table("Shown changes: beyond chance, and ten points or more", shown=True)
    return [changed, Fold("Other changes", (table("Not shown", shown=False),))]


def _sure(verdict: Verdict) -> list[Block]:
    unit = verdict.unit
    facts = [Paragraph(line) for line in (*verdict.why[MAX_WHY:], *describe_certainty(verdict))]
    not_judged = [(task, reason) for task, reason in verdict.not_judged.items()]
    parts = [
        {
            "task": cell_name(change.task, change.level, whole_task=change.whole),
            "prompts shuffled (S)": format_change(change.shuffled, unit),
            "the rest (D)": format_change(change.dependence, unit),
            "sampled": " → ".join(percent(share) for share in change.sampled) if change.sampled else NO_VALUE_SIGN,
            "shown in 80 % of cases": format_magnitude(change.detectable, unit),
            "p": NO_VALUE_SIGN if change.adjusted_p is None else format_p(change.adjusted_p),
        }
        for change in verdict.tasks
    ]
    former = [
        {
            "task": row.task,
            "answers": f"{row.items:,}",
            "tokens": f"{row.tokens:,}",
            "before": format_signed(row.before, "nats"),
            "change": format_signed(row.change, "nats"),
            "95 % CI": format_bounds(row.low, row.high, "nats"),
        }
        for row in verdict.former
    ]
    return [
        *facts,
        Table("Not judged", ("task", "reason"), not_judged),
        tabulate(
            "Changes of the score with prompts shuffled and of the rest, and the smallest change that these items can show",
            parts,
            ("task",),
        ),
        *_forms(verdict),
        tabulate("Log-probability of the earlier model's answers under the later model, nats per token", former, ("task",)),
    ]


def _forms(verdict: Verdict) -> list[Block]:
    taken = [
        {
            "format of": form.owner,
            "in tasks": ", ".join(form.tasks),
            "answers": f"{form.answers:,} of {form.items:,}",
            "lost answers with it": f"{form.lost_with_form:,} of {form.lost:,}",
        }
        for form in verdict.forms
    ]

    def table(caption: str, *, reported: bool) -> Table:
        rows = [
            {
                "task": change.task,
                "answers that are": " ".join(
                    filter(None, (FEATURE_WORDS.get(change.feature, change.feature), change.other_task, change.pattern))
                ),
                "before": f"{change.before:,}",
                "after": f"{change.after:,}",
                "items": f"{change.items:,}",
                "p": format_p(change.adjusted_p),
            }
            for change in verdict.form_changes
            if change.reported == reported and change.before != change.after
        ]
        return tabulate(caption, rows, ("task", "answers that are"))

    return [
        tabulate("Formats that spread to other tasks", taken, ("format of", "in tasks")),
        table("Format of answers: shown changes", reported=True),
        Fold("Format of answers: other changes", (table("Too few, or no loss", reported=False),)),
    ]


def _measured(verdict: Verdict) -> list[Block]:
    manifest = verdict.manifest
    notes = sorted(verdict.notes, key=lambda note: SEVERITIES.index(note.severity))
    how = f"{verdict.about}. Outcome: {verdict.measure}, {verdict.decoding}." if verdict.about else ""
    blocks: list[Block] = [Paragraph(how), *(_note(note) for note in notes[:MAX_NOTES])]
    if len(notes) > MAX_NOTES:
        blocks.append(Paragraph(f"{len(notes) - MAX_NOTES:,} more notes are in verdict.json."))
    blocks.append(observation_table("Audit of the data", verdict.audit))
    if manifest:
        settings = {"made": manifest.created, "starting model": manifest.parent, **manifest.settings}
        tables = {
            "Settings": settings,
            "Seeds": manifest.seeds,
            "Versions": manifest.versions,
            "Inputs, sha256": manifest.inputs,
        }
        blocks += [Code("Repeat:", manifest.command), *(_settings(name, values) for name, values in tables.items())]
    return blocks


def _note(note: Observation) -> Paragraph:
    tone: Tone = "plain" if note.severity == "info" else "caution"
    return Paragraph(join_sentences(note.message, note.remedy), tone, note.task or "")


def observation_table(caption: str, observations: Sequence[Observation]) -> Table:
    """Return findings of an audit, errors first."""
    ordered = sorted(observations, key=lambda found: SEVERITIES.index(found.severity))
    rows = [
        (
            found.check,
            found.severity,
            found.task or "all",
            f"{found.count:,} of {found.total:,}",
            found.message,
            found.remedy,
        )
        for found in ordered[:MAX_NOTES]
    ]
    hidden = len(ordered) - len(rows)
    more = f" ({hidden:,} more in the audit's file)" if hidden else ""
    return Table(caption + more, ("check", "severity", "task", "rows", "finding", "what to do"), rows)


def _settings(caption: str, values: Mapping[str, Any]) -> Table:
    rows = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        for name, value in values.items()
        if value not in ("", None)
    ]
    return Table(caption, ("name", "value"), rows)
