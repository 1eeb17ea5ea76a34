"""Page of blocks as one self-contained HTML file: no scripts, no network; every string is made visible and escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from mixwright.estimates.readings import READINGS
from mixwright.records import Claim, ClaimKind
from mixwright.verdict.page import text
from mixwright.verdict.page.blocks import FIRST_SCREEN_ORDER, Chart, Forest, Headline, Lines, Part, Table, Terms
from mixwright.verdict.page.charts import render_svg
from mixwright.verdict.rules.claims import format_kind

HEAT_COLOUR_COUNT = 6
"""Colours of the heat map, each with its own text colour."""
SIGN_BY_KIND: dict[ClaimKind, str] = {
    "learnt": "▲",
    "damaged": "▼",
    "commonest": "≈",
    "less dependent": "▽",
    "sharper": "◇",
    "unchanged": "=",
    "cannot tell": "?",
}
"""Signs of the heat map."""


def render_page(title: str, about: str, sections: Sequence[Part]) -> str:
    """The whole page.

    Args:
        title: of the browser's tab.
        about: one line on what run this is.
        sections: sections in order.
    """
    headline = next((block for _, _, _, blocks in sections for block in blocks if isinstance(block, Headline)), None)
    first_screen = [section for section in sections if section[2] < FIRST_SCREEN_ORDER]
    return _template().render(
        title=title,
        about=about,
        headline=headline,
        top=[section for section in first_screen if not section[1]],
        columns=[section for section in first_screen if section[1]],
        rest=[section for section in sections if section[2] >= FIRST_SCREEN_ORDER],
        css=Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8")),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
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
        "percent": text.percent,
        "points": text.points,
        "between": text.format_interval,
        "format_value": text.format_value,
        "change": text.format_signed,
        "unit": lambda claims: READINGS[claims.outcome].unit,
        "level": text.format_level,
        "svg": lambda chart: Markup(render_svg(chart)),
        "numbers": chart_table,
        "kind_in_words": format_kind,
        "heat": lambda share: min(int(share * HEAT_COLOUR_COUNT), HEAT_COLOUR_COUNT - 1) if share is not None else "none",
        "axis": axis_positions,
        "used_marks": lambda block: {cell.mark for _, cells in block.rows for cell in cells if cell is not None},
        "narrow": lambda blocks: all(isinstance(block, Lines | Forest | Terms) for block in blocks),
    }
    environment.globals["marks"] = SIGN_BY_KIND
    return environment.get_template("page.html")


def chart_table(chart: Chart) -> Table:
    """The chart's numbers as a table, for those who read rather than look."""
    if isinstance(chart, Lines):
        rows = [
            (series.name, f"{x:g}", text.percent(y), f"{text.percent(low)} to {text.percent(high)}")
            for series in chart.series
            for x, y, low, high in zip(series.x, series.y, series.low, series.high, strict=True)
        ]
        return Table(chart.caption, ("series", chart.x_label, chart.y_label, "95 % interval"), rows, (1, 2, 3))
    rows, scale = [], chart.scale
    for row in chart.rows:
        value = text.NO_VALUE_SIGN if row.value is None else f"{scale * row.value:.4g}"
        points = ", ".join(f"{scale * point:.3g}" for point in row.points)
        rows.append((row.label, value, f"{scale * row.low:.4g} to {scale * row.high:.4g}", points, row.note))
    return Table(chart.caption, ("row", "value", "range", "points", "note"), rows, (1, 2))


def axis_positions(claims: Sequence[Claim]) -> list[dict[str, float]]:
    """Where the interval, the estimate and 0 of each claim lie on one shared axis of 0..100."""
    low = min(0.0, *(claim.difference.low for claim in claims))
    high = max(0.0, *(claim.difference.high for claim in claims))
    span = (high - low) or 1.0
    positions = []
    for difference in (claim.difference for claim in claims):
        ends = {"low": difference.low, "value": difference.value, "high": difference.high, "zero": 0.0}
        positions.append({name: round(4 + 92 * (value - low) / span, 1) for name, value in ends.items()})
    return positions
