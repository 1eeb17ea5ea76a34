"""Windows of recent groups beside the first groups of the same cells, for monitors that compare a run with its start.

A cell is compared with itself, so that drawing harder or longer problems is not taken for a change of the model; in tasks
of more than `MOST_LEVELS_APART` levels the whole task is one cell. Memory per task: `size` entries; per cell: `start_groups`
entries until its start is known, then what `summary` makes of them. A task is looked at after every quarter of a window,
and rests after an alarm: looking at every step would find chance more often and cost more.
"""

from __future__ import annotations

import copy
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from mixwright.errors import check_range
from mixwright.records import GroupOutcome, cell_key
from mixwright.steer.scene import Scene

MOST_LEVELS_APART = 16
"""Levels of a task, at most, that are kept apart."""


class Seen(NamedTuple):
    """One group of a window."""

    entry: Any
    """What it showed."""
    start: Any
    """What the first groups of its cell showed, as `summary` gave it."""
    key: str
    """Its cell."""


class Windows:
    """The start of every cell and the last groups of every task.

    Args:
        summary: entries of a cell's first groups -> what later ones are compared with; JSON-ready.
        start_groups: groups of a cell that make its start.
        size: groups of a task that are kept.
        steps_between_alarms: steps between two alarms of one task.
    """

    def __init__(
        self, summary: Callable[[list[Any]], Any], *, start_groups: int, size: int, steps_between_alarms: int
    ) -> None:
        given = {"start_groups": start_groups, "window": size, "steps_between_alarms": steps_between_alarms}
        check_range("the monitor", given, start_groups=(1, 1e9), window=(2, 1e9), steps_between_alarms=(0, 1e9))
        self._summary, self.start_groups, self.size, self.steps_between_alarms = (
            summary,
            start_groups,
            size,
            steps_between_alarms,
        )
        self._keys: dict[tuple[str, float | None], str] = {}
        self._starts: dict[str, Any] = {}
        self._first: dict[str, list[Any]] = {}
        self._recent: dict[str, deque[list[Any]]] = {}
        self._fresh: dict[str, int] = {}
        self._said: dict[str, int] = {}

    def learn_cells(self, scene: Scene) -> None:
        """Learn which cells there are."""
        levels: dict[str, int] = {}
        for cell in scene.pool.cells:
            levels[cell.task] = levels.get(cell.task, 0) + 1
        for cell in scene.pool.cells:
            self._keys[cell.task, cell.level] = (
                cell_key(cell.task, cell.level) if levels[cell.task] <= MOST_LEVELS_APART else cell.task
            )

    def add(self, group: GroupOutcome, entry: Any, task: str | None = None) -> None:
        """Keep what a group showed, JSON-ready. `task`: whose window it goes into, where it is not the group's."""
        key, task = self._keys.get((group.task, group.level), group.task), task or group.task
        if key not in self._starts:
            first = self._first.setdefault(key, [])
            first.append(entry)
            if len(first) >= self.start_groups:
                self._starts[key] = self._summary(self._first.pop(key))
            return
        if task not in self._recent:
            self._recent[task] = deque(maxlen=self.size)
        self._recent[task].append([entry, key])
        self._fresh[task] = self._fresh.get(task, 0) + 1

    def due_windows(self, step: int) -> Iterator[tuple[str, list[Seen]]]:
        """Tasks to look at now, each with its window."""
        for task in [task for task, fresh in self._fresh.items() if 4 * fresh >= self.size]:
            recent, said = self._recent[task], self._said.get(task)
            if len(recent) < self.size or (said is not None and step - said < self.steps_between_alarms):
                continue
            self._fresh[task] = 0
            yield task, self.window_of(task)

    def window_of(self, task: str) -> list[Seen]:
        """The task's window, which need not be full."""
        return [Seen(entry, self._starts[key], key) for entry, key in self._recent.get(task, ())]

    def record_alarm(self, task: str, step: int) -> None:
        """An alarm was raised: the task rests."""
        self._said[task] = step

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        recent = {task: list(entries) for task, entries in self._recent.items()}
        kept = {"starts": self._starts, "first": self._first, "recent": recent, "fresh": self._fresh, "said": self._said}
        return copy.deepcopy(kept)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        state = copy.deepcopy(dict(state))
        self._starts, self._first, self._said = state["starts"], state["first"], state["said"]
        self._recent = {task: deque(entries, maxlen=self.size) for task, entries in state["recent"].items()}
        self._fresh = state["fresh"]


def mean_and_error(values: Sequence[float]) -> list[float]:
    """Mean and its standard error; fewer than two values say nothing about theirs, which is then 1."""
    mean = fmean(values)
    if len(values) < 2:
        return [mean, 1.0]
    return [mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))]


def mean_change(
    seen: Sequence[Seen], values: Sequence[float], starts: Callable[[Seen], Sequence[float]]
) -> tuple[float, float]:
    """Mean of values minus starts, and its standard error: that of the window and that of the starts.

    Args:
        seen: a window.
        values: one per group of it.
        starts: the mean and standard error that a group's cell had at its start.
    """
    mean, error = mean_and_error([value - starts(group)[0] for value, group in zip(values, seen, strict=True)])
    errors = {group.key: starts(group)[1] for group in seen}
    shares = Counter(group.key for group in seen)
    return mean, math.sqrt(error**2 + sum((count / len(seen) * errors[key]) ** 2 for key, count in shares.items()))
