"""Examples as Arrow rows: the columns, the way in and out, and a table that spills to disk when it grows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from mixwright.errors import InputError, system_error
from mixwright.graders import Grader
from mixwright.records import Example, Task, Text, plain

pc: Any = pyarrow.compute
"""Its functions are made when it is imported; type checkers do not know them."""

COLUMNS = ("id", "task", "prompt", "target", "answer", "level", "knobs", "skills", "chosen", "rejected", "source", "split")
KINDS = {"level": pa.float64(), "skills": pa.list_(pa.string()), "chat": pa.bool_()}
SCHEMA = pa.schema([(name, KINDS.get(name, pa.string())) for name in (*COLUMNS, "extra", "chat")])
"""One column per field of `Example`. `knobs` and `extra` are JSON objects. Where `chat` is true, prompt, target, chosen and
rejected are JSON lists of messages; `texts` reads either form."""

PLAIN_COLUMNS = ("id", "task", "answer", "level", "source", "split")
TEXT_COLUMNS = ("prompt", "target", "chosen", "rejected")
BATCH_ROWS = 8192
BLOCK_ROWS = 20_000
MAX_BYTES_IN_MEMORY = 32 * 2**20


class GradedRows(Protocol):
    """Rows whose answers are judged: what chance levels and grades are found from; a `Corpus` is one."""

    @property
    def table(self) -> pa.Table:
        """Columns of `SCHEMA`."""
        ...

    @property
    def tasks(self) -> Mapping[str, Task]:
        """By name."""
        ...

    def grader(self, task: str) -> Grader:
        """The grader of a task."""
        ...

    def grade(self, example: Example, completion: str, *, cut: bool = False) -> float:
        """Score of a completion, 0..1; of one that ran into the limit of tokens with `cut`."""
        ...


def texts(batch: pa.RecordBatch, column: str) -> list[str]:
    """A text column of a batch as plain strings, chat messages joined by newlines; empty where there is none."""
    values = batch.column(column).to_pylist()
    chats = batch.column("chat").to_pylist()
    return [plain(_decode_text(value, chat)) for value, chat in zip(values, chats, strict=True)]


def encode(examples: Sequence[Example]) -> pa.RecordBatch:
    """Examples as one batch of `SCHEMA`. A row with any chat field becomes chat throughout.

    Raises:
        InputError: a value that is not text, not finite, or not JSON.
    """
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for example in examples:
        chat = any(not isinstance(getattr(example, name), str | None) for name in TEXT_COLUMNS)
        for name in (*PLAIN_COLUMNS, "skills"):
            columns[name].append(getattr(example, name))
        for name in TEXT_COLUMNS:
            columns[name].append(_encode_text(getattr(example, name), chat, "user" if name == "prompt" else "assistant"))
        for name in ("knobs", "extra"):
            columns[name].append(_to_json(getattr(example, name), example))
        columns["chat"].append(chat)
    try:
        arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        for example in examples if len(examples) > 1 else ():
            encode([example])  # raises for the row that it is
        raise _refusal(
            examples[0], "text, numbers and true or false that a file can hold", str(error)[:120], "Correct the row."
        ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def decode(row: Mapping[str, Any]) -> Example:
    """The example that one row of `SCHEMA` (as a dict) holds."""
    texts = {name: _decode_text(row[name], row["chat"]) for name in TEXT_COLUMNS}
    objects: dict[str, Any] = {name: json.loads(row[name]) for name in ("knobs", "extra")}
    return Example(**{name: row[name] for name in PLAIN_COLUMNS}, **texts, **objects, skills=tuple(row["skills"]))


def store_batches(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """A table of the batches: in memory while small, else memory-mapped from a temporary file that needs no cleaning up."""
    batches_in_memory: list[pa.RecordBatch] = []
    size = 0
    stream = iter(batches)
    for batch in stream:
        batches_in_memory.append(batch)
        size += batch.nbytes
        if size > MAX_BYTES_IN_MEMORY:
            return _spill(batches_in_memory, stream)
    return pa.Table.from_batches(batches_in_memory, SCHEMA)


def with_column(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with other values in one of the columns of `SCHEMA`."""
    return table.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), values)


