"""Readers of raw rows from files, addresses, `datasets` folders and hub names, each row with the place it stands in.

Left out on purpose: what the columns mean (`columns.py`) and rows that are made in place of being read.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from mixwright.config import is_address, sources_of
from mixwright.corpus.remote import fetch_file
from mixwright.errors import InputError, join_some, missing_extra, told_as
from mixwright.graders.json_fields import read_object
from mixwright.run.folder import check_regular

_DECODER = json.JSONDecoder(object_pairs_hook=read_object)
PARQUET_BATCH_ROWS = 2048
"""Rows of a Parquet file in memory at a time."""
LINES_OR_LIST = (".jsonl", ".ndjson", ".json")
CELLS = (".csv", ".tsv")
"""Endings of tables of text."""
PACKABLE = (*LINES_OR_LIST, *CELLS)
SUFFIXES = (*PACKABLE, ".parquet", *(end + packed for packed in (".gz", ".zst") for end in PACKABLE))
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
MAX_CELL_CHARACTERS = 2**28
"""Longest cell of a table of text."""
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
REMEDY_ROW = "Correct that row or remove it."


def show_value(value: Any) -> str:
    """The type of a value and how it begins, for an error."""
    return f"{type(value).__name__} {str(value)[:40]!r}"


def read_number(value: Any, key: str, location: RowLocation, remedy: str = REMEDY_ROW) -> float:
    """A finite number. Raises InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise location.error(f"a number in {key}", show_value(value), remedy)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise location.error(f"a finite number in {key}", f"{value}"[:40], remedy)
    return number


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
        rows = _read_dataset(str(path), split, path)
    elif path.is_file():
        rows = _read_file(path, notes)
    elif suffix_of(path) in SUFFIXES or source.startswith((".", "/", "~")) or source.count("/") > 1 or "*" in source:
        raise InputError(
            "a file", "nothing there", "Correct the path. In a settings file it starts from that file's folder.", file=path
        )
    else:
        rows = _read_dataset(source, split, None)
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
    if packed_by is None:
        return path.open("rb")
    import pyarrow as pa

    return io.BufferedReader(pa.CompressedInputStream(path.open("rb"), packed_by))  # type: ignore[arg-type]


def _read_texts(path: Path) -> Iterator[tuple[str, RowLocation]]:
    """The lines of a text file. Raises InputError for other text than UTF-8, and for a packed file that is broken."""
    line = 0
    try:
        with open_unpacked(path) as file:
            for line, raw in enumerate(file, 1):
                yield raw.decode("utf-8-sig" if line == 1 else "utf-8"), RowLocation(str(path), line)
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x}"
        raise RowLocation(str(path), line).error("UTF-8 text", got, "Save the file as UTF-8.") from None
    except OSError as error:
        if error.errno is not None:  # of the system, not of what is packed
            raise
        remedy = "Download or compress it again."
        raise InputError("a complete compressed file", str(error)[:120], remedy, file=path) from None


def decode_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError for any other, and for keys that stand twice in an object."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("brackets that are nested too deeply") from None


def read_lines(path: Path) -> Rows:
    """The values of a file with one JSON value per line, whatever it is called; packed by gzip or zstd.

    Raises:
        InputError: with file and line what is damaged.
    """
    for text, location in _read_texts(path):
        try:
            if text.strip():
                yield decode_json(text), location
        except ValueError as error:
            raise location.error("a JSON object", _json_problem(error), "Correct that line or remove it.") from None


def read_cells(path: Path) -> Rows:
    """The rows of a CSV or TSV file under its header: cells as text, those that are empty as None, messages from their JSON.

    Raises:
        InputError: with file and line a cell too many or too few, a column twice, or quotes that do not close.
    """
    csv.field_size_limit(MAX_CELL_CHARACTERS)
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
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return "a number of thousands of digits" if "integer string conversion" in str(error) else str(error)[:120]


