"""What was drawn, in order, and the sampler that draws while training runs.

The dataloader asks for batches ahead of time: a change of weights acts when what it has already asked for is used up.
Every draw is kept, so that a resumed run serves the same rows again and only then draws anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.utils.data import Sampler


class DrawLog:
    """All draws of a run, as one growing list of rows; reading past its end draws.

    Args:
        draw: gives that many rows (pool indices); called only when a row is asked for that was never drawn.
    """

    def __init__(self, draw: Callable[[int], Sequence[int]]) -> None:
        self._draw = draw
        self.rows = array("i")
        self.start = 0
        """Where the current call of `train` began; draws before it are history."""

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, position: int, count: int) -> list[int]:
        """`count` rows from `position` (counted from `start`): what was drawn there before, or new draws."""
        first = self.start + position
        missing = first + count - len(self.rows)
        if missing > 0:
            self.rows.extend(self._draw(missing))
        return self.rows[first : first + count].tolist()

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"rows": self.rows.tolist(), "start": self.start}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.rows, self.start = array("i", state["rows"]), state["start"]


class SteeredSampler(Sampler[int]):
    """Serves drawn rows in the index order of TRL's `RepeatSampler`, drawing a batch only when it is asked for.

    Each row stands `mini_repeat_count` times in a row, each batch `repeat_count` times. An epoch has as many rows as the
    dataset (draws are with replacement, so an epoch is a length, not a pass over the data).

    Args:
        log: where rows come from.
        size: rows of the dataset.
        batch_size: rows drawn together.
        mini_repeat_count: completions per prompt.
        repeat_count: times a batch is served.
        whole_batches: leave out an incomplete last batch, as `RepeatSampler` does; at least one batch remains.
    """

    def __init__(
        self,
        log: DrawLog,
        size: int,
        *,
        batch_size: int,
        mini_repeat_count: int = 1,
        repeat_count: int = 1,
        whole_batches: bool = True,
    ) -> None:
        self.log = log
        self.batch_size, self.mini_repeat_count, self.repeat_count = batch_size, mini_repeat_count, repeat_count
        self.rows = max(1, size // batch_size) * batch_size if whole_batches else size
        self.epoch = 0
        """Epoch that the next iteration serves; set by the callback that knows it."""

    def __iter__(self) -> Iterator[int]:
        first = self.epoch * self.rows
        for offset in range(0, self.rows, self.batch_size):
            batch = self.log.read(first + offset, min(self.batch_size, self.rows - offset))
            for _ in range(self.repeat_count):
                for row in batch:
                    yield from [row] * self.mini_repeat_count

    def __len__(self) -> int:
        return self.rows * self.mini_repeat_count * self.repeat_count
