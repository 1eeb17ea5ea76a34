"""Epochs over each task's examples in random orders: what choosing without a picture of difficulty comes down to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mixwright.steer.checkpointable import Checkpointable


class Epochs(Checkpointable):
    """Epochs over each task's examples in a fresh random order.

    Args:
        tasks: how many.
        members: pool indices, by task; the same at every call.
    """

    STATE_FIELDS = ("_seeds", "_places")

    def __init__(self, tasks: int, members: Callable[[int], np.ndarray]) -> None:
        self._members = members
        self._seeds, self._places = [0] * tasks, [-1] * tasks
        self._orders: dict[int, np.ndarray] = {}

    def next(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The next examples of each task's epoch, int64 of shape (draws,); a new epoch takes its seed from `rng`."""
        examples = np.empty(len(tasks), dtype=np.int64)
        for task in np.unique(tasks):
            positions = np.flatnonzero(tasks == task)
            while len(positions):
                next_examples = self._remaining(task, rng)[: len(positions)]
                examples[positions[: len(next_examples)]] = next_examples
                self._places[task] += len(next_examples)
                positions = positions[len(next_examples) :]
        return examples

    def _remaining(self, task: int, rng: np.random.Generator) -> np.ndarray:
        """What is left of the task's epoch, or a whole new one."""
        members = self._members(task)
        if self._places[task] in (-1, len(members)):
            self._seeds[task], self._places[task] = int(rng.integers(2**53)), 0
            self._orders.pop(task, None)
        if task not in self._orders:
            self._orders[task] = np.random.default_rng(self._seeds[task]).permutation(members)
        return self._orders[task][self._places[task] :]

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue the epochs."""
        super().restore(state)
        self._orders = {}
