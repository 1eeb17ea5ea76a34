"""Readers of raw rows from files, `datasets` folders and hub names, each row with the place it stands in.

Left out on purpose: what the columns mean (`_columns.py`) and generated items (`_gym.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mixwright.errors import InputError, missing_extra

KEEP = "Correct that line or remove it."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object. Raises ValueError for a key that stands there twice: the first value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} twice")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_once)
PARQUET_ROWS = 2048
"""Rows of a Parquet file in memory at a time."""
SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")


class Place(NamedTuple):
    """Where a row stands."""

    file: str
    """Path, hub name or generator, as the settings give it."""
    line: int | None = None
    """Line of a text file, 1-based."""
    row: int | None = None
    """Row of a table, 1-based."""

    def __str__(self) -> str:
        return self.file + (f":{self.line}" if self.line else f"#{self.row}" if self.row else "")

    def error(self, expected: str, got: str, remedy: str) -> InputError:
        """An `InputError` at this place."""
        file = self.file if self.row is None else f"{self.file}, row {self.row}"
        return InputError(expected, got, remedy, file=file, line=self.line)


Rows = Iterator[tuple[Any, Place]]


def read_rows(source: str, split: str, *, base: Path = Path()) -> Rows:
    """The rows of one file, `datasets` folder or hub name (`owner/name`, `owner/name:config`, `owner/name:config:split`).

    Args:
        source: as the user wrote it; paths are relative to `base`.
        split: `eval` takes a data set's test or validation split, anything else its train split.
        base: folder of the file that names the source.

    Raises:
        InputError: not found, unknown form, broken, empty.
    """
    if not source.strip():
        remedy = "Name one, or leave the setting out."
        raise InputError("a file, a datasets folder or a data set's name", "an empty text", remedy)
    path = base / source
    if path.is_dir():
        rows = _folder(path, split)
    elif path.is_file():
        readers: dict[str, Callable[[Path], Rows]] = {".json": _json, ".parquet": _parquet}
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"a file ending in {', '.join(SUFFIXES)}", repr(path.name), "Convert or rename it.", file=path)
        rows = readers.get(path.suffix.lower(), _jsonl)(path)
    elif path.suffix.lower() in SUFFIXES or source.startswith((".", "/", "~")) or source.count("/") > 1 or not source:
        raise InputError("a file", "nothing there", "Correct the path; it is relative to the file that names it.", file=path)
    else:
        rows = _hub(source, split)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - counts
        yield row
    if not count:
        raise InputError("at least one row", "none", "Put rows in or name another source.", file=source)


def _jsonl(path: Path) -> Rows:
    with path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            place = Place(str(path), line)
            try:
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
                if not text.strip():
                    continue
                yield DECODER.decode(text), place
            except json.JSONDecodeError as error:
                raise place.error("a JSON object", f"{error.msg} at column {error.colno}", KEEP) from None
            except UnicodeDecodeError as error:
                raise place.error("UTF-8 text", f"byte 0x{raw[error.start]:02x}", "Save the file as UTF-8.") from None
            except (ValueError, RecursionError) as error:
                raise place.error("a JSON object", str(error)[:120], KEEP) from None


def _json(path: Path) -> Rows:
    """The objects of a JSON list, one at a time, so that each is known by its line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Place(str(path)).error("UTF-8 text", error.reason, "Save the file as UTF-8.") from None
    decoder, line, counted = DECODER, 1, 0
    at, last = _after_space(text, 0), False
    if text[at : at + 1] != "[":
        raise Place(str(path), 1).error("a JSON list of objects", repr(text[at : at + 20]), "For a row per line: .jsonl.")
    at = _after_space(text, at + 1)
    while not last and text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        place = Place(str(path), line)
        try:
            row, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            place = Place(str(path), error.lineno)
            raise place.error("JSON", f"{error.msg} at column {error.colno}", "Correct the file.") from None
        except (ValueError, RecursionError) as error:
            raise place.error("JSON", str(error)[:120], "Correct the file.") from None
        yield row, place
        at = _after_space(text, at)
        last = text[at : at + 1] != ","
        at = at if last else _after_space(text, at + 1)
    if text[at : at + 1] != "]" or text[at + 1 :].strip():
        line += text.count("\n", counted, at)
        raise Place(str(path), line).error("one JSON list that ends with ]", repr(text[at : at + 20]), "Correct the file.")


def _after_space(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


def _parquet(path: Path) -> Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if twice := [name for name in names if names.count(name) > 1]:
                raise InputError("each column once", f"{twice[0]!r:.60} twice", "Rename one of them.", file=path)
            for batch in file.iter_batches(PARQUET_ROWS):
                for value in batch.to_pylist():
                    row += 1
                    yield value, Place(str(path), row=row)
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} in a text of rows {row + 1} to {row + PARQUET_ROWS}"
        raise InputError("UTF-8 text", got, "Write it again as UTF-8.", file=path) from None
    except (OSError, pa.ArrowException) as error:
        raise InputError("a Parquet file", str(error)[:120], "Write it again.", file=path) from None


def _folder(path: Path, split: str) -> Rows:
    marks = ("dataset_dict.json", "state.json")
    if not any((path / mark).is_file() for mark in marks):
        raise InputError(
            "a folder written by datasets' save_to_disk", "another folder", "Name a file in it instead.", file=path
        )
    datasets = _datasets(str(path))
    try:
        loaded = datasets.load_from_disk(str(path))
    except Exception as error:  # the library raises many kinds, all of them about what stands in the folder
        raise _damaged(path, error) from None
    return _dataset(loaded, str(path), split)


def _damaged(path: str | Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:160]
    return InputError("a whole folder written by datasets' save_to_disk", reason, "Save it again.", file=path)


def _hub(source: str, split: str) -> Rows:
    name, _, rest = source.partition(":")
    config, _, wanted = rest.partition(":")
    try:
        loaded = _datasets(source).load_dataset(name, config or None, split=wanted or None)
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds, all of them about the name or the network
        reason = (str(error).splitlines() or [type(error).__name__])[0][:160]
        raise InputError("a file, or a data set's name on the hub", f"{source!r}: {reason}", "Correct the name.") from None
    return _dataset(loaded, source, split)


def _datasets(name: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise missing_extra(name, ["datasets"], "train") from None
    return datasets


def _dataset(loaded: Any, name: str, split: str) -> Rows:
    if hasattr(loaded, "keys"):
        wanted = ("test", "validation", "eval", "dev") if split == "eval" else ("train",)
        found = [key for key in wanted if key in loaded]
        if not found:
            raise InputError(
                f"a split called {' or '.join(wanted)}",
                f"splits {', '.join(loaded)}",
                "Name it: owner/name:config:split, or save that split alone.",
                file=name,
            )
        loaded = loaded[found[0]]
    row = 0
    try:
        for row, value in enumerate(loaded.with_format(None), 1):
            yield value, Place(name, row=row)
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x}"
        raise Place(name, row=row + 1).error("UTF-8 text", got, "Write it again as UTF-8.") from None
    except GeneratorExit:
        raise
    except (OSError, ValueError, TypeError, KeyError, IndexError, ImportError, ArithmeticError) as error:
        raise _damaged(name, error) from None
