"""Blocks of a page or a terminal report, as plain data.

Strings in blocks are raw text from anywhere; escaping is the renderers' task and happens in one place each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from markupsafe import Markup

from mixwright.records.verdict import AnswerPair
from mixwright.verdict.page.text import NO_VALUE_SIGN

Tone = Literal["plain", "good", "bad", "caution"]
CONTENTS = ("rows", "svg", "items", "pairs", "text")
"""Fields of blocks that hold something; each block has one of them, or blocks of its own."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One short text."""

    text: str
    """Whole sentences."""
    tone: Tone = "plain"
    """Colour."""
    lead: str = ""
    """Words before the text that name its subject, in bold; may be empty."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one sentence."""

    text: str
    """One sentence."""
    tone: Tone = "plain"
    """Colour of the badge, and of a line before a sentence without one."""
    badge: str = ""
    """The answer in two words with a sign; may be empty."""
    note: str = ""
    """Line under the sentence; may be empty."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of formatted cells; the first cell of a row names the row."""

    caption: str
    """Heading of the table."""
    columns: tuple[str, ...]
    """Headings of the columns."""
    rows: Sequence[tuple[str, ...]]
    """Formatted cells, one per column."""
    numeric: tuple[int, ...] = ()
    """Columns to align right."""


@dataclass(frozen=True, slots=True)
class RowSide:
    """One of several texts that are shown side by side."""

    name: str
    """Name and place of the text."""
    text: str
    """The text, or the part shown."""
    answer: str = ""
    """Answer that belongs to it; may be empty."""
    tone: Tone = "plain"
    """Whether it is right."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Texts that belong together, usually two rows or the answers of two models."""

    sides: tuple[RowSide, ...]
    """In the order shown."""
    note: str = ""
    """Remark under the texts; may be empty."""
    title: str = ""
    """Heading, such as the prompt of the answers; may be empty."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Texts side by side, with their difference marked."""

    caption: str
    """Heading of the list."""
    items: tuple[SideBySide, ...]
    """In the order shown."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An inline drawing."""

    caption: str
    """Heading of it."""
    svg: Markup
    """An `<svg>` element, escaped by who drew it, with a text for those who do not see it; empty for none."""


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One estimate with its interval."""

    label: str
    """Name of the row."""
    value: float | None
    """None when nothing could be estimated."""
    low: float
    """Lower end of the interval, in the unit of `value`; not read when that is None."""
    high: float
    """Upper end of it."""
    points: tuple[float, ...] = ()
    """Raw values under the estimate, one per seed; empty when there are none."""
    note: str = ""
    """Word at the row's end; may be empty."""
    start: float | None = None
    """Value before, from which a line leads to `value`; None draws none."""
    text: str = ""
    """Numbers of the row, formatted; empty takes the estimate and its interval."""
    tone: Tone = "plain"
    """Colour."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Intervals on one axis, with their numbers."""

    caption: str
    """Heading of the chart."""
    x_label: str
    """Name and unit of the axis."""
    rows: tuple[ForestRow, ...]
    """From top to bottom."""
    margin: float | None = None
    """Half-width around 0 of differences that do not matter; None draws no zero line either."""
    scale: float = 1.0
    """Factor from the rows' numbers to the axis: 100 for shares shown in percent."""
    bounds: tuple[float, float] | None = None
    """Ends of the axis; None takes those of the rows."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Browser of answers, with filters and search."""

    names: tuple[str, ...]
    """Names of both models."""
    pairs: Sequence[AnswerPair]
    """In the order shown."""
    graded: bool = True
    """Whether scores mean anything."""


@dataclass(frozen=True, slots=True)
class Code:
    """A command or path to copy."""

    caption: str
    """Purpose of the text."""
    text: str
    """The text, as it is copied."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Details that stay closed until somebody wants them."""

    summary: str
    """The line that stays visible."""
    blocks: tuple[Block, ...]
    """Blocks under it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Small multiples: charts side by side where there is room."""

    blocks: tuple[Block, ...]
    """Charts, in reading order."""


Block = Paragraph | Headline | Table | Rows | Picture | Forest | Answers | Code | Fold | Grid


class Part(NamedTuple):
    """A part of a page behind its first screen."""

    name: str
    """Anchor."""
    title: str
    """Heading."""
    blocks: Sequence[Block]
    """Content."""
    note: str = ""
    """Few words after the heading, such as a count."""


def tabulate(caption: str, rows: Sequence[Mapping[str, str]], texts: Collection[str]) -> Table:
    """Return a table of rows by column, without the columns that have a value in no row.

    Args:
        caption: heading of the table.
        rows: column -> formatted cell; all rows have the same columns.
        texts: columns of words; the others are numbers, aligned right.
    """
    columns = [name for name in (rows[0] if rows else ()) if any(row[name] != NO_VALUE_SIGN for row in rows)]
    numeric = tuple(place for place, name in enumerate(columns) if name not in texts)
    return Table(caption, tuple(columns), [tuple(row[name] for name in columns) for row in rows], numeric)


def keep_filled(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks that hold something; folds and grids lose their empty blocks, and go when nothing is left."""
    filled_blocks: list[Block] = []
    for block in blocks:
        if isinstance(block, Fold | Grid):
            inner_blocks = tuple(keep_filled(block.blocks))
            if inner_blocks:
                filled_blocks.append(replace(block, blocks=inner_blocks))
        elif any(getattr(block, name, ()) for name in CONTENTS):
            filled_blocks.append(block)
    return filled_blocks
