"""Line charts as inline SVG: nothing external, colours as CSS variables so that light and dark both work.

One unit of a chart is one CSS pixel at 340 px width, so that its text stays readable on a phone; wider screens show
several side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from markupsafe import Markup, escape

from mixwright.verdict.page.text import to_line

WIDTH, HEIGHT, LEFT, TOP, LINE_HEIGHT = 340, 250, 44, 12, 18
"""CSS pixels: the chart, its plotting area's height and left and top edges, and a line of text."""
DASHES = ("none", "6 3", "2 3", "7 3 2 3")
"""Line styles of the first four series, which then repeat."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart, with its interval."""

    name: str
    """Name in the legend."""
    x: tuple[float, ...]
    """Positions, ascending, in the unit of `Lines.x_label`."""
    y: tuple[float, ...]
    """One share per position, 0..1; charts show percent."""
    low: tuple[float, ...]
    """Lower end of the interval at each position."""
    high: tuple[float, ...]
    """Upper end of the interval at each position."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines over time with interval bands; the vertical axis goes from 0 to 100 %."""

    alternative: str
    """Text for those who do not see the chart."""
    x_label: str
    """Name and unit of the horizontal axis."""
    series: tuple[Series, ...]
    """Lines of the chart; one without points is not drawn, nor is a chart of such."""


def render_lines(chart: Lines) -> Markup:
    """Return the chart as an `<svg>` element."""
    series = [line for line in chart.series if line.x]
    if not series:
        return Markup()
    places = [x for line in series for x in line.x]
    low_x, high_x = min(0.0, *places), max(places)
    span = (high_x - low_x) or 1.0
    bottom = TOP + HEIGHT

    def point(x: float, y: float) -> str:
        return f"{LEFT + (WIDTH - LEFT - 12) * (x - low_x) / span:.1f},{bottom - HEIGHT * min(max(y, 0.0), 1.0):.1f}"

    def write(x: float, y: float, text: str, anchor: str) -> str:
        return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(to_line(text, limit=36))}</text>'

    def draw(line: Series, place: int) -> str:
        band = [*zip(line.x, line.high, strict=True), *reversed([*zip(line.x, line.low, strict=True)])]
        edge, middle = (" ".join(point(x, y) for x, y in ends) for ends in (band, zip(line.x, line.y, strict=True)))
        colour, dash = f"var(--series-{place % 4 + 1})", DASHES[place % 4]
        y = bottom + 44 + LINE_HEIGHT * place
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        return (
            f'<polygon points="{edge}" fill="{colour}" opacity="0.16"/><polyline points="{middle}" fill="none" {style}/>'
            f'<line x1="{LEFT}" x2="{LEFT + 28}" y1="{y - 4}" y2="{y - 4}" {style}/>'
            f"{write(LEFT + 36, y, line.name, 'start')}"
        )

    axes = [
        write(LEFT, bottom + LINE_HEIGHT, f"{low_x:g}", "start"),
        write(WIDTH, bottom + LINE_HEIGHT, f"{high_x:g}", "end"),
    ]
    axes.append(write((LEFT + WIDTH) / 2, bottom + LINE_HEIGHT, chart.x_label, "middle"))
    for share in (0, 50, 100):
        y = bottom - HEIGHT * share / 100
        axes += [
            f'<line class="rule" x1="{LEFT}" x2="{WIDTH}" y1="{y:g}" y2="{y:g}"/>',
            write(LEFT - 6, y + 4, f"{share}", "end"),
        ]
    drawn = "".join(draw(line, place) for place, line in enumerate(series))
    height = bottom + 34 + LINE_HEIGHT * len(series)
    name = quoteattr(to_line(chart.alternative, limit=1000))
    svg = f'<svg class="lines" role="img" aria-label={name} viewBox="0 0 {WIDTH} {height}">{"".join(axes)}{drawn}</svg>'
    return Markup(svg)
