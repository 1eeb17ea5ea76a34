"""Table of answers: a row per item and sample that one model gave, with a typed header.

A model, a server or an evaluation log writes it; success and everything that is said of it is computed from it
(`answers/score.py`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mixwright.corpus.rows import group_rows, pc
from mixwright.errors import InputError
from mixwright.estimates.items import Items
from mixwright.estimates.outcome import MEASUREMENT_BY_DECODING
from mixwright.records import Interval
from mixwright.records.serial import from_data, to_data
from mixwright.run.folder import check_file, write_table

HEADER_KEY = b"mixwright.answers"
"""Key of the header in the metadata of the Parquet file: JSON with `format` and `header`."""
FORMAT = 2
Group = tuple[str, float | None]
"""A task and one of its levels; level None stands for the whole task."""
_TEXT, _NUMBER = pa.string(), pa.float64()
SCHEMA = pa.schema(
    {
        "item": _TEXT,
        "task": _TEXT,
        "level": _NUMBER,
        "decoding": _TEXT,
        "sample": pa.int32(),
        "prompt": _TEXT,
        "gold": _TEXT,
        "text": _TEXT,
        "read": _TEXT,
        "cut": pa.bool_(),
        "tokens": pa.list_(pa.int32()),
        "logprob": _NUMBER,
        "score": _NUMBER,
        "right": _NUMBER,
        "parts": pa.map_(_TEXT, pa.bool_()),
        "swapped": _NUMBER,
        "chance": _NUMBER,
        "loss": _NUMBER,
        "preference": _NUMBER,
        "margin": _NUMBER,
        "columns": pa.map_(_TEXT, _TEXT),
        "recalled": _NUMBER,
        "completed": _NUMBER,
    }
)
"""Columns, nullable but for the first two:

- `item` (unique over all tasks), `task`, `level`; `decoding` (`greedy` or `sampled`), `sample` (from 0): both null on the
  row of what was read of an item without writing;
- `prompt`, `gold` (the right answer), `text` (what the model wrote), `read` (what is graded of it, if not all), `cut` (at
  the limit of tokens), `tokens`, `logprob` (of all tokens, nats);
- `score` (the grader's, 0..1), `right` (what of it counts as success, 0..1), `parts` (of a greedy answer -> whether right);
- `swapped` (pseudo-value of S: success on other prompts of the cell; of the item under this decoding), `chance` (what the
  best rule without the skill earns on the item); each stands on all rows;
- read without writing: `loss` (of the target, nats per token), `preference`
  (1 if the chosen answer is likelier, 0.5 for a tie), `margin` (chosen minus rejected, nats);
- `columns`, on the first row of an item: its other columns whose values are short, such as its source;
- of a lost answer, read behind the beginning of the earlier model's (`measure/recalled.py`): `recalled` (share of other
  right answers of the task that are less probable than its own), `completed` (1 if its own is the likeliest, 0 if not).
"""
MAX_CHARACTERS = 40
"""Characters of a value up to which it is short."""
READ_COLUMNS = ("loss", "preference", "margin")
"""Readings of single items, each with a column of its name."""


@dataclass(frozen=True, slots=True)
class SwapTest:
    """How far a cell's answers depend on their prompts, under one decoding."""

    swapped: Interval
    """S, 0..1."""
    dependence: Interval
    """D = success - S, -1..1."""
    kappa: Interval
    """D / (1 - S), -1..1."""
    p: float | None
    """Of the permutation test; None if none was made."""


@dataclass(frozen=True, slots=True)
class CellNull:
    """What one cell's success is compared with."""

    task: str
    """Task name."""
    level: float | None
    """Level of the cell."""
    chance: Interval
    """Chance level, 0..1."""
    rule: str
    """Rule that earns it."""
    tests: Mapping[str, SwapTest]
    """By decoding; empty for fewer than three items. Small cells of a task are tested together."""


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """Model that graded answers which no grader reads."""

    name: str
    """Command, or model and address of its server."""
    prompt: str
    """Digest of what it is asked, without items and answers."""
    tasks: tuple[str, ...]
    """Tasks that it graded."""
    labels: Mapping[str, float] = field(default_factory=dict)
    """Item -> label of its answer by the user, 0..1; those of a sample drawn at random, or none."""


