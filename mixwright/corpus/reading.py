"""Readers of raw rows from files, addresses, `datasets` folders and hub names, each row with the place it stands in.

Left out on purpose: what the columns mean (`columns.py`) and generated items (`_gym.py`).
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from mixwright.config import is_address, sources_of
from mixwright.corpus.remote import fetch_file
from mixwright.errors import InputError, join_some, missing_extra
from mixwright.run.folder import check_regular


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object. Raises ValueError for a key that stands there twice: the first value would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} twice")
    return record


DECODER = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
PARQUET_BATCH_ROWS = 2048
"""Rows of a Parquet file in memory at a time."""
LINES_OR_LIST = (".jsonl", ".ndjson", ".json")
CELLS = (".csv", ".tsv")
"""Endings of tables of text."""
PACKABLE = (*LINES_OR_LIST, *CELLS)
SUFFIXES = (*PACKABLE, ".parquet", *(end + packed for packed in (".gz", ".zst") for end in PACKABLE))
SPACE = re.compile(r"[ \t\n\r]*")
"""What may stand between two values of JSON."""
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
READ_BYTES = 2**22
"""Bytes of a file that is read as a whole, at a time."""
MAX_LINE_BYTES = 2**28
"""Longest line of a text file, bytes unpacked: a packed file can hold more than the memory does."""
MAX_BLANK_LINES = 100_000
"""Blank lines one after another in a file of rows: a packed file of a few kilobytes can hold more than anyone waits for."""
MAX_UNPACKED_BYTES = 2**31
"""Size of a packed JSON list, which is read as a whole; one with a row per line is not."""
DATASETS_FOLDER_FILES = ("dataset_dict.json", "state.json")
"""Files of a folder that datasets' save_to_disk wrote."""
SPLIT_BY_NAME = {"train": "train", "training": "train"}
SPLIT_BY_NAME |= dict.fromkeys(("eval", "test", "validation", "valid", "val", "dev"), "eval")
"""What a split is called in files -> our name."""


class RowLocation(NamedTuple):
    """Where a row stands."""

    file: str
    """Path, hub name or generator, as the settings give it."""
    line: int | None = None
    """Line of a text file, 1-based."""
    row: int | None = None
    """Row of a table, 1-based."""
    task: str | None = None
    """Task that the file stands for, where several are read together: its name."""

    def __str__(self) -> str:
        return self.file + (f":{self.line}" if self.line else f"#{self.row}" if self.row else "")

    def error(self, expected: str, got: str, remedy: str) -> InputError:
        """An `InputError` at this place."""
        file = self.file if self.row is None else f"{self.file}, row {self.row}"
        return InputError(expected, got, remedy, file=file, line=self.line)


Rows = Iterator[tuple[Any, RowLocation]]


def read_rows(source: str, split: str, *, relative_to: Path = Path(), notes: list[str] | None = None) -> Rows:
    """The rows of one file, several files (`folder`, `folder/*.json`: a task each), a file behind an address (`s3://...`), a
    `datasets` folder or a hub name (`owner/name`, `owner/name:config`, `owner/name:config:split`); or of several of these, a
    line each.

    Args:
        source: as the user wrote it; paths are relative to `relative_to`.
        split: `eval` takes a data set's test or validation split, anything else its train split.
        relative_to: folder of the file that names the source.
        notes: what a reader of the rows should know is appended here.

    Raises:
        InputError: not found, unknown form, broken, empty.
    """
    if not source.strip():
        remedy = "Name one, or leave the setting out."
        raise InputError("a file, a datasets folder or a data set's name", "an empty text", remedy)
    path, notes = relative_to / source, [] if notes is None else notes
    if len(sources_of(source)) > 1:
        for one in sources_of(source):
            task = task_of(Path(one))
            for row, location in read_rows(one, split, relative_to=relative_to, notes=notes):
                yield row, location._replace(task=location.task or task)
        return
    check_regular(path)
    if is_address(source):
        rows = _read_address(source, notes)
    elif files := files_of(source, relative_to):
        rows = _read_several(files, path, source, notes)
    elif path.is_dir():
        rows = _read_datasets_folder(path, split)
    elif path.is_file():
        rows = _read_file(path, notes)
    elif suffix_of(path) in SUFFIXES or source.startswith((".", "/", "~")) or source.count("/") > 1 or "*" in source:
        raise InputError(
            "a file", "nothing there", "Correct the path. In a settings file it starts from that file's folder.", file=path
        )
    else:
        rows = _read_hub(source, split)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - counts
        yield row
    if not count:
        raise InputError("at least one row", "an empty source", "Add rows, or name another source.", file=source)