def read_json_list(path: Path, notes: list[str]) -> Rows:
    """The objects of a JSON list, or of an object that has one list of them, by their number; or a row per line.

    Raises:
        InputError: with file and line what is damaged, or what has no such list.
    """
    text = "".join(text for text, _ in _read_texts(path))
    try:
        rows = decode_json(text)
    except ValueError as error:
        if _has_row_per_line(text):
            notes.append(f"{path.name}: a row per line")
            yield from read_lines(path)
            return
        remedy = "Correct the file, or rename it to .jsonl if it has one row per line."
        raise RowLocation(str(path), getattr(error, "lineno", None)).error("JSON", _json_problem(error), remedy) from None
    if not isinstance(rows, list):
        rows = _rows_under_key(rows, path, notes)
    for number, row in enumerate(rows, 1):
        yield row, RowLocation(str(path), row=number)


def _has_row_per_line(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    with contextlib.suppress(ValueError):
        return bool(rest.strip()) and isinstance(decode_json(first), dict)
    return False


def _rows_under_key(record: Any, path: Path, notes: list[str]) -> list[Any]:
    """The rows of a JSON object that has them under one of its keys, beside a canary or a description."""
    keys = list(record) if isinstance(record, dict) else []
    lists = [key for key in keys if isinstance(record[key], list) and record[key] and isinstance(record[key][0], dict)]
    if len(lists) != 1:
        got = f"an object with keys {', '.join(map(repr, keys[:8]))}"[:160] if keys else f"{record!r:.40}"
        remedy = "Write the rows as a list, or one per line as .jsonl."
        raise RowLocation(str(path), 1).error("a JSON list of objects, or an object with one such list", got, remedy)
    note = f"rows from the list {lists[0]!r} of the file"
    if not any(earlier_note.endswith(note) for earlier_note in notes[-1:]):
        notes.append(f"{path.name}: {note}")
    return record[lists[0]]


def read_parquet(path: Path, find_columns: Callable[[Sequence[str]], list[str] | None] = lambda _: None) -> Rows:
    """The rows of a Parquet file, of the columns that are found among its own; all where there is None.

    Raises:
        InputError: no such file, a broken one, a column twice, or values that Python does not know.
    """
    import pyarrow.parquet as pq

    row, remedy = 0, "Write it again, and values that are neither text nor numbers as text."
    # a broken file, text that is not UTF-8, dates beyond the year 9999, a field of a struct twice; it is opened by Python,
    # which knows names that are not UTF-8
    with (
        told_as("a Parquet file with values that Python can represent", remedy, file=path),
        path.open("rb") as source,
        pq.ParquetFile(source) as file,
    ):
        names = file.schema_arrow.names
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError("each column once", f"{twice[0]!r:.60} twice", "Rename one of them.", file=path)
        for batch in file.iter_batches(PARQUET_BATCH_ROWS, columns=find_columns(names)):
            for value in batch.to_pylist():
                row += 1
                yield value, RowLocation(str(path), row=row)


def _read_dataset(source: str, split: str, folder: Path | None) -> Rows:
    """The rows of a folder that datasets saved, or without one of a data set at the hub."""
    expected = "a complete folder written by datasets' save_to_disk, or a folder of data files, one per task"
    remedy = "Save it again, or name a file in it."
    if folder is None:
        expected, remedy = "a file, or a data set's name on the hub", "Correct the name."
    elif not any((folder / mark).is_file() for mark in DATASETS_FOLDER_FILES):
        raise InputError(expected, "another folder", remedy, file=folder)
    try:
        import datasets
    except ImportError:
        raise missing_extra(source, ["datasets"], "train") from None
    name, _, configuration = source.partition(":")
    config, _, split_at_hub = configuration.partition(":")
    with told_as(expected, remedy, file=source):
        if folder is None:
            loaded: Any = datasets.load_dataset(name, config or None, split=split_at_hub or None)
        else:
            loaded = datasets.load_from_disk(str(folder))
        for row, value in enumerate(_split_of(loaded, source, split).with_format(None), 1):
            yield value, RowLocation(source, row=row)


def _split_of(loaded: Any, name: str, split: str) -> Any:
    if not hasattr(loaded, "keys"):
        return loaded
    split_names = ("test", "validation", "eval", "dev") if split == "eval" else ("train",)
    splits_found = [key for key in split_names if key in loaded]
    if not splits_found:
        remedy = "Name the split: owner/name:config:split, or save only that split."
        raise InputError(f"a split called {' or '.join(split_names)}", f"splits {', '.join(loaded)}", remedy, file=name)
    return loaded[splits_found[0]]
