"""Study of what each verb costs: seconds per row, token, task or group, fitted on three sizes and checked at the double.

Each case (`cost_cases.py`) has a process of its own on one thread, `audit` and `scan` one for each size, because their peak
memory is read. CPU seconds are those of the work, without imports and without making its
inputs (`trial, branches` is a command with its imports); where a case is done twice
the lesser counts, because other work on the machine only adds. Through the three sizes goes the line a + b x with the least
squares of relative errors. A slope ratio is the growth from the largest size to its double over that of the line, which an
intercept cannot flatter.

Of the model two things are checked: operations per token, counted by torch with attention written out, against
2 (P + 2 layers width length) forward and three times as many with the backward pass (P: all parameters but a table of words
that the output does not use); and seconds per token of models of three widths against a + b operations, at twice as many
operations.

Goals, fixed before the run: seconds at the double over those of the line from .75 to 1.33, in each case; peak memory of
`audit` and `scan` likewise; operations within 5 % of the formula; seconds per operation from .75 to 1.33, forward and with
the backward pass.

    OMP_NUM_THREADS=1 python -m mixwright_lab.studies.cost_model [--quick]
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.records import Interval
from mixwright_lab.studies.cost_cases import CASES, Case, tiny
from mixwright_lab.studies.report import Goal, Result, run

WITHIN, WITHIN_OPERATIONS = (0.75, 1.33), (0.95, 1.05)
WIDTHS, DEPTH = (64, 96, 144, 216), 6
"""Widths of models whose operations about double; the last is the one that is checked."""
ROWS, LENGTH, TURNS = 32, 128, 5
"""Rows and tokens of a row of one pass, and passes whose least seconds count."""


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(whom) for whom in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def work_once(case: Case, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """A row per size: CPU seconds, counts, and this process's peak memory in MB. Sizes take turns."""
    with tempfile.TemporaryDirectory() as place:
        rows: dict[int, dict[str, Any]] = {}
        if case.warm:
            (Path(place) / "warm").mkdir()
            case.make(max(1, sizes[0] // 4), Path(place) / "warm")()
        for turn in range(case.rounds):
            for size in sizes:
                folder = Path(place) / f"{turn}-{size}"
                folder.mkdir()
                work, began = case.make(size, folder), cpu_seconds()
                counts = work()
                seconds = cpu_seconds() - began
                if size not in rows or seconds < rows[size]["cpu_seconds"]:
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                    rows[size] = {"size": size, "cpu_seconds": seconds, "peak_mb": peak, **counts}
    return list(rows.values())


def operations() -> list[dict[str, Any]]:
    """Per width and pass: operations per token, counted and by the formula, and CPU seconds per token."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    found = []
    for width in WIDTHS:
        model = tiny(width - width % 8, DEPTH).model
        config, ids = model.config, torch.randint(5, 250, (ROWS, LENGTH))
        parameters = sum(values.numel() for values in model.parameters())
        by_formula = 2 * (parameters + 2 * config.num_hidden_layers * config.hidden_size * LENGTH)

        def forward(model: Any = model, ids: Any = ids) -> None:
            with torch.no_grad():
                model(input_ids=ids, use_cache=False)

        def backward(model: Any = model, ids: Any = ids) -> None:
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            model.zero_grad()

        for name, work, times in (("forward", forward, 1), ("training", backward, 3)):
            model.set_attn_implementation("eager")
            with FlopCounterMode(display=False) as counter:
                work()
            model.set_attn_implementation("sdpa")
            seconds = []
            for _ in range(TURNS):
                began = time.process_time()
                work()
                seconds.append(time.process_time() - began)
            row: dict[str, Any] = {"part": name, "parameters": parameters, "by formula": times * by_formula}
            row |= {"counted": counter.get_total_flops() / ids.numel(), "cpu_seconds": min(seconds) / ids.numel()}
            found.append(row)
    return found


def line_through(x: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope with the least squares of relative errors; neither is negative."""
    at, found = np.array(x, dtype=float), np.array(seconds, dtype=float)
    weights = 1 / found
    (start, slope), *_ = np.linalg.lstsq(np.stack([weights, at * weights], axis=1), np.ones(len(at)), rcond=None)
    if start < 0:
        return 0.0, float((at * weights).sum() / ((at * weights) ** 2).sum())
    if slope < 0:
        return float(weights.sum() / (weights**2).sum()), 0.0
    return float(start), float(slope)


def check_line(rows: Sequence[Mapping[str, Any]], driver: str, column: str = "cpu_seconds") -> dict[str, float]:
    """The line through all rows but the last, what it says of the last, and what came out."""
    *fitted, last = sorted(rows, key=lambda row: row[driver])
    start, slope = line_through([row[driver] for row in fitted], [row[column] for row in fitted])
    predicted, grown = start + slope * last[driver], slope * (last[driver] - fitted[-1][driver])
    found = {"intercept": start, "slope": slope, "at": last[driver], "predicted": predicted, "measured": last[column]}
    found["ratio"] = last[column] / predicted
    return found | ({"slope ratio": (last[column] - fitted[-1][column]) / grown} if grown > 0 else {})


def run_case(name: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of one process. Raises RuntimeError where it ended with an error."""
    command = [sys.executable, "-m", "mixwright_lab.studies.cost_model", "--case", name, *map(str, sizes)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr[-1500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def goal(name: str, value: float, within: tuple[float, float]) -> Goal:
    """A ratio that was taken once and has no interval."""
    low, high = within
    return Goal(name, Interval(value, value, value, 1), f"{low:g} to {high:g}", low <= value <= high)


def measure(quick: bool) -> Result:
    """Every case, then operations; the headline is the ratio that is farthest from 1."""
    rows, figures, goals = [], {}, []
    for name, case in CASES.items():
        sizes = [size // case.quick_share if quick else size for size in (*case.sizes, 2 * case.sizes[-1])]
        parts = [[size] for size in sizes] if case.alone else [sizes]
        found = [row for part in parts for row in run_case(name, part)]
        figures[name] = {"over": case.driver, **check_line(found, case.driver)}
        goals.append(goal(f"{name}: seconds at the double over the line", figures[name]["ratio"], WITHIN))
        if case.alone:
            figures[f"{name}, peak MB"] = {"over": "rows", **check_line(found, "rows", "peak_mb")}
            goals.append(goal(f"{name}: peak memory over the line", figures[f"{name}, peak MB"]["ratio"], WITHIN))
        rows += [{"case": name, **row} for row in found]
        print(name, json.dumps(figures[name]), file=sys.stderr, flush=True)
    counted = run_case("operations", [])
    rows += counted
    for part in ("forward", "training"):
        own = [row for row in counted if row["part"] == part]
        figures[f"operations, {part}"] = {"over": "operations per token", **check_line(own, "counted")}
        ratios = [row["counted"] / row["by formula"] for row in own]
        worst = max(ratios, key=lambda value: abs(value - 1))
        goals.append(goal(f"operations, {part}: counted over the formula, worst width", worst, WITHIN_OPERATIONS))
        ratio = figures[f"operations, {part}"]["ratio"]
        goals.append(goal(f"operations, {part}: seconds at the double over the line", ratio, WITHIN))
    seconds = [made.found for made in goals if "seconds" in made.name]
    worst = max(seconds, key=lambda found: abs(np.log(found.value)))
    settings = {name: {"sizes": case.sizes, "driver": case.driver, "rounds": case.rounds} for name, case in CASES.items()}
    settings["operations"] = {"widths": WIDTHS, "depth": DEPTH, "rows": ROWS, "length": LENGTH}
    unit = "seconds at twice the largest fitted size over those of the line, the case farthest from 1"
    return Result(worst, unit, (0,), rows, figures, settings, kind="ratio", goals=goals)


def main_case(name: str, sizes: Sequence[int]) -> None:
    """One process: prints its rows as one line."""
    print(json.dumps(operations() if name == "operations" else work_once(CASES[name], sizes)))


if __name__ == "__main__":
    if "--case" in sys.argv:
        main_case(sys.argv[2], [int(size) for size in sys.argv[3:]])
    else:
        run("cost_model", __doc__, measure)
