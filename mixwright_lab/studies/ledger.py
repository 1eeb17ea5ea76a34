"""Study of the ledger at scale: bytes per example, draws and updates per second, and snapshots, against torch.

Ours draws a batch by difficulty (task, cell, of eight candidates the one drawn the longest ago) and takes in what each draw
showed before the next batch. `WeightedRandomSampler` draws rows by given weights; weights that change need a new call per
batch, which reads them all. Both draw in turns, from the same number of rows. CPU time, one thread. Two states of a run:
fresh (hardly any row was drawn), and worn (every row was drawn).
The figures at 10^8 rows are of one build with one pass of draws, without torch, which takes at most 2^24 rows.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import WeightedRandomSampler

from mixwright import read_state, write_state
from mixwright.catalog import create
from mixwright.contracts import Pool, Scene
from mixwright.records import Cell, Stage, to_data
from mixwright.steer.engine import TaskOrder
from mixwright.steer.ledger import Ledger
from mixwright_lab.studies.report import Result, interval, run

TASKS, LEVELS, GROUP = 8, 4, 8.0
BATCHES = (64, 4096, 65536)
TURNS = {64: 40, 4096: 8, 65536: 3}
"""Batches per repetition."""
SIZES = {False: (10**5, 10**6, 10**7), True: (10**5, 10**6)}
HUGE = 10**8
SEEDS = {False: (0, 1, 2, 3, 4), True: (0, 1, 2)}
COMPARED = 4096
"""Batch of the headline."""


class Unnamed:
    """Stands in for ids: this many, and none is ever read."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


