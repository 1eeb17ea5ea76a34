"""The selector `equal_levels`: levels of a task equally often, whatever their sizes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mixwright.contracts import Scene
from mixwright.records import Stage
from mixwright.steer.ledger import Ledger
from mixwright.steer.pool import make_pool
from mixwright.steer.selectors.equal_levels import EqualLevels

SIZES = {("a", 1.0): 40, ("a", 2.0): 8, ("a", 3.0): 2, ("b", 1.0): 5}


def scene() -> Scene:
    keys = [key for key, size in SIZES.items() for _ in range(size)]
    pool = make_pool([f"{n}" for n in range(len(keys))], [task for task, _ in keys], [level for _, level in keys])
    return Scene(pool, Ledger(pool), Stage("s", "grpo", 1, {"a": 0.5, "b": 0.5}))


def test_levels_of_any_size_are_drawn_equally_and_their_examples_too() -> None:
    place, selector = scene(), EqualLevels()
    selector.begin(place)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([selector.pick(np.array([0, 1, 0]), rng) for _ in range(60)])
    counts = Counter(place.pool.cells[cell].key for cell in place.pool.cell_of[drawn])
    assert counts == {"a@1": 40, "a@2": 40, "a@3": 40, "b@1": 60}
    own = Counter(drawn.tolist())
    for cell, times in (("a@1", 1), ("a@2", 5), ("a@3", 20), ("b@1", 12)):
        members = np.flatnonzero(np.array([place.pool.cells[c].key for c in place.pool.cell_of]) == cell)
        assert [own[int(member)] for member in members] == [times] * len(members), "whole passes"


@pytest.mark.parametrize("first", [1, 7, 30])
def test_it_continues_exactly(first: int) -> None:
    def picks(selector: EqualLevels, count: int, seed: int) -> list[int]:
        return selector.pick(np.resize([0, 0, 1], count), np.random.default_rng(seed)).tolist()

    one, two = EqualLevels(), EqualLevels()
    for selector in (one, two):
        selector.begin(scene())
    picks(one, first, 0)
    two.restore(one.state())
    assert [picks(one, 25, seed) for seed in (1, 2)] == [picks(two, 25, seed) for seed in (1, 2)]
