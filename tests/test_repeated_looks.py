"""Looks at the same items again and again: errors over a whole run, and losses that are found."""

from __future__ import annotations

import numpy as np
import pytest

from mixwright.estimates.repeated_looks import RepeatedLooks

ITEMS, LOOKS, RUNS = 200, 20, 200


def changes(rng: np.random.Generator, before: np.ndarray, churn: float, loss: float, kept: np.ndarray | None) -> np.ndarray:
    """One look: some items change for no reason, as many each way, and some right ones are lost."""
    flips = rng.random(ITEMS) < churn if kept is None else kept
    after = np.where(flips, 1 - before, before)
    lost = (rng.random(ITEMS) < loss / after.mean()) & (after == 1)  # the mean falls by `loss`
    return np.where(lost, 0, after) - before


def share_stopped(churn: float, loss: float, looks: int, *, persistent: bool, seed: int) -> float:
    rng, stopped = np.random.default_rng(seed), 0
    for run in range(RUNS):
        before = (rng.random(ITEMS) < 0.5).astype(float)
        watch = RepeatedLooks(["a", "b"] * (ITEMS // 2), LOOKS, seed=run)
        kept = rng.random(ITEMS) < churn if persistent else None
        stopped += any(watch.look(changes(rng, before, churn, loss, kept)).loss_is_shown for _ in range(looks))
    return stopped / RUNS


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_a_run_without_a_loss_is_seldom_stopped(persistent: bool) -> None:
    """5 % are allowed; 200 runs show up to 8.5 % of them with a chance of 1 in 50."""
    assert share_stopped(0.2, 0.0, LOOKS, persistent=persistent, seed=1) <= 0.085


def test_a_loss_is_found_in_few_looks() -> None:
    assert share_stopped(0.2, 0.1, 4, persistent=False, seed=2) >= 0.8


def test_by_hand() -> None:
    """Four items of two tasks: 3 + 1; each task counts half."""
    watch = RepeatedLooks(["a", "a", "a", "b"], 3)
    found = watch.look(np.array([-1.0, 0.0, 0.0, 0.0]))
    assert found.change == pytest.approx(-1 / 6)
    assert found.lower == pytest.approx(-1 / 6 - 1.6449 * np.sqrt((1 / 3) / 3 + 1.0) / 2)
    assert not found.loss_is_shown  # one sign of two decides: never below 5 %
    assert not watch.look(np.zeros(4)).loss_is_shown
    assert watch.look(np.zeros(4)).change == 0


def test_everything_lost_is_shown_at_the_first_look() -> None:
    watch = RepeatedLooks(["a"] * 50, 20)
    assert watch.look(np.full(50, -1.0)).loss_is_shown
    gained = RepeatedLooks(["a"] * 50, 20)
    assert not any(gained.look(np.full(50, 1.0)).loss_is_shown for _ in range(20))


def test_looks_beyond_the_planned_ones_show_nothing() -> None:
    watch = RepeatedLooks(["a"] * 50, 1)
    watch.look(np.zeros(50))
    assert not watch.look(np.full(50, -1.0)).loss_is_shown
