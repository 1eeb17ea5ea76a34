"""Sampler that draws while training runs.

The dataloader asks for batches ahead of time: what is decided acts when what it has already asked for is used up.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import Sampler

from mixwright.steer.beside.run import DrawLog


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
        first_row = self.epoch * self.rows
        for offset in range(0, self.rows, self.batch_size):
            batch = self.log.read_or_draw(first_row + offset, min(self.batch_size, self.rows - offset))
            for _ in range(self.repeat_count):
                for row in batch:
                    yield from [row] * self.mini_repeat_count

    def __len__(self) -> int:
        return self.rows * self.mini_repeat_count * self.repeat_count