def _spill(batches_in_memory: list[pa.RecordBatch], further_batches: Iterator[pa.RecordBatch]) -> pa.Table:
    handle = tempfile.NamedTemporaryFile(prefix="mixwright-", suffix=".arrow", delete=False)  # noqa: SIM115
    path = Path(handle.name)
    try:
        with handle, pa.ipc.new_file(handle, SCHEMA) as writer:
            while batches_in_memory:
                writer.write_batch(batches_in_memory.pop(0))
            for batch in further_batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except OSError as error:
        raise system_error(error, path) from error
    finally:
        path.unlink()  # the mapping keeps the data until the table goes


def pick_rows(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """The rows of those ascending indices; only they are copied, and only chunks that hold some are read."""
    return pa.Table.from_batches(pick_batches(table, rows), table.schema)


def pick_batches(table: pa.Table, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    """The same, chunk by chunk."""
    rows, batches = np.asarray(rows, np.int64), table.to_batches()  # an empty array may be of another type
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    batch_of_row = np.searchsorted(starts, rows, side="right") - 1
    for batch_index in np.unique(batch_of_row).tolist():
        yield batches[batch_index].take(pa.array(rows[batch_of_row == batch_index] - starts[batch_index]))


def group_rows(keys: pa.Table, rows: np.ndarray) -> dict[tuple[Any, ...], np.ndarray]:
    """The different rows of `keys`, in order of first appearance -> those of `rows` that stand beside each, in order."""
    numbered = keys.append_column("place", pa.array(np.arange(len(keys))))
    found = numbered.group_by(keys.column_names, use_threads=False).aggregate([("place", "list"), ("place", "min")])
    found = found.sort_by("place_min")  # groups are found in no order
    groups = found["place_list"].combine_chunks()
    places = np.split(groups.flatten().to_numpy(), np.cumsum(groups.value_lengths().to_numpy())[:-1])
    values = zip(*(found[name].to_pylist() for name in keys.column_names), strict=True)
    return {value: rows[own] for value, own in zip(values, places, strict=False)}  # of no rows numpy makes one group


def read_groups(table: pa.Table, groups: Iterable[np.ndarray]) -> Iterator[list[Example]]:
    """The examples of each group of row indices, in the table's order; small groups together, `BLOCK_ROWS` or so."""
    waiting: list[np.ndarray] = []
    for group in groups:
        waiting.append(np.sort(group))
        if sum(map(len, waiting)) >= BLOCK_ROWS:
            yield from _read_together(table, waiting)
            waiting = []
    if waiting:
        yield from _read_together(table, waiting)


def _read_together(table: pa.Table, groups: list[np.ndarray]) -> Iterator[list[Example]]:
    rows = np.unique(np.concatenate(groups))
    examples = [decode(row) for row in pick_rows(table, rows).to_pylist()]
    for group in groups:
        yield [examples[position] for position in np.searchsorted(rows, group).tolist()]


def _encode_text(text: Text | None, chat: bool, role: str) -> str | None:
    if text is None or not chat:
        return text  # type: ignore[return-value] - a string, since the row is not chat
    messages = ({"role": role, "content": text},) if isinstance(text, str) else text
    return json.dumps([dict(message) for message in messages], ensure_ascii=False)


def _decode_text(value: str | None, chat: bool) -> Text | None:
    if not chat or value is None:
        return value
    return tuple(json.loads(value))


def _to_json(value: Mapping[str, Any], example: Example) -> str:
    """The columns as one JSON object. Raises InputError for the first that is no JSON."""
    parts = []
    for name, part in value.items():
        try:
            parts.append(f"{json.dumps(name)}: {json.dumps(part, allow_nan=False)}")
        except (TypeError, ValueError, RecursionError) as error:
            got = f"{error} in column {name!r} of row {example.id or example.source!r}"
            remedy = "Correct or drop that column."
            raise _refusal(example, "JSON values in the columns that graders may need", got, remedy) from None
    return f"{{{', '.join(parts)}}}"


def _refusal(example: Example, expected: str, got: str, remedy: str) -> InputError:
    """An `InputError` at the place that an example comes from."""
    file_name, _, line = example.source.rpartition(":")
    if not line.isdigit():
        return InputError(expected, got, remedy, file=example.source or None)
    return InputError(expected, got, remedy, file=file_name, line=int(line))