def suffix_of(path: Path) -> str:
    """The end of a file's name that says its form, `.jsonl.gz` as a whole."""
    ends = [end.lower() for end in path.suffixes[-2:]]
    return "".join(ends) if ends[-1:] in ([".gz"], [".zst"]) else "".join(ends[-1:])


MANIFEST_SUFFIX = ".manifest.json"
"""End of the name of a file in which Mixwright says how it made the rows beside it."""


def files_of(source: str, relative_to: Path = Path()) -> list[Path]:
    """The files of a source that names several: a pattern with `*`, or a folder of data files; else none.

    Raises:
        InputError: files that are splits, not tasks (`train.jsonl` beside `test.jsonl`).
    """
    if len(sources := sources_of(source)) > 1:
        return [file for one in sources for file in files_of(one, relative_to) or [relative_to / one] if file.is_file()]
    path = relative_to / source
    if path.is_dir():
        paths = [] if any((path / mark).is_file() for mark in DATASETS_FOLDER_FILES) else path.iterdir()
    else:
        root = Path(path.anchor) if path.is_absolute() else relative_to
        paths = root.glob(str(path.relative_to(root))) if "*" in source and not path.exists() else []
    data_files = [data_file for data_file in paths if suffix_of(data_file) in SUFFIXES and data_file.name[:1] != "."]
    data_files = [data_file for data_file in data_files if not data_file.name.endswith(MANIFEST_SUFFIX)]
    check_regular(*data_files)
    files = sorted(filter(Path.is_file, data_files))
    splits = [data_file.name for data_file in files if data_file.name.partition(".")[0].lower() in SPLIT_BY_NAME]
    if splits:
        raise InputError(
            "a folder with a file for each task", f"{splits[0]}, which is a split", "Name one file in it.", file=path
        )
    return files


def folder_of(source: str, relative_to: Path = Path()) -> Path | None:
    """The folder that a source's rows stand in; None for a name on the hub."""
    path = relative_to / sources_of(source)[0]
    if is_address(source):
        return None
    if path.exists():
        return path if path.is_dir() else path.parent
    files = files_of(source, relative_to)
    return files[0].parent if files else None


def _read_address(source: str, notes: list[str]) -> Rows:
    copy = fetch_file(source)
    notes.append(f"{source}: read from a copy on this machine, {copy}")
    try:
        for row, location in _read_file(copy, notes):
            yield row, location._replace(file=source)
    except InputError as error:  # of the copy
        raise InputError(error.expected, error.got, error.remedy, file=source, line=error.line) from None


def _read_several(files: list[Path], folder: Path, source: str, notes: list[str]) -> Rows:
    notes.append(f"{source}: {len(files)} files, each a task of its own unless its rows name one")
    others = sorted(path.name for path in folder.iterdir() if path not in files) if folder.is_dir() else []
    if others:
        notes.append(f"{source}: not read, because of their file types: {join_some(others)}")
    for path in files:
        for row, location in _read_file(path, notes):
            yield row, location._replace(task=task_of(path))


def task_of(path: Path) -> str:
    """Return the task that a file stands for: its name."""
    return path.name.removesuffix(suffix_of(path)) or path.name


def refuse_held_out(source: str) -> None:
    """Raise InputError if one of several files to train on is called as held-out rows are."""
    for one in sources_of(source) if len(sources_of(source)) > 1 else ():
        if SPLIT_BY_NAME.get(task_of(Path(one)).lower()) == "eval":
            raise InputError("training rows", f"{one}, which is a split", "Name held-out rows with --eval.", file=one)


