"""Checks of several processes of one run: all must hold the same data, draw the same and decide the same."""

from __future__ import annotations

import json
import zlib

from accelerate import PartialState
from accelerate.utils import gather_object

from mixwright.errors import InputError
from mixwright.steer.beside.run import RunSteering

STEPS_BETWEEN_CHECKS = 100
"""Steps between comparisons of draws and evidence over processes; each save compares too."""


def check_same_data(run: RunSteering) -> None:
    """Raises InputError when the processes do not hold the same examples in the same order."""
    if PartialState().num_processes == 1:
        return
    text = "\n".join([json.dumps(run.engine.state_dict()["made_of"], default=str), *run.pool.ids])
    gathered = gather_object([(len(run.pool.ids), zlib.crc32(text.encode()))])
    if len(set(gathered)) > 1:
        raise InputError(
            "the same train_dataset, plan and seed on every process",
            ", ".join(f"{count} rows with checksum {checksum:08x}" for count, checksum in gathered),
            "Load and shuffle it with the same order and seed on every process.",
        )


def check_same_run(run: RunSteering, step: int) -> None:
    """Compare draws, wanted shares, evidence per cell and coefficients over processes.

    Raises:
        RuntimeError: they differ, so the processes no longer train on what was decided.
    """
    if PartialState().num_processes == 1:
        return
    gathered = gather_object([(len(run.draws), zlib.crc32(run.draws.rows.tobytes()), checksum(run))])
    if len(set(gathered)) > 1:
        states_text = "; ".join(
            f"process {rank}: {draw_count} draws {draw_checksum:08x}, state {state_checksum:08x}"
            for rank, (draw_count, draw_checksum, state_checksum) in enumerate(gathered)
        )
        raise RuntimeError(f"step {step}: the processes no longer sample and decide alike ({states_text}); stopped")


def checksum(run: RunSteering) -> int:
    """CRC-32 of what decides the next draws, without the per-example arrays: those follow from the same outcomes."""
    decided = [
        run.engine.wanted_shares(),
        run.engine.snapshot(),
        run.beta,
        run.lr_factor,
        run.stop_reason,
        run.rollouts,
        run.batches,
    ]
    return zlib.crc32(json.dumps(decided, sort_keys=True, default=float).encode())
