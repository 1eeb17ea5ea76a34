"""Sets of items in columns: the same as Python's sets of (task, level, id), sorted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixwright.estimates.items import Item, Items
from mixwright.estimates.outcome import ItemScores, shared_items

EVERY: list[Item] = [
    (task, level, name) for task in ("b", "a", "ä") for level in (2.0, None, 10.0) for name in ("x", "x1", "x10", "Z", "é")
]


def order(items: set[Item]) -> list[Item]:
    return sorted(items, key=lambda item: (item[0], -math.inf if item[1] is None else item[1], item[2]))


@pytest.mark.parametrize("seed", range(20))
def test_items_are_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (
        {EVERY[place] for place in rng.choice(len(EVERY), rng.integers(0, len(EVERY)), replace=False)} for _ in range(2)
    )
    left, right = Items.of(list(one)), Items.of(list(other))
    assert list(left) == order(one)
    assert (len(left), left.tasks) == (len(one), tuple(sorted({item[0] for item in one})))
    assert list(left.common(right)) == order(one & other)
    assert list(left.without(right)) == order(one - other)
    assert list(left.joined(right)) == order(one | other)
    assert list(left.of_tasks(["a", "ä"])) == order({item for item in one if item[0] != "b"})
    assert list(left.of_cells([("a", None), ("b", 2.0)])) == order(
        {item for item in one if item[:2] in {("a", None), ("b", 2.0)}}
    )
    assert list(left.of_cells([("b", 10.0)])) == order({item for item in one if item[:2] == ("b", 10.0)})
    assert list(left.ending("1")) == order({item for item in one if item[2].endswith("1")})
    assert [item for own in left.split() for item in own] == list(left)
    assert {task: list(own) for task, own in left.by_task().items()} == {
        task: [item for item in order(one) if item[0] == task] for task in left.tasks
    }
    assert [left.cells[number] for number in left.cell.tolist()] == [item[:2] for item in left]
    places = dict(zip(order(one), range(len(one)), strict=True))
    assert left.places_of(right).tolist() == [places.get(item, -1) for item in order(other)]


@pytest.mark.parametrize("seed", range(10))
def test_scores_keep_the_value_of_each_item(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = {name: {item: float(rng.random()) for item in EVERY if rng.random() < 0.7} for name in ("greedy", "chance")}
    scores = ItemScores.of(values)
    assert {name: scores.by_item(name) for name in values} == values
    assert list(scores.items) == order(set(values["greedy"])), "success says which items were measured"
    assert list(scores.having("chance")) == order(set(values["chance"]))
    for task, own in scores.by_task().items():
        assert own.by_item("chance") == {item: value for item, value in values["chance"].items() if item[0] == task}
    other = Items.of(EVERY[::2])
    column = scores.column("chance", other)
    assert [values["chance"].get(item, -1.0) for item in other] == np.where(np.isnan(column), -1.0, column).tolist()
    assert np.isnan(scores.column("loss", other)).all()
    assert shared_items([scores], [scores], included=other).ids.equals(scores.items.common(other).ids)
