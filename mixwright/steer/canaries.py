"""Choice of the fixed items that are watched while the run trains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.steer.pool import Pool

PREFERENCE = ("mastered", "reachable", "unknown", "hopeless", "lucky")


def choose_canaries(pool: Pool, states: Sequence[str], count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Pool indices of at most `count` items per task, at most a quarter of any cell.

    Only what the model can do can be lost, so they come from mastered cells; where the data has none, from the first kind of
    cell in `PREFERENCE` that there is (they still show drift, if not loss).

    Args:
        pool: the pool.
        states: state per cell of the pool.
        count: items per task at most.
        rng: where the choice comes from.
    """
    kind = next(state for state in PREFERENCE if state in states)
    order = np.argsort(pool.cell_of, kind="stable")
    bounds = np.searchsorted(pool.cell_of[order], np.arange(len(pool.cells) + 1))
    items: dict[str, list[int]] = {task: [] for task in pool.tasks}
    for number, cell in enumerate(pool.cells):
        members = order[bounds[number] : bounds[number + 1]]
        if states[number] == kind:
            items[cell.task] += rng.permutation(members)[: len(members) // 4].tolist()
    return tuple(index for found in items.values() if found for index in sorted(rng.permutation(found)[:count].tolist()))
