"""Page of the laboratory: every finding as a card, out of the blocks that the verdict page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from mixwright.estimates.intervals import mean_interval
from mixwright.verdict.page.blocks import (
    Block,
    Code,
    Fold,
    Forest,
    ForestRow,
    Grid,
    Headline,
    Paragraph,
    Part,
    Picture,
    Table,
    Tone,
    keep_filled,
)
from mixwright.verdict.page.frame import render_frame
from mixwright.verdict.page.text import NO_VALUE_SIGN
from mixwright_lab.cards import (
    FINDING_PARTS,
    MEANING_BY_WORD,
    RULE_TEXT,
    STALE,
    Card,
    figure,
    format_card,
    held,
    interval,
    minutes,
    number,
    ours,
    primary,
    published,
    seeds,
    tally,
)
from mixwright_lab.charts import Lines, Series, render_lines
from mixwright_lab.contracts import Plot
from mixwright_lab.judging import WORDS_WORST_FIRST, Judged
from mixwright_lab.result_files import Result

TONES: dict[str, Tone] = {
    "reproduced": "good",
    "in part": "caution",
    "not reproduced": "bad",
    "refuted": "bad",
    STALE: "caution",
}
"""Of the words that have a colour."""


def html(cards: Sequence[Card], strays: Sequence[str] = ()) -> str:
    """The whole page.

    Args:
        cards: every finding.
        strays: files of results that belong to no finding.
    """
    results = [card.result for card in cards if card.result]
    about = f"laboratory: claims re-run on tiny models, {minutes(*results)} CPU minutes for all that is shown"
    return render_frame("Laboratory", about, Headline(tally(cards)), [keep_filled(overview(cards, strays))], parts(cards))


def parts(cards: Sequence[Card]) -> list[Part]:
    """A part for every finding."""
    return [Part(card.name, f"{card.name}: {card.word}", keep_filled(blocks(card))) for card in cards]


def overview(cards: Sequence[Card], strays: Sequence[str] = ()) -> list[Block]:
    """The table, and what the words mean."""
    columns = ("finding", "word", "published contrast", "others of the source", "ours", "seeds", "CPU minutes")
    named = ", ".join(strays)
    return [
        Table(
            "Every finding, with its published contrast; how many of the others are reproduced",
            columns,
            [row(c) for c in cards],
            (3, 4, 5, 6),
        ),
        Paragraph(f"Files of results that belong to no finding: {named}." if strays else "", "caution"),
        Fold(
            "Words, and how they are decided",
            (Table("Words of a contrast", ("word", "meaning"), tuple(MEANING_BY_WORD.items())), Paragraph(RULE_TEXT)),
        ),
    ]


def row(card: Card) -> tuple[str, ...]:
    """The card in the table of all; figures of a stale result are not shown there."""
    result = card.result
    if result is None or card.word == STALE:
        return (card.name, card.word, NO_VALUE_SIGN, NO_VALUE_SIGN, NO_VALUE_SIGN, NO_VALUE_SIGN, NO_VALUE_SIGN)
    one = primary(card.finding, result)
    others = [held(found) for found in (published(card.finding, result), ours(card.finding, result))]
    return (card.name, card.word, f"{one.name}: {figure(one)}", *others, str(len(result.seeds)), minutes(result))


def blocks(card: Card) -> list[Block]:
    """One finding: the word first, then what is claimed, what came out, and what rests on it."""
    finding, result = card.finding, card.result
    found: list[Block] = [Paragraph(format_card(card), TONES.get(card.word, "plain"), card.word.capitalize())]
    found += [Paragraph(text, lead=heading) for heading, name in FINDING_PARTS if (text := getattr(finding, name))]
    if result is None:
        found.append(expected(card))
    else:
        charts = [*forests(result.contrasts), *(picture(plot, result) for plot in finding.PLOTS)]
        found += [Grid(tuple(charts)), contrasts(result)]
    why = "Why it differs from its source" if card.word in WORDS_WORST_FIRST and card.word != "reproduced" else "Remarks"
    found += [
        Paragraph(card.remarks, lead=why),
        Paragraph(", ".join(finding.FEATURES) or "Nothing.", lead="Mixwright plug-ins that rest on it"),
        Code("Run it:", card.command),
    ]
    if result is not None:
        found.append(Fold("What would refute it", (expected(card),)))
        cost = f"{seeds(result)}, {minutes(result)} CPU minutes"
        found.append(Fold(f"{cost}; versions and settings", (versions(result),)))
    return found


def expected(card: Card) -> Table:
    """What was written before the run."""
    rows = [(one.name, number(one.least, one.unit), one.unit, one.refuted) for one in card.finding.EXPECT]
    return Table("Contrasts that the claim says are above 0", ("contrast", "at least", "unit", "refuted if"), rows, (1,))


def contrasts(result: Result) -> Table:
    """Every contrast, with what it is compared with."""
    rows = [
        (
            f"{place}. {one.name}",
            one.word,
            *(number(one.value, one.unit, sign=True), interval(one)),
            *(number(one.least, one.unit), number(one.noise, one.unit), one.unit),
        )
        for place, one in enumerate(result.contrasts, 1)
    ]
    columns = ("contrast", "word", "mean", "interval", "least size", "noise floor", "unit")
    return Table("Contrasts over seeds; the claim says that all are above 0", columns, rows, (2, 3, 4, 5))


def forests(found: Sequence[Judged]) -> list[Forest]:
    """The contrasts as intervals, one chart per unit; numbers are those of the table."""
    numbered = sorted(enumerate(found, 1), key=lambda pair: pair[1].unit)
    charts = []
    for unit, group in groupby(numbered, key=lambda pair: pair[1].unit):
        rows = [
            ForestRow(f"{place}. {one.name}", one.value, one.low, one.high, one.points, one.word) for place, one in group
        ]
        scale = 100.0 if unit == "points" else 1.0
        charts.append(Forest("Contrasts, one point per seed", unit, tuple(rows), margin=0.0, scale=scale))
    return charts


def picture(plot: Plot, result: Result) -> Picture:
    """A plot of the finding, drawn."""
    return Picture(f"{plot.caption} ({plot.y}, %)", render_lines(lines(plot, result)))


def lines(plot: Plot, result: Result) -> Lines:
    """A plot of the finding, with 95 % t intervals over seeds; a place that no seed has is left out."""
    known = {(row.arm, row.seed): row.readings for row in result.rows if not row.again}
    series = []
    for curve in plot.curves:
        points = []
        for x, arm, reading in curve.places:
            values = [known[arm, seed][reading] for seed in result.seeds if reading in known.get((arm, seed), {})]
            if values:
                points.append((x, mean_interval(np.array(values), bound=1.0)))
        means = [found for _, found in points]
        low, high = tuple(max(found.low, 0.0) for found in means), tuple(found.high for found in means)
        series.append(Series(curve.name, tuple(x for x, _ in points), tuple(found.value for found in means), low, high))
    named = ", ".join(curve.name for curve in plot.curves)
    told = f"{plot.y} over {plot.x}, of {named}; the numbers stand below."
    return Lines(told, plot.x, tuple(series))


def versions(result: Result) -> Table:
    """Conditions and settings of the run."""
    made: dict[str, Any] = dict(result.conditions)
    rows = [("commit", str(made.get("commit", NO_VALUE_SIGN))), ("tree", str(made.get("tree", NO_VALUE_SIGN)))]
    for group in ("versions", "machine"):
        part = made.get(group)
        rows += [(str(name), str(value)) for name, value in part.items()] if isinstance(part, dict) else []
    rows += [(f"setting {name}", str(value)) for name, value in result.settings.items()]
    return Table("Conditions of the run", ("", ""), rows)