def _read_file(path: Path, notes: list[str]) -> Rows:
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise InputError(f"a file ending in {', '.join(SUFFIXES)}", repr(path.name), "Convert or rename it.", file=path)
    if suffix == ".parquet":
        return read_parquet(path)
    if suffix.startswith(CELLS):
        return read_cells(path)
    is_list = suffix.startswith(".json") and not suffix.startswith(".jsonl")
    return read_json_list(path, notes) if is_list else read_lines(path)


def refuse_pointer(path: Path) -> None:
    """Raises InputError for a pointer of Git LFS in the place of a file."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise InputError("the file itself", "a Git LFS pointer", "Fetch the file: git lfs pull.", file=path)


def is_packed(path: Path) -> bool:
    """Whether a file is packed by gzip or zstd, or is called so."""
    return _packed_by(path) is not None


def _packed_by(path: Path) -> str | None:
    with path.open("rb") as file:
        start, suffix = file.read(len(ZSTD_MAGIC)), path.suffix.lower()
    if suffix == ".gz" or start.startswith(GZIP_MAGIC):
        return "gzip"
    return "zstd" if suffix == ".zst" or start == ZSTD_MAGIC else None


def open_unpacked(path: Path) -> IO[bytes]:
    """A file to read, unpacked. Raises InputError for a pointer of Git LFS."""
    refuse_pointer(path)
    packed_by = _packed_by(path)
    if packed_by == "zstd":
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(path.open("rb"), "zstd"))  # type: ignore[arg-type]
    return gzip.open(path) if packed_by else path.open("rb")  # type: ignore[return-value]


def _unpack(path: Path, *, lines: bool) -> Iterator[bytes]:
    """The lines of a file, or parts of it, each of bounded size. Raises InputError where a packed file is broken."""
    with open_unpacked(path) as file:
        read = partial(file.readline, MAX_LINE_BYTES) if lines else partial(file.read, READ_BYTES)
        try:
            yield from iter(read, b"")
        except (EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the system, not of what is packed
                raise
            raise InputError(
                "a complete compressed file", str(error)[:120], "Download or compress it again.", file=path
            ) from None


def _read_texts(path: Path) -> Iterator[tuple[str, RowLocation]]:
    """The lines of a text file. Raises InputError for other text than UTF-8, a line too long, or blank lines without end."""
    blank = 0
    for line, raw in enumerate(_unpack(path, lines=True), 1):
        location = RowLocation(str(path), line)
        if len(raw) == MAX_LINE_BYTES:
            raise location.error("a row", f"a line of {MAX_LINE_BYTES:,} bytes or more", "Write a row per line.")
        blank = 0 if raw.strip() else blank + 1
        if blank > MAX_BLANK_LINES:
            raise location.error("a row", f"{blank:,} blank lines one after another", "Take the blank lines out.")
        try:
            yield raw.decode("utf-8-sig" if line == 1 else "utf-8"), location
        except UnicodeDecodeError as error:
            raise location.error("UTF-8 text", f"byte 0x{raw[error.start]:02x}", "Save the file as UTF-8.") from None


def read_lines(path: Path) -> Rows:
    """The values of a file with one JSON value per line, whatever it is called; packed by gzip or zstd.

    Raises:
        InputError: with file and line what is damaged, a line of `MAX_LINE_BYTES`, or blank lines without end.
    """
    for text, location in _read_texts(path):
        try:
            if text.strip():
                yield DECODER.decode(text), location
        except (ValueError, RecursionError) as error:
            raise location.error("a JSON object", _json_problem(error), "Correct that line or remove it.") from None


def read_cells(path: Path) -> Rows:
    """The rows of a CSV or TSV file under its header: cells as text, those that are empty as None, messages from their JSON.

    Raises:
        InputError: with file and line a cell too many or too few, a column twice, or quotes that do not close.
    """
    csv.field_size_limit(MAX_LINE_BYTES)
    lines = (text for text, _ in _read_texts(path))
    head = next(lines, "")
    mark = "\t" if ".tsv" in suffix_of(path) else max(",;\t", key=head.count)
    reader, header, line = csv.reader(itertools.chain([head], lines), delimiter=mark, strict=True), list[str](), 1
    try:
        for cells in reader:
            location, line = RowLocation(str(path), line), reader.line_num + 1
            if not cells:
                continue
            if not header:
                header = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
                if twice := [name for name in header if header.count(name) > 1]:
                    raise location.error("each column once", f"{twice[0]!r:.60} twice", "Rename one of them.")
            elif len(cells) != len(header):
                remedy = f"Put quotes around cells that contain {mark!r}, a quote or a line break."
                raise location.error(f"{len(header)} cells, as the header has", f"{len(cells)}", remedy)
            else:
                yield {name: messages_in(cell) or None for name, cell in zip(header, cells, strict=True)}, location
    except csv.Error as error:
        raise RowLocation(str(path), line).error("a row of cells", str(error), "Correct the quotes from there on.") from None


def messages_in(value: Any) -> Any:
    """The messages that a text holds as JSON; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        with contextlib.suppress(ValueError, RecursionError):
            messages = json.loads(value)
            if messages and all(isinstance(one, dict) and {"role", "from"} & one.keys() for one in messages):
                return messages
    return value


