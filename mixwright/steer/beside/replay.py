"""Replay of a finished run, batch by batch: its draws, refusals, learning-rate factors, KL coefficients, skipped steps.

What the run that replays sees decides nothing. A factor that the first run changed between two optimiser steps of one
generation batch is served from the next batch on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.errors import InputError
from mixwright.records import Action
from mixwright.run.folder import check_regular, read_json_lines
from mixwright.steer.pool import Pool

REPLAY_REASON = "as in the run that is replayed"
REMEDY = "Name the steering folder of a finished run of the same data, made by this version."


@dataclass(frozen=True)
class RecordedRun:
    """What a run drew and did."""

    rows: Sequence[int]
    """Pool index per draw, in order; those drawn ahead included."""
    refused: Sequence[frozenset[str]]
    """Example ids refused, per generation batch."""
    lines: Sequence[dict[str, Any]]
    """Lines of steps.jsonl, per generation batch."""

    def actions(self, batch: int, beta: float, lr_factor: float) -> list[Action]:
        """What the run did after this generation batch; nothing after its last.

        Args:
            batch: number of the batch, from 0.
            beta: KL coefficient now.
            lr_factor: learning-rate factor now.
        """
        if batch >= len(self.lines):
            return []
        line = self.lines[batch]
        actions = [Action("refuse", example, None, REPLAY_REASON) for example in sorted(self.refused[batch])]
        if line["skip_step"]:
            actions.append(Action("skip_step", "step", None, REPLAY_REASON))
        if line.get("beta", beta) != beta:
            actions.append(Action("coefficient", "beta", line["beta"], REPLAY_REASON))
        if line["lr_factor"] != lr_factor:
            actions.append(Action("lr_factor", "lr", line["lr_factor"], REPLAY_REASON))
        return actions


def read_recorded_run(folder: Path, pool: Pool) -> RecordedRun:
    """What the run in this folder drew, as rows of the pool, and did.

    Raises:
        InputError: no such run, one of an earlier version, or examples that the pool lacks.
    """
    import pyarrow.parquet as pq

    lines = _read_step_lines(folder)
    check_regular(folder / "draws.parquet")
    try:
        table = pq.read_table(folder / "draws.parquet", columns=["batch", "example", "refused"])
    except (OSError, ValueError) as error:  # Arrow's errors are ValueErrors
        raise InputError("draws with their batches and refusals", str(error)[:120], REMEDY, file=folder) from None
    row_by_id = {name: row for row, name in enumerate(pool.ids)}
    rows, refused = [], [set[str]() for _ in lines]
    # what was drawn ahead and not used comes last, also where training was called again after it
    for draw in sorted(table.to_pylist(), key=lambda draw: draw["batch"] is None):
        if draw["example"] not in row_by_id:
            raise InputError("draws from the examples of this run", repr(draw["example"]), REMEDY, file=folder)
        rows.append(row_by_id[draw["example"]])
        if draw["refused"]:
            refused[draw["batch"]].add(draw["example"])
    return RecordedRun(rows, [frozenset(ids) for ids in refused], lines)


def count_steps_made(folder: Path) -> int:
    """Optimiser steps that the run in this folder made. Raises InputError as `read_recorded_run` does."""
    return max((int(line["step"]) + 1 for line in _read_step_lines(folder)), default=1)


def _read_step_lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "steps.jsonl"
    if not path.is_file():
        raise InputError("steps.jsonl of a finished run", "nothing", REMEDY, file=folder)
    lines = list(read_json_lines(path, remedy=REMEDY))
    if any("skip_step" not in line for line in lines):
        raise InputError("lines that say whether a step was skipped", "none", REMEDY, file=path)
    return lines
