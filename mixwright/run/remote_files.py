"""Files behind one address, such as `s3://bucket/prefix`: list, get, put and remove them, each whole or not at all.

Object stores put an object as a whole. On a file system of this machine (`file://`) a file is renamed into its place. What
failed is asked again after a wait where the address answered before, `WAITS` times.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from mixwright.corpus.remote import VERSION_NAMES, address_error, open_address
from mixwright.errors import InputError, disk_full_error, one_line

T = TypeVar("T")
WAITS = (1.0, 4.0, 16.0)
"""Seconds before something is asked again."""
LASTING_ERRORS = (ImportError, FileNotFoundError, PermissionError)
"""What no wait helps against."""
REMEDY = (
    "Does that place exist, and are its credentials set? What was finished is in the run folder: the same command goes on."
)

_log = logging.getLogger("mixwright")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file behind the address."""

    version: str
    """Changes with the content."""
    size: int
    """Bytes."""
    moment: float
    """When it was put, seconds; 0 where nobody says."""


class RemoteFiles:
    """Files by their names below an address. All methods raise InputError where it cannot be used."""

    def __init__(self, address: str) -> None:
        self.address, self._answered = address, False
        self._system, root = self._ask(lambda: open_address(address))
        self._answered = False  # nobody was asked yet
        self._root = root.rstrip("/")
        self.local_root = Path(self._root) if "file" in self._system.protocol else None
        """The place, where it is a folder of this machine."""

    def list(self) -> dict[str, RemoteFile]:
        """All of them by name; none where there is no such folder."""

        def find() -> Mapping[str, Mapping[str, Any]]:
            self._system.invalidate_cache()
            try:
                return self._system.find(self._root, detail=True)
            except FileNotFoundError:
                return {}

        found: dict[str, RemoteFile] = {}
        for path, info in self._ask(find).items():
            version = next((str(info[key]).strip('"') for key in VERSION_NAMES if info.get(key) is not None), "")
            size = int(info.get("size") or 0)
            found[path.removeprefix(f"{self._root}/")] = RemoteFile(f"{version} {size}", size, _moment_of(info))
        return found

    @contextlib.contextmanager
    def fetched(self, name: str, file: RemoteFile, path: Path) -> Iterator[Path]:
        """A copy of a file, whole, beside `path`, that is removed if it is still there at the end."""
        part = path.with_name(f".{path.name[:64]}.{os.getpid()}")

        def get() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._system.get_file(self._path(name), str(part))
            if part.stat().st_size != file.size:
                raise OSError(f"{part.stat().st_size:,} of {file.size:,} bytes of {name} came")

        try:
            self._ask(get)
            yield part
        finally:
            part.unlink(missing_ok=True)

    def put(self, path: Path, name: str) -> None:
        """Put a file of this machine there."""
        self._ask(lambda: self._write_whole(name, lambda target: self._system.put_file(str(path), target)))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._ask(lambda: self._system.rm_file(self._path(name)), FileNotFoundError)

    def read(self, name: str) -> bytes:
        """What a small file holds; nothing where there is none."""
        self._system.invalidate_cache()
        try:
            return self._ask(lambda: self._system.cat_file(self._path(name)), FileNotFoundError)
        except FileNotFoundError:
            return b""

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        self._ask(lambda: self._write_whole(name, lambda target: self._system.pipe_file(target, data)))

    def _write_whole(self, name: str, write: Callable[[str], None]) -> None:
        if self.local_root is None:
            write(self._path(name))
            return
        target = Path(self._path(name))
        part = target.with_name(f".{target.name[:64]}.{os.getpid()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(str(part))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _ask(self, act: Callable[[], T], *let_through: type[Exception]) -> T:
        """What the file system answers. Raises InputError for its errors, but for those that are let through."""
        waits = list(WAITS if self._answered else ())
        while True:
            try:
                answer = act()
            except (InputError, *let_through):
                raise
            except Exception as error:  # each file system has its own
                if not waits or isinstance(error, LASTING_ERRORS) or disk_full_error(error) is not None:
                    self._answered = False  # what is asked next does not wait as long
                    raise address_error(error, "a storage that can be used", REMEDY, self.address) from None
                _log.warning("%s: %s. It is asked again in %g s.", self.address, one_line(error, 160), waits[0])
                time.sleep(waits.pop(0))
            else:
                self._answered = True
                return answer


def _moment_of(info: Mapping[str, Any]) -> float:
    """When a file was put, seconds, by what its file system says of it."""
    for value in (info.get(name) for name in ("LastModified", "last_modified", "updated", "mtime")):
        if isinstance(value, int | float):
            return float(value)
        with contextlib.suppress(TypeError, ValueError):
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(value or "")
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return 0.0
