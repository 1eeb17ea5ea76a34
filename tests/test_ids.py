"""Ids of a pool are found by text, also where hashes collide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.errors import InputError
from mixwright.steer import pool
from mixwright.steer.pool import Ids

NAMES = st.lists(st.text(max_size=5), min_size=1, max_size=40, unique=True)


@given(NAMES, st.lists(st.text(max_size=5), max_size=10))
def test_every_id_is_found_and_nothing_else(names: list[str], others: list[str]) -> None:
    ids = Ids(names)
    assert list(ids) == names == [ids[place] for place in range(len(ids))]
    asked = names[::-1] + others
    assert ids.find(asked).tolist() == [names.index(name) if name in names else -1 for name in asked]


@given(NAMES)
def test_colliding_hashes_are_told_apart(names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "hash", len, raising=False)
        found = Ids(names)
        assert found.find([*names, "another"]).tolist() == [*range(len(names)), -1]


def test_an_id_that_stands_twice_is_named() -> None:
    with pytest.raises(InputError, match="'b' more than once"):
        Ids(["a", "b", "c", "b"])


def test_twelve_bytes_beside_the_text() -> None:
    ids = Ids([f"{i:04d}" for i in range(1000)])
    held = [value for value in vars(ids).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in held) == 12 * 1000
