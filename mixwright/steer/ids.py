"""Ids of a pool's examples: their text in one Arrow array, found by a sorted hash; 12 bytes per example beside the text.

A Python tuple of ids with a dictionary from id to number takes about 200 bytes per example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from mixwright.errors import InputError

CHUNK = 8192
"""Ids turned into Python strings at a time."""


class Ids:
    """Ids in pool order.

    Args:
        ids: unique.

    Raises:
        InputError: an id stands twice.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._text = pa.array(ids, pa.large_string())
        self._hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        self._order = np.argsort(self._hashes, kind="stable").astype(np.int32)
        self._hashes = self._hashes[self._order]
        for place in np.flatnonzero(self._hashes[1:] == self._hashes[:-1]):
            name, other = self[int(self._order[place])], self[int(self._order[place + 1])]
            if name == other:
                raise InputError(
                    "unique example ids",
                    f"{name!r} more than once",
                    "Make them unique, or leave them out: columns={'id': ''}.",
                )

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, index: int) -> str:
        return self._text[int(index)].as_py()

    def __iter__(self) -> Iterator[str]:
        for chunk in range(0, len(self), CHUNK):
            yield from self._text[chunk : chunk + CHUNK].to_pylist()

    def find(self, names: Sequence[str]) -> np.ndarray:
        """Numbers of the examples of these ids, int64; -1 for what is no id of the pool."""
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        places = np.searchsorted(self._hashes, hashes)
        found = self._order[np.minimum(places, len(self) - 1)].astype(np.int64)
        for number, text in enumerate(self._text.take(found).to_pylist()):
            if text != names[number]:
                found[number] = self._among(names[number], int(places[number]))
        return found

    def _among(self, name: str, place: int) -> int:
        """Number of the example of that id among those that share its hash, which begin at `place`; -1 for none."""
        while place < len(self) and self._hashes[place] == hash(name):
            if self[int(self._order[place])] == name:
                return int(self._order[place])
            place += 1
        return -1
