"""Checks that the engine makes of plug-ins' answers before it acts on them, and of a saved state."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mixwright.records import Plan, to_data
from mixwright.steer.pool import Pool


def check_drawn(selector: str, drawn: np.ndarray, tasks: np.ndarray, pool: Pool, held: Sequence[int]) -> None:
    """Raises RuntimeError when a selector picked what may not be drawn: another task, no row of the pool, a canary."""
    said = f"the selector {selector!r} picked"
    if drawn.shape != tasks.shape or drawn.dtype.kind not in "iu":
        raise RuntimeError(f"{said} {drawn.dtype} of shape {drawn.shape} for {len(tasks)} draws")
    if len(drawn) and (drawn.min() < 0 or drawn.max() >= len(pool.task_of)):
        raise RuntimeError(f"{said} a row outside the pool of {len(pool.task_of)}")
    if wrong := np.flatnonzero(pool.task_of[drawn] != tasks).tolist():
        place = wrong[0]
        names = pool.tasks[int(pool.task_of[drawn[place]])], pool.tasks[int(tasks[place])]
        raise RuntimeError(f"{said} row {drawn[place]} of task {names[0]!r} where {names[1]!r} was asked for")
    if held and np.isin(drawn, held).any():
        raise RuntimeError(f"{said} a canary, which must never be trained on")


def checked_weights(mixture: str, proposed: Mapping[str, float], tasks: Sequence[str]) -> np.ndarray:
    """Shares of the pool's tasks, summing to 1. Raises RuntimeError when a mixture proposes what are no weights."""
    values = list(proposed.values())
    good = all(math.isfinite(value) and value >= 0 for value in values) and set(proposed) <= set(tasks) and sum(values) > 0
    if not good:
        raise RuntimeError(f"the mixture {mixture!r} proposed {dict(proposed)}: not weights of the tasks {', '.join(tasks)}")
    weights = np.array([proposed.get(task, 0.0) for task in tasks], dtype=float)
    return weights / weights.sum()


def plan_digest(plan: Plan, stage: int) -> str:
    """Of what the engine reads of a plan: the stage but for its length, and what was measured before the run."""
    read = to_data(replace(plan.stages[stage], steps=0)), [to_data(cell) for cell in plan.cells]
    return hashlib.sha256(json.dumps(read, sort_keys=True, default=str).encode()).hexdigest()[:16]
