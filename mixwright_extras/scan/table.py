"""Table of the scan, a row per example: its shards, each written whole, and its reader `Scan`, which needs no torch.

`scan/<base>/part-00000.parquet ...` in a run folder: `id`, `task`, `split`, then the columns of each group, in the order of
the catalogue. A shard that has every column asked for, from the same rows and model, is finished; one that lacks some gets
them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.extend import Corpus, InputError, RunFolder, catalog, unknown_name, write_table

OWN_COLUMNS = ("id", "task", "split")
"""Columns of every shard, which come first."""
METADATA_KEY = b"mixwright_extras.scan"
"""Metadata of a shard: what it was made from, as JSON."""
COSTLY_PASSES = ("hidden", "gradients", "rollouts")
"""Passes of groups that are scanned only when they are named: they take much room or time."""
SHARD_ROWS = 1024
"""Rows of a shard."""


def scan_folder(run: RunFolder, base: str) -> Path:
    """Folder of the shards of one starting model."""
    return run.path / "scan" / base


def shard_file(folder: Path, number: int) -> Path:
    """One shard."""
    return folder / f"part-{number:05d}.parquet"


def column_groups(names: Sequence[str] | None) -> dict[str, Any]:
    """Groups of columns by name, in the order of the catalogue.

    Args:
        names: names of groups or of single columns, `all` for every group; None takes those that are cheap.

    Raises:
        InputError: a name of neither, or a group whose packages are missing.
    """
    group_by_name = {name: catalog.create("columns", name) for name in catalog.listing("columns")}
    if names is None:
        return {name: group for name, group in group_by_name.items() if not set(group.PASSES) & set(COSTLY_PASSES)}
    group_names: set[str] = set()
    for name in names:
        groups = {owner for owner, group in group_by_name.items() if name in (owner, "all") or name in group.NAMES}
        if not groups:
            known_names = {*group_by_name, *(column for group in group_by_name.values() for column in group.NAMES)}
            raise unknown_name("column, or group of columns, of the scan", name, known_names)
        group_names |= groups
    return {name: group for name, group in group_by_name.items() if name in group_names}


def sampled_rows(corpus: Corpus, count: int | None) -> np.ndarray:
    """Places of at most `count` rows of the corpus by a hash of their ids, in the order of the corpus; all for None.

    A larger sample holds every row of a smaller one.
    """
    if count is None or count >= len(corpus):
        return np.arange(len(corpus))
    ids = corpus.table["id"].to_pylist()
    order = sorted(range(len(ids)), key=lambda row_index: hashlib.sha256(ids[row_index].encode()).digest())
    return np.sort(np.array(order[:count]))


def read_matching_shard(path: Path, key: Mapping[str, Any]) -> pa.Table | None:
    """A shard that was made from the same things; None when it is not there, broken, or another's."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException):
        return None
    return table if (table.schema.metadata or {}).get(METADATA_KEY) == _key_bytes(key) else None


def made_from(path: Path) -> dict[str, Any]:
    """What a shard was made from; empty where the file is none."""
    try:
        return json.loads((pq.read_schema(path).metadata or {}).get(METADATA_KEY, b"{}"))
    except (OSError, pa.ArrowException, ValueError):
        return {}


def missing_groups(path: Path, key: Mapping[str, Any], names: Mapping[str, Collection[str]]) -> list[str]:
    """Groups, by the names of their columns, of which a shard does not have every column; read from its last bytes."""
    if made_from(path) != key:
        return list(names)
    shard_columns = set(pq.read_schema(path).names)
    return [group for group, columns in names.items() if not set(columns) <= shard_columns]


def write_shard(
    path: Path,
    key: Mapping[str, Any],
    example_columns: Mapping[str, Sequence[str]],
    values_by_column: Mapping[str, np.ndarray],
) -> None:
    """Write one shard, whole or not at all, with what an earlier scan of the same rows has there.

    Args:
        path: where to.
        key: what it is made from.
        example_columns: the columns of `OWN_COLUMNS`.
        values_by_column: the new columns: numbers or texts of shape (rows,), or vectors of shape (rows, dimensions).
    """
    earlier_table = read_matching_shard(path, key)
    columns = {} if earlier_table is None else dict(zip(earlier_table.column_names, earlier_table.columns, strict=True))
    columns |= {name: pa.array(example_columns[name], pa.string()) for name in OWN_COLUMNS}
    columns |= {name: _to_arrow(values) for name, values in values_by_column.items()}
    order = [name for group in catalog.listing("columns") for name in catalog.load("columns", group).NAMES]
    names = [*OWN_COLUMNS, *(name for name in order if name in columns)]
    table = pa.table({name: columns[name] for name in names})
    write_table(path, table.replace_schema_metadata({METADATA_KEY: _key_bytes(key)}))


