"""Choice of the fixed items that are watched while the run trains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.records import Plan, Stage
from mixwright.steer.pool import Pool

STATE_PREFERENCE = ("mastered", "reachable", "unknown", "hopeless", "lucky")
ITEMS_PER_TASK = 16
"""Items per task, where nobody says how many."""
WHY_UNMEASURED = (
    "the model was not measured before training. To have canaries, use a plan from measurements, set canary_every, "
    "add the monitor canary, or set options: {engine: {canaries: N}}"
)


def select_canaries(plan: Plan, stage: Stage, pool: Pool, rng: np.random.Generator) -> tuple[tuple[int, ...], str]:
    """Pool indices of a stage's canaries, and why there are none.

    Where some lever may read them they come from cells whose success was measured, and from all cells when they were asked
    for: of rows that the model cannot do there is nothing to lose, and such canaries raised no alarm in any run.

    Args:
        plan: its cells say what was measured.
        stage: of the plan.
        pool: the pool.
        rng: where the choice comes from.
    """
    if not (stage.gates or stage.controllers or stage.monitors):
        return (), "no gate, controller or monitor of the stage uses them"
    if stage.objective != "grpo":
        return (), "rows are held back and answered in GRPO alone; GateCallback looks at held-out items in any trainer"
    count, states = stage.engine.canaries, {cell.key: cell.state for cell in plan.cells}
    measured_cells = {cell.key for cell in plan.cells if cell.success is not None}
    in_unmeasured_cells = count is not None or "canary" in stage.monitors
    state_of_cell = [
        states.get(cell.key, "unknown") if in_unmeasured_cells or cell.key in measured_cells else None for cell in pool.cells
    ]
    if not any(state_of_cell):
        return (), WHY_UNMEASURED
    if count == 0:
        return (), "the stage sets options: {engine: {canaries: 0}}"
    canaries = draw_canary_items(pool, state_of_cell, ITEMS_PER_TASK if count is None else count, rng)
    return canaries, "" if canaries else "there are too few rows to hold any back"


def draw_canary_items(pool: Pool, states: Sequence[str | None], count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Pool indices of at most `count` items per task, at most a quarter of any cell.

    Only what the model can do can be lost, so they come from mastered cells; where the data has none, from the first kind of
    cell in `STATE_PREFERENCE` that there is (they still show drift, if not loss).

    Args:
        pool: the pool.
        states: state per cell of the pool; None for cells whose items are left alone.
        count: items per task at most.
        rng: where the choice comes from.
    """
    kind = next(state for state in STATE_PREFERENCE if state in states)
    items: dict[str, list[int]] = {task: [] for task in pool.tasks}
    for cell_index, cell in enumerate(pool.cells):
        if states[cell_index] == kind:
            members = np.flatnonzero(pool.cell_of == cell_index)
            items[cell.task] += rng.permutation(members)[: len(members) // 4].tolist()
    return tuple(
        index
        for items_of_task in items.values()
        if items_of_task
        for index in sorted(rng.permutation(items_of_task)[:count].tolist())
    )
