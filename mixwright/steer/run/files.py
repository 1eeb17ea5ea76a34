"""Files that a steered run leaves: decisions.jsonl, steps.jsonl, draws.parquet, proof.json."""

from __future__ import annotations

import contextlib
import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.records import Decision, to_data
from mixwright.runs import write_json, write_table
from mixwright.steer.pool import Pool

AHEAD = -1
"""Stands for the step of rows that were drawn ahead and never used."""


class SteeringFiles:
    """Writes into one folder; on every rank but the first it writes nothing.

    Args:
        folder: made on first write.
        write: False on ranks that must not write.
    """

    LINES = ("decisions.jsonl", "steps.jsonl")

    def __init__(self, folder: Path, *, write: bool = True) -> None:
        self.folder, self.write = folder, write
        self._written: dict[str, tuple[int, int]] = dict.fromkeys(self.LINES, (0, 0))
        self._begun = False

    def clear(self) -> None:
        """A new run starts in this folder: line files exist and are empty."""
        self._begun = True
        if self.write:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in self.LINES:
                (self.folder / name).write_bytes(b"")
                self._written[name] = (0, 0)

    def decisions(self, decisions: Sequence[Decision]) -> None:
        """One line per decision."""
        lines = [to_data(decision) for decision in decisions]
        self._append("decisions.jsonl", [{k: v for k, v in line.items() if k != "last" or v is not None} for line in lines])

    def step(self, line: Mapping[str, Any]) -> None:
        """One line per generation batch."""
        self._append("steps.jsonl", [line])

    def proof(self, proof: Mapping[str, Any]) -> None:
        """The whole proof, replaced."""
        if self.write:
            write_json(self.folder / "proof.json", dict(proof))

    def draws(self, pool: Pool, rows: Sequence[int], used: Sequence[tuple[int, int]], refused: Sequence[int] = ()) -> None:
        """All draws, replaced: position, generation batch and optimiser step (null: drawn ahead, not used), row, refused.

        Args:
            pool: what was drawn from.
            rows: pool index per draw.
            used: optimiser step and number of draws of each batch so far; step -1 where they were drawn ahead, not used;
                the rest were drawn ahead.
            refused: positions of draws whose groups were refused.
        """
        if not self.write:
            return
        import pyarrow as pa

        numbers, counts = np.array(used, dtype=np.int64).reshape(-1, 2).T
        steps = np.full(len(rows), AHEAD)
        batches = steps.copy()
        made = np.repeat(numbers, counts)[: len(rows)]
        steps[: len(made)], batches[: len(made)] = made, np.repeat(np.cumsum(numbers != AHEAD) - 1, counts)[: len(rows)]
        unused = steps == AHEAD
        told = np.zeros(len(rows), dtype=bool)
        told[np.asarray(refused, dtype=np.int64)] = True
        drawn, place = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        cells = [pool.cells[cell] for cell in pool.cell_of[drawn]]
        table = pa.table(
            {
                "draw": pa.array(np.arange(len(rows))),
                "step": pa.array(steps, pa.int64(), mask=unused),
                "batch": pa.array(batches, pa.int64(), mask=unused),
                "example": pa.array([pool.ids[row] for row in drawn], pa.string()).take(pa.array(place)),
                "task": pa.array([cell.task for cell in cells], pa.string()).take(pa.array(place)),
                "level": pa.array([cell.level for cell in cells], pa.float64()).take(pa.array(place)),
                "refused": pa.array(told),
            }
        )
        write_table(self.folder / "draws.parquet", table)

    def lengths(self) -> dict[str, list[int]]:
        """Bytes of each line file and their CRC-32, for a checkpoint."""
        return {name: list(written) for name, written in self._written.items()}

    def differs(self, lengths: Mapping[str, Sequence[int]]) -> str:
        """The first line file that does not begin with what `lengths` says; empty when all do."""
        for name, expected in lengths.items():
            if _checksum(self.folder / name, expected[0]) != tuple(expected):
                return name
        return ""

    def decided_after(self, lengths: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        """The decisions written after a checkpoint whose line files had these `lengths`; torn lines are left out."""
        path, found = self.folder / "decisions.jsonl", []
        text = path.read_bytes()[lengths[path.name][0] :] if path.exists() else b""
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def cut(self, lengths: Mapping[str, Sequence[int]]) -> None:
        """Drop what was written after a checkpoint, a torn last line too, so that a resumed run continues the same lines."""
        self._begun = True
        if not self.write:
            return
        for name, (size, _) in lengths.items():
            path = self.folder / name
            if path.exists() and path.stat().st_size > size:
                os.truncate(path, size)
            self._written[name] = _checksum(path, size)

    def _append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self.write or not lines:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        size, checksum = self._written[name]
        path = self.folder / name
        if path.exists() and path.stat().st_size != size and self._begun:
            raise RuntimeError(f"another run writes into {self.folder}; give each its own output_dir or Steering(folder=)")
        data = "".join(json.dumps(_finite(line), allow_nan=False, default=float) + "\n" for line in lines).encode()
        with path.open("ab") as file:
            file.write(data)
        self._written[name] = (size + len(data), zlib.crc32(data, checksum))


def _finite(value: Any) -> Any:
    """The value with null for each number that overflowed: JSON has no NaN, and a run that diverges must still be logged."""
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _checksum(path: Path, size: int) -> tuple[int, int]:
    """Bytes there are of the first `size`, and their CRC-32."""
    found = checksum = 0
    if path.exists():
        with path.open("rb") as file:
            while part := file.read(min(size - found, 1 << 20)):
                found, checksum = found + len(part), zlib.crc32(part, checksum)
    return found, checksum
