"""Members of a zip file of JSON objects, one at a time and within bounds; compression by zstd included."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mixwright.errors import InputError, system_error
from mixwright.logs.files import MAX_OBJECT_BYTES, parse_object

ZSTD = 93
"""Number of the method in a zip file, which Python reads from 3.14 on; Arrow reads it everywhere."""
MAX_BYTES = 2**32
"""Bytes of all members together, unpacked."""
LOCAL_HEADER_BYTES = 30
REMEDY = "Download the log again."


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(Name, object) of every member with a wanted name, in the order of the file; of a name that is there twice the last.

    Raises:
        InputError: no zip file, a broken one, one that is encrypted or larger than `MAX_BYTES`.
    """
    unpacked = 0
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist() if wanted(info.filename)}
            for name, info in members.items():
                data = _read_zstd(path, info) if info.compress_type == ZSTD else _read_plain(archive, info)
                unpacked += len(data)
                if unpacked > MAX_BYTES:
                    got = f"one of more than {MAX_BYTES:,} bytes"
                    raise InputError("a log that can be unpacked", got, "Split the log.", file=path)
                yield name, parse_object(data, f"{path}, {name}")
    except OSError as error:
        raise system_error(error, path) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error, ValueError) as error:
        raise InputError("a whole zip file of JSON", str(error)[:120], REMEDY, file=path) from None


def _read_plain(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        return file.read(MAX_OBJECT_BYTES + 1)


def _read_zstd(path: Path, info: zipfile.ZipInfo) -> bytes:
    """A member that zstd packed. Raises ValueError where it is broken."""
    import pyarrow as pa

    with path.open("rb") as file:
        file.seek(info.header_offset)
        name_bytes, extra_bytes = struct.unpack("<HH", file.read(LOCAL_HEADER_BYTES)[26:])
        file.seek(name_bytes + extra_bytes, 1)
        packed = file.read(info.compress_size)
    try:
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            data = stream.read(MAX_OBJECT_BYTES + 1)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{info.filename}: {error}") from None
    if len(data) <= MAX_OBJECT_BYTES and zlib.crc32(data) != info.CRC:
        raise ValueError(f"Bad CRC-32 for file {info.filename!r}")
    return data