@dataclass(frozen=True, slots=True)
class Header:
    """How the answers came about."""

    log: str = ""
    """Form of the evaluation log that they were read from; empty if a model wrote them here."""
    nulls: tuple[CellNull, ...] = ()
    """Of every cell; empty where no grader can be asked about other answers."""
    template: tuple[str, ...] = ()
    """Arguments of the chat template, NAME=VALUE."""
    judge: ModelJudge | None = None
    """Model that graded some of them; None where graders, or a harness, did."""


class Decoded(NamedTuple):
    """Answers under one decoding."""

    rows: NDArray[np.int64]
    """Their rows."""
    counts: NDArray[np.int64]
    """Shape (items,): how many an item has."""
    success: NDArray[np.float64]
    """Shape (items,): share of an item's answers that are right, NaN without any."""
    swapped: NDArray[np.float64]
    """Shape (items,): pseudo-values of S, NaN if they are not known."""


@dataclass(frozen=True)
class Answers:
    """Answers of one model."""

    table: pa.Table
    """Rows of `SCHEMA`, those of an item in the order of its samples."""
    header: Header = Header()

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], header: Header = Header()) -> Answers:
        """Make the table of rows that lack some of its columns."""
        rows = list(rows)
        columns = {field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in SCHEMA}
        return cls(pa.table(columns, schema=SCHEMA), header)

    @classmethod
    def read(cls, path: Path) -> Answers:
        """Read what `write` wrote. Raises InputError for another file."""
        check_file(path)
        try:
            table = pq.read_table(path)
            found = json.loads((table.schema.metadata or {})[HEADER_KEY])
            if found["format"] != FORMAT or table.schema.names != SCHEMA.names:
                raise ValueError(f"format {found['format']}, columns {', '.join(table.schema.names)}")
            return cls(table.cast(SCHEMA), from_data(Header, found["header"]))
        except FileNotFoundError:
            raise InputError("a file of answers", "nothing", "Measure again, in a new folder.", file=path) from None
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, RecursionError) as error:
            raise InputError("a Parquet file of answers", str(error)[:120], "Measure again.", file=path) from None

    def write(self, path: Path) -> None:
        """Write one Parquet file, atomically. Raises InputError when the system refuses."""
        header = json.dumps({"format": FORMAT, "header": to_data(self.header)}).encode()
        write_table(path, self.table.replace_schema_metadata({HEADER_KEY: header}))

    def __len__(self) -> int:
        """Return the number of answers, all samples of all items."""
        return len(self.table) - self.table["decoding"].null_count

    def read_alone(self) -> Answers:
        """Return the rows of what was read without writing."""
        return Answers(self.table.filter(pc.is_null(self.table["decoding"])))

    def first_rows(self) -> list[dict[str, Any]]:
        """Return what was written first for each item: greedy if there is a greedy answer; nothing of unknown text."""
        names = {"item": "example", "gold": "answer", "text": "completion"}
        first = self.table.take(np.sort(self.first))
        columns = ("item", "task", "level", "prompt", "gold", "text", "score", "cut", "tokens", "logprob")
        rows = first.select(columns).rename_columns([names.get(name, name) for name in columns]).to_pylist()
        return [row for row in rows if row["completion"] is not None]

    def of_tasks(self, tasks: Collection[str]) -> Answers:
        """Return the answers of some tasks."""
        return replace(self, table=self.table.filter(self._is_of(tasks)))

    def without_tasks(self, tasks: Collection[str]) -> Answers:
        """Return the answers of the other tasks."""
        return replace(self, table=self.table.filter(pc.invert(self._is_of(tasks))))

    def _is_of(self, tasks: Collection[str]) -> Any:
        return pc.is_in(self.table["task"], pa.array(list(tasks), _TEXT))

    def followed_by(self, *others: Answers) -> Answers:
        """Return these answers and those of other tables to other items, with the nulls of all."""
        every = (self, *others)
        header = replace(self.header, nulls=tuple(null for one in every for null in one.header.nulls))
        return Answers(pa.concat_tables([one.table for one in every]), header)

    def column(self, name: str) -> NDArray[Any]:
        """Shape (rows,): values of a column; NaN or None where there is none."""
        return self.table[name].to_numpy()

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Shape (rows,): which item, from 0 in order of first appearance, a row is of."""
        ids = self.table["item"].combine_chunks().dictionary_encode()  # dictionaries keep the order of first appearance
        return ids.indices.to_numpy().astype(np.int64)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """Shape (items,): first row of each item."""
        return np.unique(self.place, return_index=True)[1].astype(np.int64)

    def of_items(self, name: str) -> NDArray[np.float64]:
        """Shape (items,): a column of numbers that are the same on all rows of an item that have one; NaN without any."""
        column, found = self.column(name), np.full(self.item_count, np.nan)
        rows = np.flatnonzero(~np.isnan(column))
        found[self.place[rows]] = column[rows]
        return found

    @property
    def item_count(self) -> int:
        """Items that have rows."""
        return len(self.first)

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """Shape (items,): number of each item's cell among `cells`."""
        cell = np.empty(self.item_count, np.int64)
        for number, places in enumerate(self.cells.values()):
            cell[places] = number
        return cell

    @property
    def items(self) -> Items:
        """The items, sorted."""
        return self._items_and_places[0]

    @property
    def places(self) -> NDArray[np.int64]:
        """Shape (items,): place, in order of first appearance, of each of the sorted items."""
        return self._items_and_places[1]

    @cached_property
    def _items_and_places(self) -> tuple[Items, NDArray[np.int64]]:
        ids = self.table["item"].combine_chunks().take(pa.array(self.first))
        return Items.sort(list(self.cells), self.cell, ids)

    @cached_property
    def cells(self) -> dict[Group, NDArray[np.int64]]:
        """Task and level -> places of its items, in order of first appearance."""
        return self._group_items("task", "level")

    @cached_property
    def groups(self) -> dict[Group, NDArray[np.int64]]:
        """Places of the items of each whole task (level None), then of each cell; a task of one level None stands once."""
        levels = {cell: places for cell, places in self.cells.items() if cell[1] is not None}
        return {(task, None): places for (task,), places in self._group_items("task").items()} | levels

    def _group_items(self, *columns: str) -> dict[Any, NDArray[np.int64]]:
        """Values of columns -> places of the items that have them."""
        return group_rows(self.table.select(columns).take(self.first), np.arange(self.item_count))

    @cached_property
    def parts(self) -> dict[int, dict[str, bool]]:
        """Place of an item -> parts of its greedy answer, such as fields of JSON, and whether each is right."""
        rows = self.by_decoding["greedy"].rows
        parts = self.table["parts"].take(rows).to_pylist()
        return {place: dict(own) for place, own in zip(self.place[rows].tolist(), parts, strict=True) if own}

    @cached_property
    def holders(self) -> dict[tuple[str, str], NDArray[np.int64]]:
        """One of the items' other columns and a value -> places of the items that have it."""
        columns = self.table["columns"].combine_chunks().take(pa.array(self.first))
        place = np.repeat(np.arange(len(columns)), np.diff(columns.offsets.to_numpy()))
        return group_rows(pa.table({"name": columns.keys, "value": columns.items}), place)

    @cached_property
    def decodings(self) -> tuple[str, ...]:
        """Decodings that have rows."""
        found = set(self.table["decoding"].unique().to_pylist())
        return tuple(name for name in MEASUREMENT_BY_DECODING if name in found)

    @cached_property
    def by_decoding(self) -> dict[str, Decoded]:
        """Every decoding -> its answers, of which there may be none."""
        decodings, right, swapped = (self.column(name) for name in ("decoding", "right", "swapped"))
        found, size = {}, self.item_count
        for name in MEASUREMENT_BY_DECODING:
            rows = np.flatnonzero(decodings == name)
            places = self.place[rows]
            sums = np.bincount(places, right[rows], minlength=size).astype(float)
            counts = np.bincount(places, minlength=size).astype(np.int64)
            success = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
            swapped_of_items = np.full(size, np.nan)
            swapped_of_items[places] = swapped[rows]
            found[name] = Decoded(rows, counts, success, swapped_of_items)
        return found

    def with_columns(self, header: Header, **values: NDArray[np.float64]) -> Answers:
        """Return the same answers with other columns of numbers, NaN for null."""
        table = self.table
        for name, column in values.items():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, SCHEMA.field(name), pa.array(column, _NUMBER, from_pandas=True))
        return replace(self, table=table, header=header)


def short_columns(extra: Mapping[str, object]) -> dict[str, str]:
    """Other columns of a row whose values are short enough to group items by."""
    return {
        name: str(value)
        for name, value in extra.items()
        if isinstance(value, str | int | bool) and 0 < len(str(value)) <= MAX_CHARACTERS
    }
