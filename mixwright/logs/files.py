"""Files of logs: which a folder has, what one is by its beginning, and one JSON object read whole, within bounds."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import (
    GZIP_MAGIC,
    LFS_POINTER,
    ZSTD_MAGIC,
    Rows,
    decode_json,
    open_unpacked,
    read_json_list,
    read_lines,
    read_parquet,
)
from mixwright.errors import InputError, system_error
from mixwright.run.folder import check_regular

PARQUET_MAGIC, ZIP_MAGIC = b"PAR1", b"PK\x03\x04"
HEAD_BYTES = 2**20
"""Bytes of a file, unpacked, that are looked at."""
MAX_OBJECT_BYTES = 2**29
"""Size of a JSON object that is read as a whole, bytes unpacked."""
MAX_FILES = 20_000
"""Files and folders in a named one that are looked at."""
_MARK = re.compile(r'["{}\[\]]')
_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_COLON = re.compile(r"\s*+:")


def read_head(path: Path) -> bytes:
    """The beginning of a file, of a packed one unpacked; empty where nothing can be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(ZSTD_MAGIC):
            with open_unpacked(path) as file:
                return file.read(HEAD_BYTES)
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES) if head[:2] == GZIP_MAGIC else head
    except PermissionError as error:
        raise InputError("a file that can be read", "no permission", "Change its mode.", file=path) from error
    except (OSError, zlib.error):
        return b""


def find_top_keys(head: bytes) -> frozenset[str]:
    """Keys of the first object of a text, or of the first object of a list, as far as the beginning shows them."""
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text[:1] not in ("{", "["):
        return frozenset()
    keys: set[str] = set()
    depth, at, inside = 0, 0, text.find("{")
    while found := _MARK.search(text, max(at, inside)):
        mark, at = found[0], found.end()
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if not depth:
                break
        else:
            string = _STRING.match(text, found.start())
            if string is None:  # it goes on beyond what was read
                break
            at = string.end()
            if depth == 1 and _COLON.match(text, at):
                keys.add(string[1])
    return frozenset(keys)


def read_log_rows(path: Path) -> Rows:
    """The rows of a table, of a JSON list, or one per line, as the file begins. Raises InputError as their readers do."""
    head = read_head(path)
    if foreign := find_foreign(head):
        raise InputError("rows as JSON or Parquet", *foreign, file=path)
    if head.startswith(PARQUET_MAGIC):
        return read_parquet(path)
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text.partition("\n")[0].strip() == "{":
        got = f"one object over several lines, with {', '.join(sorted(find_top_keys(head))[:8])}"[:160]
        raise InputError("a JSON object per line, or a list of them", got, "Name a file with one row per answer.", file=path)
    return read_json_list(path, []) if text[:1] == "[" else read_lines(path)


def find_foreign(head: bytes) -> tuple[str, str] | None:
    """What a file is that has no rows and no log, by its beginning, and what to do; None where it may have."""
    text = head.lstrip()
    if not text:
        return "an empty or incomplete file", "Download it again, or move it away."
    if head.startswith(LFS_POINTER):
        return "a Git LFS pointer", "Fetch the file: git lfs pull."
    if head.startswith(ZIP_MAGIC):
        return "a zip file that is no Inspect log", "Unpack it, and name the log inside."
    if b"\0" in head[:8] and head[:8].strip(b"\xff\xfe\0")[:1] in (b"{", b"["):
        return "text in UTF-16 or UTF-32", "Save it as UTF-8."
    if re.match(rb"<[!?a-zA-Z]", text):
        return "a web page or XML, which servers send instead of a missing file", "Download it again."
    return None


def find_columns(path: Path) -> frozenset[str]:
    """Names of the columns of a Parquet file; empty where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:  # by Python, which knows names that are not UTF-8
            return frozenset(pq.read_schema(file).names)
    except (OSError, pa.ArrowException):
        return frozenset()


def list_files(folder: Path, wanted: Callable[[str], object], *, hidden: bool = False) -> list[Path]:
    """Files in a folder and below whose names are wanted, sorted; links are followed, and hidden folders left out.

    Args:
        folder: where to look.
        wanted: something true for a name that is.
        hidden: hidden files, too.

    Raises:
        InputError: so many files that this is no folder of logs, a pipe or a device among those wanted, or a folder that may
            not be read.
    """
    found, seen, places = list[Path](), 0, set[str]()
    for place, folders, names in os.walk(folder, onerror=_refuse_place, followlinks=True):
        real_place = os.path.realpath(place)
        if real_place in places:  # links may lead in a circle
            folders.clear()
            continue
        places.add(real_place)
        folders[:] = sorted(name for name in folders if name[:1] != ".")
        seen += len(names) + len(folders)
        if seen > MAX_FILES:
            got = f"more than {MAX_FILES:,} files and folders"
            raise InputError("a folder of evaluation logs", got, "Name the folder of one evaluation.", file=folder)
        found += [Path(place, name) for name in names if (hidden or name[:1] != ".") and wanted(name)]
    check_regular(*found)
    return sorted(found)


def _refuse_place(error: OSError) -> None:
    raise system_error(error)


def read_object_file(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds, which may be packed by gzip or zstd.

    Raises:
        InputError: no JSON, no object, broken, or larger than `MAX_OBJECT_BYTES`.
    """
    check_regular(path)
    try:
        with open_unpacked(path) as file:
            data = file.read(MAX_OBJECT_BYTES + 1)
    except (EOFError, zlib.error, OSError) as error:
        raise InputError("a complete file", str(error)[:120], "Download or compress it again.", file=path) from None
    return parse_object(data, str(path))


def parse_object(data: bytes, place: str) -> dict[str, Any]:
    """The JSON object that some bytes hold; `place` names them. Raises InputError as `read_object_file` does."""
    if len(data) > MAX_OBJECT_BYTES:
        got = f"one of more than {MAX_OBJECT_BYTES:,} bytes"
        raise InputError("a JSON object that fits in memory", got, "Split the log.", file=place)
    try:
        found = decode_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError("UTF-8 text", error.reason, "Write the log again as UTF-8.", file=place) from None
    except (ValueError, RecursionError) as error:
        line, got = getattr(error, "lineno", None), str(getattr(error, "msg", error))[:120]
        raise InputError("JSON", got, "Write the log again.", file=place, line=line) from None
    if not isinstance(found, dict):
        raise InputError("a JSON object", type(found).__name__, "Name an evaluation log.", file=place)
    return found
