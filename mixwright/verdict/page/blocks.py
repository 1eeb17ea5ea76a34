"""Blocks that a section can show, as plain data: the page and the terminal render the same ones.

Strings in blocks are raw text from anywhere; escaping is the renderers' task and happens in one place each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mixwright.estimates.readings import Outcome
from mixwright.records import Claim, ClaimKind, Interval

Tone = Literal["plain", "good", "bad", "caution"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One short text."""

    text: str
    """Whole sentences."""
    tone: Tone = "plain"
    """How it is coloured."""
    lead: str = ""
    """Words before the text that say what it is, in bold; may be empty."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One number of the headline, already formatted."""

    label: str
    """What the number is."""
    value: str
    """The number with its unit, as shown."""
    note: str = ""
    """Interval and word that belong to the value."""
    tone: Tone = "plain"
    """How it is coloured."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict in one sentence, with the few numbers that carry it."""

    text: str
    """One sentence."""
    tone: Tone = "plain"
    """How it is coloured."""
    facts: tuple[Fact, ...] = ()
    """Numbers beside the sentence, most important first."""


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
class Claims:
    """Claims with their intervals, most important first."""

    caption: str
    """Heading of the list."""
    claims: tuple[Claim, ...]
    """As the verdict judged them."""
    outcome: Outcome = "greedy"
    """What they are about, which sets the unit."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell of a heat map."""

    before: float | None
    """0..1; None where it was not measured."""
    after: float | None
    """0..1; None where it was not measured."""
    mark: ClaimKind
    """What the change is called; it sets the colour."""
    change: Interval | None = None
    """After minus before; None where nothing could be compared."""
    beside: tuple[str, ...] = ()
    """Further short texts of the cell: the other decoding, the chance level."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Tasks x levels, before and after, with numbers in every cell."""

    caption: str
    """Heading of the map."""
    columns: tuple[str, ...]
    """Levels."""
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    """(task, one cell per column or None where the corpus has none)."""


@dataclass(frozen=True, slots=True)
class ShareCell:
    """One cell of a map of shares."""

    share: float
    """0..1; sets the colour."""
    text: str
    """What stands in it."""
    beside: str = ""
    """Further short text under it."""


@dataclass(frozen=True, slots=True)
class ShareMap:
    """Names x columns, with a share in each cell that has one."""

    caption: str
    """Heading of the map, with what its signs mean."""
    columns: tuple[str, ...]
    """Headings."""
    rows: tuple[tuple[str, tuple[ShareCell | None, ...]], ...]
    """(name, one cell per column or None where there is nothing)."""


@dataclass(frozen=True, slots=True)
class RowSide:
    """One row of data."""

    name: str
    """What it is and where it stands."""
    text: str
    """Its prompt, or the part shown."""
    answer: str = ""
    """Its answer; may be empty."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Rows that belong together, usually two."""

    sides: tuple[RowSide, ...]
    """In the order shown."""
    note: str = ""
    """What differs; may be empty."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of data side by side."""

    caption: str
    """Heading of the list."""
    items: tuple[SideBySide, ...]
    """In the order shown."""


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
    """Lines over time with interval bands."""

    caption: str
    """Heading of the chart."""
    alternative: str
    """What the chart shows, for those who do not see it."""
    x_label: str
    """Name and unit of the horizontal axis."""
    y_label: str
    """Name of the vertical axis, which goes from 0 to 100 %."""
    series: tuple[Series, ...]
    """Lines of the chart; one without points is not drawn."""


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One estimate with its interval and the raw points under it."""

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
    """Short text at the row's end; may be empty."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Intervals on one axis."""

    caption: str
    """Heading of the chart."""
    alternative: str
    """What the chart shows, for those who do not see it."""
    x_label: str
    """Name and unit of the axis."""
    rows: tuple[ForestRow, ...]
    """From top to bottom."""
    margin: float | None = None
    """Half-width around 0 of differences that do not matter; None draws no zero line either."""
    scale: float = 1.0
    """Factor from the rows' numbers to the axis: 100 for shares shown in percent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one more checkpoint wrote for an item."""

    name: str
    """Of the checkpoint."""
    text: str
    """Its completion."""
    score: float
    """Grade of it, 0..1."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What the model wrote for one item, before and after, and what others wrote."""

    title: str
    """Task and level."""
    prompt: str
    """The item's prompt."""
    answer: str
    """The gold answer; empty when there is none."""
    before: str
    """Completion before training."""
    after: str
    """Completion after training."""
    score_before: float
    """Grade of `before`, 0..1."""
    score_after: float
    """Grade of `after`, 0..1."""
    names: tuple[str, str] = ("before", "after")
    """What the two are called."""
    between: tuple[Answer, ...] = ()
    """Answers of other checkpoints, shown between the two."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Completions before and after, side by side."""

    caption: str
    """Heading of the list."""
    pairs: tuple[Pair, ...]
    """In the order shown."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Words to explain here, if they stand here first; `verdict/page/terms.py` has their meanings."""

    words: tuple[str, ...]
    """Keys of `terms.MEANING_BY_TERM`; others are left out."""
    meanings: tuple[str, ...] = ()
    """One per word, filled in where it stands first."""


@dataclass(frozen=True, slots=True)
class Code:
    """A command or path to copy."""

    caption: str
    """What the text is for."""
    text: str
    """What is copied, as it is."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Details that stay closed until somebody wants them."""

    summary: str
    """The line that stays visible."""
    blocks: tuple[Block, ...]
    """What opens under it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Small multiples: charts side by side where there is room."""

    blocks: tuple[Block, ...]
    """Charts, in reading order."""


Chart = Lines | Forest
Block = (
    Paragraph | Headline | Table | Claims | HeatMap | ShareMap | Rows | Lines | Forest | Texts | Terms | Code | Fold | Grid
)

Part = tuple[str, str, int, list[Block]]
"""(name, title, order, blocks) of one section."""
FIRST_SCREEN_ORDER = 20
"""Sections below this order stand above the fold."""


def folded_claims(summary: str, caption: str, claims: Sequence[Claim], outcome: Outcome = "greedy") -> Fold:
    """Claims that stay closed."""
    return Fold(summary, (Claims(caption, tuple(claims), outcome),))


def keep_filled(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that hold something; folds and grids lose what is empty in them, and go when nothing is left."""
    filled_blocks: list[Block] = []
    for block in blocks:
        if isinstance(block, Fold | Grid):
            inner_blocks = tuple(keep_filled(block.blocks))
            if inner_blocks:
                filled_blocks.append(replace(block, blocks=inner_blocks))
        elif _content(block):
            filled_blocks.append(block)
    return filled_blocks


def _content(block: Block) -> object:
    """What a block would be empty without."""
    match block:
        case Table() | HeatMap() | ShareMap() | Forest():
            return block.rows
        case Claims():
            return block.claims
        case Lines():
            return any(series.x for series in block.series)
        case Texts():
            return block.pairs
        case Rows():
            return block.items
        case Terms():
            return block.words
        case Paragraph() | Headline() | Code():
            return block.text
        case _:
            return True