def _json_problem(error: Exception) -> str:
    """What is wrong with JSON."""
    return f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)[:120]


def _rows_under_key(text: str, path: Path, notes: list[str]) -> Rows:
    """The rows of a JSON object that has them under one of its keys, beside a canary or a description."""
    try:
        record = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        remedy = "Correct the file." if line is None else "If the file has one row per line, rename it to .jsonl."
        raise RowLocation(str(path), line).error("JSON", _json_problem(error), remedy) from None
    lists = [
        name for name, rows in record.items() if isinstance(rows, list) and rows and all(isinstance(r, dict) for r in rows)
    ]
    if len(lists) != 1:
        got = f"an object with keys {', '.join(map(repr, list(record)[:8]))}"[:160]
        remedy = "Write the rows as a list, or one per line as .jsonl."
        raise RowLocation(str(path), 1).error("a JSON list of objects, or an object with one such list", got, remedy)
    note = f"rows from the list {lists[0]!r} of the file"
    if not any(earlier_note.endswith(note) for earlier_note in notes[-1:]):
        notes.append(f"{path.name}: {note}")
    for number, row in enumerate(record[lists[0]], 1):
        yield row, RowLocation(str(path), row=number)


def read_json_list(path: Path, notes: list[str]) -> Rows:
    """The objects of a JSON list, one at a time, so that each is known by its line; in a file of one line, by its number.

    Raises:
        InputError: with file and line what is damaged, or what is no list.
    """
    chunks, size = list[bytes](), 0
    for chunk in _unpack(path, lines=False):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_UNPACKED_BYTES and is_packed(path):
            got = f"a list of more than {MAX_UNPACKED_BYTES:,} bytes"
            raise RowLocation(str(path)).error("a JSON list that fits in memory", got, "Write a row per line, as .jsonl.")
    try:
        text = b"".join(chunks).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RowLocation(str(path)).error("UTF-8 text", error.reason, "Save the file as UTF-8.") from None
    position, line, row_count, is_last = _after_space(text, 0), 1, 0, False
    if text[position : position + 1] == "{":
        first, _, rest = text[position:].partition("\n")
        if rest.strip() and _is_json(first):
            notes.append(f"{path.name}: a row per line")
            yield from read_lines(path)
            return
        yield from _rows_under_key(text, path, notes)
        return
    if text[position : position + 1] != "[":
        raise RowLocation(str(path), 1).error(
            "a JSON list of objects", repr(text[position : position + 20]), "For a row per line: .jsonl."
        )
    position, row_number, has_one_line = _after_space(text, position + 1), 0, "\n" not in text.strip()
    while not is_last and text[position : position + 1] != "]":
        line, row_count, row_number = line + text.count("\n", row_count, position), position, row_number + 1
        location = RowLocation(str(path), row=row_number) if has_one_line else RowLocation(str(path), line)
        try:
            row, position = DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            location = RowLocation(str(path), getattr(error, "lineno", line))
            raise location.error("JSON", _json_problem(error), "Correct the file.") from None
        yield row, location
        position = _after_space(text, position)
        is_last = text[position : position + 1] != ","
        position = position if is_last else _after_space(text, position + 1)
    if text[position : position + 1] != "]" or text[position + 1 :].strip():
        line += text.count("\n", row_count, position)
        raise RowLocation(str(path), line).error(
            "one JSON list that ends with ]", repr(text[position : position + 20]), "Correct the file."
        )


