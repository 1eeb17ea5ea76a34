"""What a section can show, as plain data: the page and the terminal render the same blocks.

Strings in blocks are raw text from anywhere; escaping is the renderers' task and happens in one place each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mixwright.records import Claim, ClaimKind

Tone = Literal["plain", "good", "bad", "caution"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One short text."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Fact:
    """One number of the headline, already formatted."""

    label: str
    value: str
    note: str = ""
    """Interval and word that belong to the value."""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict in one sentence, with the few numbers that carry it."""

    text: str
    tone: Tone = "plain"
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of formatted cells; the first cell of a row names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numeric: tuple[int, ...] = ()
    """Columns to align right."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims with their intervals, most important first."""

    caption: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell of a heat map."""

    before: float | None
    """0..1; None where it was not measured."""
    after: float | None
    """0..1; None where it was not measured."""
    mark: ClaimKind


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Tasks x levels, before and after, with numbers in every cell."""

    caption: str
    columns: tuple[str, ...]
    """Levels."""
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    """(task, one cell per column or None where the corpus has none)."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart, with its interval."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines over time with interval bands."""

    caption: str
    alternative: str
    """What the chart shows, for those who do not see it."""
    x_label: str
    y_label: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One estimate with its interval and the raw points under it."""

    label: str
    value: float | None
    """None when nothing could be estimated."""
    low: float
    high: float
    points: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Forest:
    """Intervals on one axis."""

    caption: str
    alternative: str
    """What the chart shows, for those who do not see it."""
    x_label: str
    rows: tuple[ForestRow, ...]
    margin: float | None = None
    """Half-width around 0 of differences that do not matter; None draws no zero line either."""
    scale: float = 1.0
    """Factor from the rows' numbers to the axis: 100 for shares shown in percent."""


@dataclass(frozen=True, slots=True)
class Strips:
    """States over time, one strip per row: 0 under the band, 1 in it, 2 over it."""

    caption: str
    alternative: str
    """What the chart shows, for those who do not see it."""
    x_label: str
    x: tuple[float, ...]
    """Left edges of the columns, then the last right edge."""
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    """(name, one state per column; None where nothing was known)."""
    names: tuple[str, str, str]
    """Of the three states."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What the model wrote for one item, before and after."""

    title: str
    prompt: str
    answer: str
    before: str
    after: str
    score_before: float
    score_after: float


@dataclass(frozen=True, slots=True)
class Texts:
    """Completions before and after, side by side."""

    caption: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A command or path to copy."""

    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Details that stay closed until somebody wants them."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Small multiples: charts side by side where there is room."""

    blocks: tuple[Block, ...]


Chart = Lines | Forest | Strips
Block = Paragraph | Headline | Table | Claims | HeatMap | Lines | Forest | Strips | Texts | Code | Fold | Grid


def filled(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that hold something; folds and grids lose what is empty in them, and go when nothing is left."""
    kept: list[Block] = []
    for block in blocks:
        if isinstance(block, Fold | Grid):
            inner = tuple(filled(block.blocks))
            if inner:
                kept.append(replace(block, blocks=inner))
        elif _content(block):
            kept.append(block)
    return kept


def _content(block: Block) -> object:
    """What a block would be empty without."""
    match block:
        case Table() | HeatMap() | Forest() | Strips():
            return block.rows
        case Claims():
            return block.claims
        case Lines():
            return any(series.x for series in block.series)
        case Texts():
            return block.pairs
        case Paragraph() | Headline() | Code():
            return block.text
        case _:
            return True
