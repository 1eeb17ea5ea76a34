"""Pages of blocks as one self-contained HTML file: no network; every string is made visible and escaped.

The only script is the package's own, and the page's policy names its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records.verdict import AnswerPair
from mixwright.verdict.page import text
from mixwright.verdict.page.blocks import Answers, Block, Forest, ForestRow, Headline, Part, SideBySide, Tone

TEXT_LIMITS = (4000, 1000, 400, 160)
"""Characters of a text in the browser of answers: the first one with which all texts stay within `MAX_CHARACTERS`."""
MAX_CHARACTERS = 12_000_000
GRADED_KINDS = ("lost", "gained", "right both times", "wrong both times")
NOT_GRADED = "not graded"
"""A further kind, where a pair is."""
UNGRADED_KINDS = ("changed", "same")
HERE = Path(__file__).parent


def render_frame(
    title: str, about: str, headline: Headline | None, columns: Sequence[Sequence[Block]], parts: Sequence[Part]
) -> str:
    """Return a whole page.

    Args:
        title: title of the browser's tab.
        about: one line on the subject of the page.
        headline: the answer.
        columns: blocks of the first screen, side by side where there is room.
        parts: parts behind the first screen, in order.
    """
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(
        title=title,
        about=about,
        headline=headline,
        columns=[column for column in columns if column],
        parts=[part for part in parts if part.blocks],
        css=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=Markup(f"sha256-{digest}"),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else text.to_visible(str(value), limit=20_000),
    )
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "line": text.to_line,
        "name": lambda name: Markup("_<wbr>").join(text.to_line(name, limit=80).split("_")),
        "visible": lambda value: text.to_visible(value, limit=2000),
        "axis": place_on_axis,
        "numbers": format_row,
        "marked": mark_sides,
        "answers": answers_json,
    }
    return environment.get_template("page.html")


def format_row(row: ForestRow, scale: float) -> str:
    """Return the estimate of a row with its interval."""
    if row.text or row.value is None:
        return row.text or "no estimate"
    return f"{scale * row.value:.3g} [{scale * row.low:.3g}, {scale * row.high:.3g}]".replace("-", text.MINUS_SIGN)


def place_on_axis(chart: Forest) -> dict[str, Any]:
    """Return the places of a chart's numbers on an axis of 0..100, and its labels."""
    margins = () if chart.margin is None else (-chart.margin, 0.0, chart.margin)
    rows = [row for row in chart.rows if row.value is not None]
    ends = [
        *margins,
        *(end for row in rows for end in (row.low, row.high, row.value, row.start, *row.points) if end is not None),
    ]
    low, high = chart.bounds or (min(ends, default=0.0), max(ends, default=1.0))
    span = max(high - low, 0.02)  # an axis of thousandths would magnify nothing

    def place(value: float) -> float:
        return round(6 + 88 * (min(max(value, low), low + span) - low) / span, 2)

    def place_row(row: ForestRow) -> dict[str, Any]:
        ends = {"low": row.low, "high": row.high, "value": row.value, "start": row.start}
        return {name: place(end) for name, end in ends.items() if end is not None} | {"points": [*map(place, row.points)]}

    middle = 0.0 if chart.margin is not None else low + span / 2
    return {
        "ticks": [
            (place(tick), f"{chart.scale * tick:.3g}".replace("-", text.MINUS_SIGN)) for tick in (low, middle, low + span)
        ],
        "margins": [place(margin) for margin in margins],
        "rows": [place_row(row) if row.value is not None else None for row in chart.rows],
    }


def mark_change(shown: str, other: str) -> tuple[str, ...]:
    """Split a text into same start, changed middle and same end; one part where it is equal or shares no word.

    Args:
        shown: the text.
        other: the text that it is compared with.

    Examples:
        >>> mark_change("It is Bangkok now.", "It is Kathailand now.")
        ('It is ', 'Bangkok', ' now.')
    """
    words, others = re.findall(r"\s+|\S+", shown), re.findall(r"\s+|\S+", other)
    shortest = min(len(words), len(others))
    start = next((place for place in range(shortest) if words[place] != others[place]), shortest)
    room = shortest - start
    end = next((place for place in range(room) if words[-1 - place] != others[-1 - place]), room)
    if shown == other or not start + end:
        return (shown,)
    middle = len(words) - end
    return "".join(words[:start]), "".join(words[start:middle]), "".join(words[middle:])


def mark_sides(item: SideBySide) -> list[tuple[str, ...]]:
    """Return the text of each side in parts, by what differs from the first one; the first one's from the last."""
    texts = [text.to_visible(side.text, limit=2000) or "(empty)" for side in item.sides]
    return [mark_change(shown, texts[0] if place else texts[-1]) for place, shown in enumerate(texts)]


def kind_of_change(pair: AnswerPair, *, graded: bool) -> int:
    """Return the place of a pair's kind in `GRADED_KINDS` or `UNGRADED_KINDS`."""
    if not graded:
        return int(pair.before == pair.after)
    if not pair.graded:
        return len(GRADED_KINDS)
    was_right, is_right = (score >= RIGHT_FROM_SCORE for score in (pair.score_before, pair.score_after))
    if was_right != is_right:
        return GRADED_KINDS.index("lost" if was_right else "gained")
    return GRADED_KINDS.index("right both times" if is_right else "wrong both times")


def answers_json(block: Answers) -> Markup:
    """Return the data of the browser of answers, to put into a script element."""
    texts = (shown for pair in block.pairs for shown in (pair.prompt, pair.gold, pair.before, pair.after))
    lengths = [len(shown) for shown in texts]
    limit = next(
        (limit for limit in TEXT_LIMITS if sum(min(length, limit) for length in lengths) <= MAX_CHARACTERS), TEXT_LIMITS[-1]
    )
    places: dict[str, int] = {}
    rows = []
    for pair in block.pairs:
        sides = list_sides(pair, graded=block.graded)
        shown = [text.to_visible(answer, limit=limit) or "(empty)" for answer, _, _ in sides]
        answers = [
            [sign, tone, *mark_change(shown[place], shown[0] if place else shown[-1])]
            for place, (_, sign, tone) in enumerate(sides)
        ]
        task = text.cell_name(text.to_line(pair.task), pair.level)
        prompt, gold = text.to_visible(pair.prompt, limit=limit), text.to_visible(pair.gold, limit=limit)
        rows.append([places.setdefault(task, len(places)), kind_of_change(pair, graded=block.graded), prompt, gold, answers])
    kinds = GRADED_KINDS if all(pair.graded for pair in block.pairs) else (*GRADED_KINDS, NOT_GRADED)
    data = {
        "names": [text.to_line(name) for name in block.names],
        "tasks": list(places),
        "kinds": kinds if block.graded else UNGRADED_KINDS,
        "rows": rows,
    }
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        encoded = encoded.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(encoded)


def list_sides(pair: AnswerPair, *, graded: bool) -> list[tuple[str, str, Tone]]:
    """Return the answers of both models, each with the sign and the colour of its score."""
    sides = [(pair.before, pair.score_before, pair.cut[0]), (pair.after, pair.score_after, pair.cut[1])]
    shown: list[tuple[str, str, Tone]] = []
    for answer, score, was_cut in sides:
        is_right = score >= RIGHT_FROM_SCORE
        sign = "" if not (graded and pair.graded) else "✓" if is_right else f"✕ {score:.2g}" if score > 0 else "✕"
        tone: Tone = "plain" if not (graded and pair.graded) else "good" if is_right else "bad"
        shown.append((answer, sign + " (cut)" * was_cut, tone))
    return shown