class Ours:
    """What the engine does per batch: order of tasks, selector, ledger."""

    def __init__(self, size: int, seed: int) -> None:
        cells = tuple(
            Cell(f"task{t}", float(level), size // (TASKS * LEVELS), 0.1) for t in range(TASKS) for level in range(LEVELS)
        )
        cell_of = np.random.default_rng(seed).integers(0, len(cells), size, dtype=np.int32)
        names: Any = Unnamed(size)
        self.pool = Pool(names, tuple(f"task{t}" for t in range(TASKS)), cell_of // LEVELS, cells, cell_of)
        self.ledger, self.seed, self.step = Ledger(self.pool), seed, 0
        self.selector = create("selectors", "difficulty")
        self.order = TaskOrder(np.full(TASKS, 1 / TASKS))
        stage = Stage("train", "grpo", 100, dict.fromkeys(self.pool.tasks, 1 / TASKS))
        self.selector.begin(Scene(self.pool, self.ledger, stage))

    def draw(self, batch: int) -> None:
        """One batch, and what it showed."""
        rng = np.random.default_rng((self.seed, 0, self.ledger.draws))
        drawn = self.selector.pick(self.order.next(batch), rng)
        self.ledger.mark_drawn(drawn)
        self.ledger.add(drawn, self.step, drawn % (GROUP + 1), np.full(batch, GROUP))
        self.step += 1

    def wear(self) -> None:
        """Draw every row."""
        rows = np.arange(len(self.pool.cell_of))
        self.ledger.mark_drawn(rows)
        self.ledger.add(rows, self.step, rows % (GROUP + 1), np.full(len(rows), GROUP))


class Torch:
    """A weighted sampler, made anew when its weights have changed."""

    def __init__(self, size: int, seed: int) -> None:
        self.weights = torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.chance = torch.Generator().manual_seed(seed)

    def draw(self, batch: int) -> None:
        """One batch, and a change of the drawn rows' weights."""
        drawn = list(WeightedRandomSampler(self.weights, batch, replacement=True, generator=self.chance))  # type: ignore[arg-type]
        self.weights[drawn] *= 0.5


def seconds(action: Callable[..., Any], *given: Any) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    action(*given)
    return time.process_time() - start


def speeds(size: int, seed: int, torch_too: bool = True) -> list[dict[str, Any]]:
    """Microseconds per draw, its update included, of both in turns."""
    ours, rows = Ours(size, seed), []
    both = {"ours": ours.draw} | ({"torch": Torch(size, seed).draw} if torch_too else {})
    for state in ("fresh", "worn"):
        if state == "worn":
            ours.wear()
        for batch in BATCHES:
            ours.draw(batch)
            spent = dict.fromkeys(both, 0.0)
            for _ in range(TURNS[batch]):
                for who, draw in both.items():
                    spent[who] += seconds(draw, batch)
            per_draw = {f"{who}, us": 1e6 * value / (batch * TURNS[batch]) for who, value in spent.items()}
            rows.append({"size": size, "seed": seed, "state": state, "batch": batch, **per_draw})
    return rows


def snapshot(size: int, seed: int) -> dict[str, Any]:
    """Seconds and bytes of saving and restoring a ledger in which every row was drawn."""
    ours = Ours(size, seed)
    ours.wear()
    before, fresh = ours.ledger.state(), Ledger(ours.pool)
    with tempfile.TemporaryDirectory() as folder:
        save = seconds(lambda: write_state(Path(folder), "ledger", ours.ledger.state()))
        stored = sum(path.stat().st_size for path in Path(folder).iterdir())
        restore = seconds(lambda: fresh.restore(read_state(Path(folder), "ledger")))
    if fresh.state() != before:
        raise RuntimeError("the restored ledger differs")
    return {"size": size, "save, CPU s": save, "restore, CPU s": restore, "bytes per example": stored / size}


def sizes(size: int) -> dict[str, Any]:
    """Bytes per example of what a run holds, by part, and CPU seconds to build it."""
    gc.collect()
    made: list[Ours] = []
    build = seconds(lambda: made.append(Ours(size, 0)))
    ledger, pool = made[0].ledger, made[0].pool
    arrays = [value for value in vars(ledger).values() if isinstance(value, np.ndarray) and value.base is None]
    return {
        "size": size,
        "ledger, bytes": sum(array.nbytes for array in arrays) / size,
        "pool's task and cell numbers, bytes": (pool.task_of.nbytes + pool.cell_of.nbytes) / size,
        "build, CPU s": build,
    }


def format_rows(value: Any) -> str:
    """Figures in four digits."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {format_rows(part)}" for name, part in value.items())
    return f"{value:.4g}"


def memory() -> int:
    """Bytes that are free for a dry run."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def measure(quick: bool) -> Result:
    """All sizes; the headline is torch's time per draw over ours at the largest size that torch draws from."""
    largest, rows, figures = max(SIZES[quick]), [], {}
    for size in SIZES[quick]:
        figures[f"{size:.0e} rows"] = sizes(size) | {"snapshot": snapshot(size, 0)}
        for seed in SEEDS[quick]:
            rows += speeds(size, seed)
            gc.collect()
    if not quick and memory() > 10 * 2**30:
        figures[f"{HUGE:.0e} rows"] = sizes(HUGE)
        gc.collect()
        rows += speeds(HUGE, 0, torch_too=False)
    for key in dict.fromkeys((row["size"], row["state"], row["batch"]) for row in rows):
        mine = [row for row in rows if (row["size"], row["state"], row["batch"]) == key]
        shown = {
            who: float(np.mean([row[f"{who}, us"] for row in mine])) for who in ("ours", "torch") if f"{who}, us" in mine[0]
        }
        figures[f"{key[0]:.0e} rows, {key[1]}, batches of {key[2]}, us per draw and update"] = shown
    for name, value in figures.items():
        print(f"{name:<62} {format_rows(value)}")
    compared = [row for row in rows if (row["size"], row["state"], row["batch"]) == (largest, "worn", COMPARED)]
    return Result(
        interval([row["torch, us"] / row["ours, us"] for row in compared]),
        f"torch's CPU time per draw over ours, {largest:.0e} rows, batches of {COMPARED}, weights updated after each",
        SEEDS[quick],
        rows,
        figures=to_data(figures),
        settings={"tasks": TASKS, "levels": LEVELS, "batches": BATCHES, "turns": TURNS},
        kind="ratio",
    )


if __name__ == "__main__":
    run("ledger", __doc__ or "", measure)
