"""State on disk: JSON for what is small, a NumPy archive beside it for long lists of numbers. No pickle."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.errors import InputError
from mixwright.run.folder import check_regular, write_text

MIN_ARCHIVED_LENGTH = 64
"""Lists of numbers of at least this length go to the archive."""
LIST_MARK = "list in archive"


def write_state(folder: Path, name: str, state: Mapping[str, Any]) -> None:
    """Write `name`.npz, then `name`.json: who finds the JSON finds both whole, if nobody wrote there before."""
    arrays: dict[str, np.ndarray] = {}
    packed = _pack(state, arrays)
    with (folder / f"{name}.npz").open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    write_text(folder / f"{name}.json", json.dumps(packed, allow_nan=False))


def read_state(folder: Path, name: str, *, arrays: bool = True) -> dict[str, Any]:
    """What `write_state` wrote.

    Args:
        folder: where.
        name: file name without ending.
        arrays: False leaves the archive closed and references to it in place.

    Raises:
        InputError: no such file, or one that is broken.
    """
    path = folder / f"{name}.json"
    check_regular(path, folder / f"{name}.npz")
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(state, dict):
            raise ValueError("no JSON object")
        if not arrays:
            return state
        with (folder / f"{name}.npz").open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return _unpack(state, archive)
    except FileNotFoundError as error:
        missing_name = Path(str(error.filename)).name
        raise InputError("a checkpoint made under steering", f"no {missing_name}", REMEDY, file=path) from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        got = f"a broken steering state: {str(error)[:120]}"
        raise InputError("a complete steering state", got, "Resume from an earlier checkpoint.", file=path) from None


REMEDY = "Resume from another checkpoint or with steering=None."


def _pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, Mapping):
        return {key: _pack(item, arrays) for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    array = _as_array(value) if len(value) >= MIN_ARCHIVED_LENGTH else None
    if array is None:
        return [_pack(item, arrays) for item in value]
    name = f"a{len(arrays)}"
    arrays[name] = array
    return {LIST_MARK: name}


def _as_array(values: Sequence[Any]) -> np.ndarray | None:
    """An array that holds exactly these numbers, or None when there is none."""
    if not all(type(value) in (int, float) for value in values):
        return None
    array = np.asarray(values)
    if array.dtype.kind == "i":
        array = array.astype(np.promote_types(*map(np.min_scalar_type, (array.min(), array.max()))))
    return array if array.dtype.kind in "iuf" and array.tolist() == list(values) else None


def _unpack(value: Any, archive: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, archive) for item in value]
    if not isinstance(value, dict):
        return value
    if LIST_MARK in value:
        return archive[value[LIST_MARK]].tolist()
    return {key: _unpack(item, archive) for key, item in value.items()}
