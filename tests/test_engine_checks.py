"""Plug-ins that draw or weigh what they may not are stopped before anything is trained on it."""

from __future__ import annotations

import numpy as np
import pytest
from steer_world import pool

from mixwright.records import Plan, Stage
from mixwright.steer.engine import Engine


def stage(**changes) -> Plan:
    return Plan("hand", (Stage("s", "grpo", 10, {"chain": 1.0}, selector="uniform", **changes),))


@pytest.mark.parametrize(
    ("picked", "told"),
    [
        (lambda tasks, rng: np.zeros(len(tasks), dtype=int) + 599, "another task"),
        (lambda tasks, rng: np.full(len(tasks), 10**6), "no row of the pool"),
        (lambda tasks, rng: np.full(len(tasks), -1), "no row of the pool"),
        (lambda tasks, rng: np.zeros(len(tasks)), "no row of the pool"),
        (lambda tasks, rng: np.zeros(1, dtype=int), "each of 4 draws"),
    ],
)
def test_a_selector_that_picks_what_may_not_be_drawn_is_stopped(picked, told):
    engine = Engine(stage(), pool(), seed=0)
    engine._selector.pick = picked
    with pytest.raises(RuntimeError, match=told):
        engine.draw(4)
