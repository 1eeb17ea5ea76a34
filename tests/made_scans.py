"""Scans with made-up columns, written as the stage writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.corpus import Corpus
from mixwright_extras.scan.table import OWN_COLUMNS, Scan, shard_file, write_shard


def write_scan(corpus: Corpus, folder: Path, names: Sequence[str], made_from: Mapping[str, Any] | None = None) -> Scan:
    """A scan with these columns: vectors for `sketch` and `hidden`, texts for `form`, else numbers.

    `made_from` goes into the shards' note of what they were made from, such as `rows` or `objective`.
    """
    rng, count = np.random.default_rng(11), len(corpus)
    values_by_column = {
        name: rng.normal(size=(count, 8)) if name in ("sketch", "hidden") else rng.random(count) for name in names
    }
    values_by_column |= {name: np.array(["plain"] * count, dtype=object) for name in names if name == "form"}
    example_columns = {name: [getattr(example, name) for example in corpus] for name in OWN_COLUMNS}
    write_shard(
        shard_file(folder / "scan" / "base", 0), {"shards": 1, **(made_from or {})}, example_columns, values_by_column
    )
    return Scan(folder, "base")