def _is_json(text: str) -> bool:
    try:
        DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _after_space(text: str, position: int) -> int:
    match = SPACE.match(text, position)
    return position if match is None else match.end()


def read_parquet(path: Path, find_columns: Callable[[Sequence[str]], list[str] | None] = lambda _: None) -> Rows:
    """The rows of a Parquet file, of the columns that are found among its own; all where there is None.

    Raises:
        InputError: no such file, a broken one, a column twice, or values that Python does not know.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        # opened by Python, which knows names that are not UTF-8
        with path.open("rb") as source, pq.ParquetFile(source) as file:
            names = file.schema_arrow.names
            if twice := [name for name in names if names.count(name) > 1]:
                raise InputError("each column once", f"{twice[0]!r:.60} twice", "Rename one of them.", file=path)
            for batch in file.iter_batches(PARQUET_BATCH_ROWS, columns=find_columns(names)):
                for value in batch.to_pylist():
                    row += 1
                    yield value, RowLocation(str(path), row=row)
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} in a text of rows {row + 1} to {row + PARQUET_BATCH_ROWS}"
        raise InputError("UTF-8 text", got, "Write it again as UTF-8.", file=path) from None
    except (OSError, pa.ArrowException) as error:
        raise InputError("a Parquet file", str(error)[:120], "Write it again.", file=path) from None
    # dates beyond the year 9999, nanoseconds without pandas, unknown time zones, a field of a struct twice
    except (ValueError, ArithmeticError, LookupError, ImportError) as error:
        got = f"{type(error).__name__}: {_reason(error).partition('. ')[0]}, in rows {row + 1} to {row + PARQUET_BATCH_ROWS}"
        remedy = "Write these columns as text or numbers, or leave them out."
        raise InputError("values that Python can represent", got, remedy, file=path) from None


def _read_datasets_folder(path: Path, split: str) -> Rows:
    if not any((path / mark).is_file() for mark in DATASETS_FOLDER_FILES):
        expected = "a folder written by datasets' save_to_disk, or a folder of data files, one per task"
        raise InputError(expected, "another folder", "Name a file in it instead.", file=path)
    check_regular(*(Path(directory, name) for directory, _, names in os.walk(path) for name in names))
    try:
        loaded = _import_datasets(str(path)).load_from_disk(str(path))
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds, all of them about what stands in the folder
        raise _damaged_error(path, error) from None
    return _read_dataset(loaded, str(path), split)


def _damaged_error(path: str | Path, error: Exception) -> InputError:
    return InputError("a complete folder written by datasets' save_to_disk", _reason(error), "Save it again.", file=path)


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _read_hub(source: str, split: str) -> Rows:
    name, _, configuration = source.partition(":")
    config, _, split_at_hub = configuration.partition(":")
    try:
        loaded = _import_datasets(source).load_dataset(name, config or None, split=split_at_hub or None)
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds, all of them about the name or the network
        got = f"{source!r}: {_reason(error)}"
        raise InputError("a file, or a data set's name on the hub", got, "Correct the name.") from None
    return _read_dataset(loaded, source, split)


def _import_datasets(name: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise missing_extra(name, ["datasets"], "train") from None
    return datasets


def _read_dataset(loaded: Any, name: str, split: str) -> Rows:
    if hasattr(loaded, "keys"):
        split_names = ("test", "validation", "eval", "dev") if split == "eval" else ("train",)
        splits_found = [key for key in split_names if key in loaded]
        if not splits_found:
            remedy = "Name the split: owner/name:config:split, or save only that split."
            raise InputError(f"a split called {' or '.join(split_names)}", f"splits {', '.join(loaded)}", remedy, file=name)
        loaded = loaded[splits_found[0]]
    row = 0
    try:
        for row, value in enumerate(loaded.with_format(None), 1):
            yield value, RowLocation(name, row=row)
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x}"
        raise RowLocation(name, row=row + 1).error("UTF-8 text", got, "Write it again as UTF-8.") from None
    except GeneratorExit:
        raise
    except (OSError, ValueError, TypeError, KeyError, IndexError, ImportError, ArithmeticError) as error:
        raise _damaged_error(name, error) from None