def _to_arrow(values: np.ndarray) -> pa.Array:
    if values.dtype == object:
        return pa.array(values.tolist(), pa.string())
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _key_bytes(key: Mapping[str, Any]) -> bytes:
    return json.dumps(key, sort_keys=True).encode()


class Scan:
    """Reader of a scan: columns as numpy arrays, a place per example. Shards are read when they are asked for.

    Args:
        run: the run folder.
        base: name of the starting model; None takes the only one, or the first by name.

    Raises:
        InputError: no scan there, or one that was interrupted.
    """

    def __init__(self, run: RunFolder | str | Path, base: str | None = None) -> None:
        folder = run.path if isinstance(run, RunFolder) else Path(run)
        base_names = sorted(path.parent.name for path in (folder / "scan").glob("*/part-00000.parquet"))
        if not base_names or (base is not None and base not in base_names):
            got = f"those of {', '.join(base_names)}" if base_names else "nothing"
            raise InputError(f"a scan{f' of {base}' if base else ''}", got, "Run `mixwright scan` first.", file=folder)
        self.base = base or base_names[0]
        """Name of the starting model that was scanned."""
        self.folder = folder / "scan" / self.base
        """Where the shards lie."""
        self.key: dict[str, Any] = json.loads((self._schema(shard_file(self.folder, 0)).metadata or {})[METADATA_KEY])
        """What it was made from: corpus, weights, rows, lengths."""
        self.parts = [shard_file(self.folder, number) for number in range(self.key["shards"])]
        """The shards, in order."""
        schemas = [self._schema(path) for path in self.parts]
        if any((schema.metadata or {}).get(METADATA_KEY) != _key_bytes(self.key) for schema in schemas):
            raise InputError("shards of one scan", "some of another", "Run `mixwright scan` again.", file=self.folder)
        self.names = tuple(name for name in schemas[0].names if all(name in schema.names for schema in schemas))
        """Columns that every shard has, `id`, `task` and `split` first."""

    @staticmethod
    def _schema(path: Path) -> pa.Schema:
        try:
            return pq.read_schema(path)
        except (OSError, pa.ArrowException):
            remedy = "Run `mixwright scan` again: it resumes."
            raise InputError("every shard of the scan", f"no {path.name}", remedy, file=path.parent) from None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the examples, in the order of every column."""
        return tuple(self.column("id").tolist())

    @cached_property
    def places(self) -> dict[str, int]:
        """Id -> place in every column."""
        return {name: row_index for row_index, name in enumerate(self.ids)}

    def column(self, name: str) -> np.ndarray:
        """One column: numbers of shape (rows,), texts as objects, or vectors of shape (rows, dimensions).

        Raises:
            InputError: a column that the scan does not have.
        """
        if name not in self.names:
            raise unknown_name("column of this scan", name, self.names)
        return np.concatenate([_to_numpy(pq.read_table(path, columns=[name])[name]) for path in self.parts])

    def rows(self, ids: Iterable[str], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Columns (all, or those named) of some examples, in the order of `ids`.

        Raises:
            InputError: an example that was not scanned, or a column that the scan does not have.
        """
        requested_ids = list(ids)
        missing_ids = [name for name in requested_ids if name not in self.places]
        if missing_ids:
            got = f"{len(missing_ids)} that are not, such as {missing_ids[0]!r}"
            raise InputError("examples that were scanned", got, "Scan all rows: leave --sample out.", file=self.folder)
        row_indices = [self.places[name] for name in requested_ids]
        return {name: self.column(name)[row_indices] for name in (self.names if names is None else names)}


def _to_numpy(values: pa.ChunkedArray) -> np.ndarray:
    array = values.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_fixed_size_list(array.type):
        return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), array.type.list_size)
    if pa.types.is_string(array.type):
        return np.array(array.to_pylist(), dtype=object)
    return array.to_numpy(zero_copy_only=False)
