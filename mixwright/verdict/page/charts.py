"""Charts as inline SVG: no scripts, nothing external, colours as CSS variables so that light and dark both work.

One unit of a chart is one CSS pixel at 340 px width, so that its text stays readable on a phone; wider screens show
several side by side. The same block always gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.sax import saxutils

from mixwright.verdict.page.blocks import Chart, Forest, Lines
from mixwright.verdict.page.text import to_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUOTE = {'"': "&quot;"}
CHART_WIDTH_PIXELS = 340
"""CSS pixels; a chart is never drawn narrower than its text allows."""
COLOURS = {"01": "ink", "02": "quiet", "03": "rule", "04": "page", "05": "noise"}
COLOURS |= {f"1{number}": f"series-{number}" for number in (1, 2, 3, 4)}
COLOUR_BY_STANDIN = {f"#0a00{number}": f"var(--{name})" for number, name in COLOURS.items()}
"""Stand-ins that matplotlib draws with -> what the page's style sheet defines."""
INK, QUIET, RULE, PAGE, NOISE, *SERIES = COLOUR_BY_STANDIN
LINE_STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
LINE_MARKS = ("o", "s", "^", "D")
MATPLOTLIB_SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 12,
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), RULE),
    **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor"), QUIET),
    **dict.fromkeys(("text.color", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "text.parse_math", "legend.frameon"), False),
}


def render_svg(chart: Chart) -> str:
    """The chart as an `<svg>` element to put into HTML as it is; its strings are escaped by matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure

    salt = hashlib.sha256(repr(chart).encode("utf-8", "replace")).hexdigest()[:12]
    with matplotlib.rc_context({**MATPLOTLIB_SETTINGS, "svg.hashsalt": salt}), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        height = 250 + 16 * len(chart.series) if isinstance(chart, Lines) else 60 + 34 * len(chart.rows)
        figure = Figure(figsize=(CHART_WIDTH_PIXELS / 72, height / 72), dpi=72, layout="constrained")
        axes = figure.add_subplot()
        _draw_lines(axes, chart) if isinstance(chart, Lines) else _draw_forest(axes, chart)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(svg.getvalue(), to_line(chart.alternative, limit=1000))


def _inline(text: str, alternative: str) -> str:
    """The element alone, sized by its box, with the page's colours and font."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", text)
    for stand_in, variable in COLOUR_BY_STANDIN.items():
        text = text.replace(stand_in, variable)
    box = re.search(r'viewBox="[^"]*"', text)
    head = f'<svg role="img" aria-label="{saxutils.escape(alternative, QUOTE)}" {box.group() if box else ""}>'
    return head + text[text.index(">") + 1 :].replace("\n", " ").strip()


def _shorten(text: str) -> str:
    """A label short enough to leave the chart most of the width; the table under the chart has the whole name."""
    label = to_line(text)
    return label if len(label) <= 24 else label[:23] + "…"


def _draw_lines(axes: Axes, chart: Lines) -> None:
    for series_index, series in enumerate(chart.series):
        y, low, high = ([100 * value for value in values] for values in (series.y, series.low, series.high))
        colour = SERIES[series_index % 4]
        line_style: dict[str, Any] = {"linestyle": LINE_STYLES[series_index % 4], "marker": LINE_MARKS[series_index % 4]}
        axes.fill_between(series.x, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(series.x, y, color=colour, markersize=4, linewidth=1.8, label=_shorten(series.name), **line_style)
    axes.set(ylim=(0, 100), xlabel=to_line(chart.x_label), ylabel=to_line(chart.y_label))
    axes.set_xlim(left=0)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    if (series_count := len(chart.series)) > 1:
        axes.figure.legend(loc="outside lower center", ncols=1 if series_count > 3 else series_count, handlelength=2.6)


def _draw_forest(axes: Axes, chart: Forest) -> None:
    rows, scale, compares = chart.rows[::-1], chart.scale, chart.margin is not None
    edges = [scale * end for row in rows if row.value is not None for end in (row.low, row.high, *row.points)]
    if chart.margin is not None:
        sides = (-scale * chart.margin, scale * chart.margin)
        edges += sides
        axes.axvspan(*sides, color=NOISE, linewidth=0)
        for edge in sides:
            axes.axvline(edge, color=QUIET, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.axvline(0, color=QUIET, linewidth=1)
    for y, row in enumerate(rows):
        if row.value is None:
            axes.text(0.5, y, "no estimate", transform=axes.get_yaxis_transform(), ha="center", va="center", color=QUIET)
            continue
        axes.plot([scale * row.low, scale * row.high], [y, y], color=SERIES[0], linewidth=2.4, solid_capstyle="round")
        axes.plot([scale * row.value], [y], color=SERIES[0], marker="D" if compares else "|", markersize=7)
        points, height = [scale * point for point in row.points], [y - 0.27 * compares] * len(row.points)
        dots: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4 if compares else 8}
        axes.plot(points, height, color=SERIES[1], markeredgecolor=PAGE, **dots)
    axes.set_yticks(range(len(rows)), [_shorten(row.label) for row in rows])
    axes.set(ylim=(-0.6, len(rows) - 0.4), xlabel=to_line(chart.x_label))
    if edges:
        span = max(max(edges) - min(edges), 0.02 * scale)  # an axis of thousandths would magnify nothing
        axes.set_xlim(min(edges) - 0.06 * span, max(edges) + 0.06 * span)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=5)
