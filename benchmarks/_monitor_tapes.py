"""Made-up tapes on which the monitors' false alarms and power are counted: nothing but chance happens, or one change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixwright import catalog
from mixwright.contracts import Pool, Scene
from mixwright.records import Cell, GroupOutcome, Signals, Stage
from mixwright.steer.ledger import Ledger

GROUPS, GROUP, ANSWERS = 8, 8, 16
"""Groups of a step, completions of a group, and possible answers."""
CALM = 100
"""Steps of a run in which nothing happens but healthy learning."""
BEFORE, AFTER = 20, 10
"""Steps before a change, and steps within which it must be seen."""
UNSOLVED = 0.5
"""Share of prompts that are never solved."""
CHANGES: Mapping[str, tuple[float, ...]] = {
    "repetition": (0.25, 0.4, 0.6),
    "length": (0.7, 0.5, 0.35),
    "skipped_work": (0.4, 0.6, 0.8),
}
"""Per monitor: share of completions that all end in one answer; factor on lengths; share of short completions."""
Draw = Callable[[np.random.Generator, int, float | None], GroupOutcome]


def scene() -> Scene:
    """One task with one cell."""
    cell = Cell("t", 1.0, 1, 1 / ANSWERS, "known")
    pool = Pool(("t",), ("t",), np.zeros(1, np.int32), (cell,), np.zeros(1, np.int32))
    return Scene(pool, Ledger(pool), Stage("grpo", "grpo", CALM, {"t": 1.0}))


def group(rng: np.random.Generator, step: int, success: float, *, change: str = "", size: float = 0.0) -> GroupOutcome:
    """One group: prompts differ in difficulty and length, a fifth of completions are short, wrong answers are spread."""
    solved = rng.beta(3 * success, 3 * (1 - success)) * (rng.random() >= UNSOLVED)
    right = rng.random(GROUP) < solved
    gold, *wrong = rng.permutation(ANSWERS)
    answers = np.where(right, gold, rng.choice(wrong, GROUP))
    if change == "repetition":
        answers = np.where(rng.random(GROUP) < size, 0, answers)
    short = rng.random(GROUP) < (size if change == "skipped_work" else 0.2)
    lengths = np.where(short, 10, 100 * np.exp(rng.normal(0, 0.3) + rng.normal(0, 0.3, GROUP)))
    lengths = np.maximum(1, lengths * (size if change == "length" else 1)).round().astype(int)
    rewards = tuple((answers == gold).astype(float).tolist())
    return GroupOutcome("t", "t", 1.0, step, rewards, tuple(lengths.tolist()), ("9",) * GROUP, tuple(map(str, answers)))


def calm(name: str, rng: np.random.Generator) -> bool:
    """Whether a monitor alarms in a run whose success rises from 0.3 to 0.8."""
    monitor = _fresh(name)
    for step in range(CALM):
        success = 0.3 + 0.5 * step / CALM
        if _alarms(monitor, step, [group(rng, step, success) for _ in range(GROUPS)]):
            return True
    return False


def changed(name: str, size: float, rng: np.random.Generator) -> bool:
    """Whether a monitor alarms soon enough after a sudden change of that size, and not before it."""
    monitor = _fresh(name)
    for step in range(BEFORE + AFTER):
        late = step >= BEFORE
        change = (name, size) if late else ("", 0.0)
        seen = [group(rng, step, 0.3, change=change[0], size=change[1]) for _ in range(GROUPS)]
        if _alarms(monitor, step, seen):
            return late
    return False


def rates(runs: int, seed: int) -> dict[str, dict[str, Any]]:
    """Per monitor: share of calm runs with an alarm, and share of changed runs seen in time, by size of the change."""
    found = {}
    for name, sizes in CHANGES.items():
        rng = np.random.default_rng((seed, len(name)))
        power = {str(size): float(np.mean([changed(name, size, rng) for _ in range(runs // 4)])) for size in sizes}
        found[name] = {"false alarms": float(np.mean([calm(name, rng) for _ in range(runs)])), "power": power}
    return found


def _fresh(name: str) -> Any:
    monitor = catalog.create("monitors", name, {})
    monitor.begin(scene())
    return monitor


def _alarms(monitor: Any, step: int, seen: list[GroupOutcome]) -> bool:
    monitor.observe(step, seen)
    return bool(monitor.inspect(Signals(step)))
