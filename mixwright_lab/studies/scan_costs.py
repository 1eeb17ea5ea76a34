"""CPU seconds of the passes of a scan and of its sketches, in turns with plain passes over the same rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from mixwright.learner.learner import Learner

LOGPROBS = ("likelihood", "entropy", "el2n", "ifd", "reverse_ifd")
"""Groups of columns that read log-probabilities."""
BATCH_TOKENS = 2048
"""Padded tokens of a batch of the plain passes: those of the scan."""
ALL, PLAIN, SINGLE, SKETCH, BACKWARD = "all passes", "plain forward", "one by one", "sketch", "plain backward"


def plain(learner: Learner, rows: Sequence[Any], *, backward: bool) -> None:
    """The same rows in batches of the same size through the model; with `backward` the gradient of the mean loss."""
    import torch

    order = sorted(range(len(rows)), key=lambda i: (len(rows[i].prompt) + len(rows[i].target), i))
    for batch in batches([rows[i] for i in order]):
        longest = max(len(row.prompt) + len(row.target) for row in batch)
        pads = [longest - len(row.prompt) - len(row.target) for row in batch]
        ids = torch.tensor([[*row.prompt, *row.target, *[0] * pad] for row, pad in zip(batch, pads, strict=True)])
        with torch.set_grad_enabled(backward):
            logits = learner.model(input_ids=ids, use_cache=False).logits
        if backward:
            labels = [[-100] * len(r.prompt) + [*r.target] + [-100] * pad for r, pad in zip(batch, pads, strict=True)]
            wanted = torch.tensor(labels)[:, 1:].flatten()
            torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), wanted).backward()
    learner.model.zero_grad()


def batches(rows: Sequence[Any]) -> list[list[Any]]:
    """Sorted rows, at most `BATCH_TOKENS` padded tokens at a time."""
    found: list[list[Any]] = [[]]
    for row in rows:
        if found[-1] and (len(found[-1]) + 1) * (len(row.prompt) + len(row.target)) > BATCH_TOKENS:
            found.append([])
        found[-1].append(row)
    return found


def scanned(learner: Learner, rows: Sequence[Any], names: Sequence[str], calibration: Any = None) -> None:
    """These groups of columns, over shared passes."""
    from mixwright_extras.scan.passes import ScanPasses
    from mixwright_extras.scan.table import column_groups

    groups = column_groups(names)
    asked: Any = frozenset(name for group in groups.values() for name in group.PASSES)
    passes = ScanPasses(learner, rows, asked, calibration=calibration)
    for group in groups.values():
        group.compute(rows, passes)


def costs(size: str, learner: Learner, rows: Sequence[Any], calibration: Any, rounds: int) -> list[dict[str, Any]]:
    """CPU seconds of every arm, in turns whose order changes."""

    def one_by_one() -> None:
        for name in LOGPROBS:
            scanned(learner, rows, [name])

    arms: dict[str, Callable[[], None]] = {
        ALL: lambda: scanned(learner, rows, LOGPROBS),
        PLAIN: lambda: plain(learner, rows, backward=False),
        SINGLE: one_by_one,
        SKETCH: lambda: scanned(learner, rows, ["sketch"], calibration),
        BACKWARD: lambda: plain(learner, rows, backward=True),
    }
    orders, found = list(itertools.permutations(arms)), []
    for number in range(-1, rounds):
        row: dict[str, Any] = {"size": size, "round": number}
        for arm in orders[(number * 37) % len(orders)]:
            began = time.process_time()
            arms[arm]()
            row[arm] = time.process_time() - began
        if number >= 0:  # the first round warms up
            found.append(row)
    return found
