"""Data files behind an address, such as `s3://bucket/train.jsonl`: copied to this machine, and again when they changed.

Left out on purpose: results written to one. A run folder needs locks and renames, which no object store has.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from mixwright.errors import told_as
from mixwright.run.folder import cache_folder

VERSION_NAMES = ("ETag", "etag", "Last-Modified", "LastModified", "last_modified", "mtime", "updated", "md5Hash", "blob_id")
"""What file systems call what changes with a file."""


def fetch_file(source: str) -> Path:
    """A copy of the file behind an address; one that is there and did not change is taken.

    Args:
        source: as fsspec has it: `s3://`, `gs://`, `abfs://`, `hf://`, `https://`, ...

    Raises:
        InputError: fsspec or the package of the protocol is missing, or the file cannot be fetched as a whole.
    """
    remedy = (
        "Check the address, its credentials, that there is disk space for a copy, and that the packages for it are there: "
    )
    remedy += "pip install fsspec s3fs, or aiohttp for https."
    with told_as("a file that can be downloaded", remedy, file=source):
        import fsspec.core

        files, path = fsspec.core.url_to_fs(source)
        info: dict[str, Any] = files.info(path)
        copy = _place_of(source, info)
        if not copy.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=copy.parent) as scratch:  # so that a copy is whole or not there
                part = Path(scratch) / copy.name
                files.get_file(path, str(part))
                if (size := info.get("size")) is not None and part.stat().st_size != size:
                    raise OSError(f"{part.stat().st_size:,} of {size:,} bytes came")
                part.replace(copy)
        return copy


def _place_of(source: str, info: dict[str, Any]) -> Path:
    """Where the copy of a file in this state is; a new place each time where nothing says whether it changed."""
    versions = {name: str(info[name]) for name in VERSION_NAMES if info.get(name) is not None}
    state = json.dumps([source, info.get("size"), versions or os.urandom(16).hex()], sort_keys=True)
    name = source.partition("?")[0].rstrip("/").rpartition("/")[2][-80:] or "file"
    return cache_folder() / "files" / hashlib.sha256(state.encode()).hexdigest()[:24] / name
