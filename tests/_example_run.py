"""A synthetic run folder as a trial leaves it behind: levers that work, a luck trap, a damaged cell, a leak."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.records import (
    CellPlan,
    Decision,
    Effect,
    Forecast,
    Interval,
    Measurement,
    Observation,
    Plan,
    RunManifest,
    SeedRow,
    Stage,
    TrialResult,
    cell_key,
    to_data,
)
from mixwright.runs import RunFolder, write_json, write_measurements, write_plan
from mixwright.verdict._intervals import mean_over_seeds

# task, level, luck, success before, and after under uniform and steered
CELLS = (
    ("chain_sum", 1.0, 0.02, 0.93, 0.95, 0.96),
    ("chain_sum", 2.0, 0.02, 0.41, 0.58, 0.77),
    ("chain_sum", 3.0, 0.01, 0.06, 0.09, 0.19),
    ("spell_backward", 1.0, 0.01, 0.97, 0.97, 0.98),
    ("spell_backward", 2.0, 0.01, 0.52, 0.60, 0.71),
    ("spell_backward", 3.0, 0.00, 0.11, 0.12, 0.15),
    ("products", 1.0, 0.02, 0.90, 0.88, 0.66),
    ("products", 2.0, 0.02, 0.18, 0.24, 0.40),
    ("products", 3.0, 0.01, 0.01, 0.01, 0.02),
    ("gcd", 1.0, 0.34, 0.82, 0.84, 0.85),
    ("gcd", 2.0, 0.33, 0.45, 0.52, 0.63),
    ("gcd", 3.0, 0.33, 0.33, 0.34, 0.36),
    ("count_bits", 1.0, 0.36, 0.34, 0.37, 0.36),
    ("base_conversion", None, 0.00, 0.0, 0.0, 0.0),
    ("lcm", None, 0.03, 0.02, 0.02, 0.03),
    ("prime_factorization", None, 0.01, 0.0, 0.01, 0.0),
)
ITEMS, SAMPLES, STEPS, GROUPS = 32, 8, 60, 8
SILENT = {"uniform": (0.66, 0.60), "steered": (0.58, 0.34), "permuted": (0.58, 0.57)}


def build(folder: Path, *, seeds: int = 5, rename: dict[str, str] | None = None) -> RunFolder:
    """Write the run; `rename` replaces task names, for hostile ones."""
    run = RunFolder(folder)
    names = rename or {}
    _records(run, seeds, names)
    for arm in SILENT:
        for seed in range(seeds):
            _branch(run.branch(arm, seed), arm, seed, names)
    write_json(run.result, _result(seeds))
    return run


def build_pair(folder: Path, *, rename: dict[str, str] | None = None) -> RunFolder:
    """A plain before and after of one checkpoint pair, nothing else."""
    run, rng = RunFolder(folder), np.random.default_rng(7)
    for name, column in (("before", 3), ("after", 5)):
        write_measurements(run.measurements(name), _measured(column, rng, rename or {}))
    return run


def _measured(column: int, rng: np.random.Generator, names: dict[str, str], shift: float = 0.0) -> list[Measurement]:
    rows = []
    skill = np.random.default_rng(3).normal(0, 0.08, (len(CELLS), ITEMS))
    for place, cell in enumerate(CELLS):
        task, level, luck = names.get(cell[0], cell[0]), cell[1], cell[2]
        target = float(cell[column])
        mean = np.clip(target + (shift + skill[place]) * (0.02 < target < 0.9), 0, 1)
        items = rng.binomial(SAMPLES, mean, ITEMS) / SAMPLES
        for i, value in enumerate(items):
            rows.append(_row(task, level, float(value), SAMPLES, f"{task}-{level}-{i}", luck))
        rows.append(_row(task, level, float(items.mean()), ITEMS * SAMPLES, None, luck))
    return rows


def _row(task: str, level: float | None, value: float, n: int, example: str | None, luck: float) -> Measurement:
    low, high = max(value - 0.05, 0), min(value + 0.05, 1)
    return Measurement("competence", task, "pass@1", value, low, high, n, "share", level, example, luck, "majority answer")


def _branch(folder: Path, arm: str, seed: int, names: dict[str, str]) -> None:
    rng = np.random.default_rng([seed, len(arm)])
    column = {"uniform": 4, "steered": 5, "permuted": 3}[arm]
    write_measurements(folder / "before.parquet", _measured(3, np.random.default_rng(seed), names))
    write_measurements(folder / "after.parquet", _measured(column, rng, names, shift=float(rng.normal(0, 0.02))))
    _completions(folder / "completions.parquet", rng, names)
    start, end = SILENT[arm]
    with (folder / "steps.jsonl").open("w") as file:
        for step in range(STEPS):
            done = step / STEPS
            silent = int(rng.binomial(GROUPS, start + (end - start) * done))
            cells = {}
            for cell in CELLS:
                before, after = float(cell[3]), float(cell[column])
                above = max((before + (after - before) * done - cell[2]) / (1 - cell[2]), 0.0)
                cells[cell_key(names.get(cell[0], cell[0]), cell[1])] = above
            line = {"step": step, "rollouts": 64 * (step + 1), "groups": GROUPS, "zero_signal": silent, "refused": 1}
            file.write(json.dumps(line | {"reward": 0.3, "cells": cells}) + "\n")
    with (folder / "decisions.jsonl").open("w") as file:
        for decision in _decisions(rng, names) if arm != "uniform" else []:
            file.write(json.dumps(to_data(decision)) + "\n")


def _decisions(rng: np.random.Generator, names: dict[str, str]) -> list[Decision]:
    trap, lost = names.get("count_bits", "count_bits"), names.get("products", "products")
    found = []
    for step in range(STEPS):
        if rng.random() < 0.35:
            because = "cell success 0.36 is not above its luck 0.36 (majority answer, n = 64)"
            found.append(Decision(step, f"refuse.{trap}@1", None, "refused", because))
        if step % 10 == 0:
            found.append(Decision(step, f"weights.{lost}", 0.12, 0.12 + step / 1000, "5 of 14 cells in the band"))
    found.append(Decision(40, "alarm.canary", None, 0.69, f"{lost}@1: 11 of 16 canaries right, 15 of 16 before the run"))
    return found


def _completions(path: Path, rng: np.random.Generator, names: dict[str, str]) -> None:
    rows = []
    for cell in CELLS:
        for i in range(3):
            a, b = int(rng.integers(10, 99)), int(rng.integers(10, 99))
            for when, column in (("before", 3), ("after", 5)):
                right = bool(rng.random() < cell[column])
                text = str(a + b) if right else f"The answer is {a + b + int(rng.integers(1, 9))}"
                task = names.get(cell[0], cell[0])
                row = {"when": when, "example": f"{task}-{cell[1]}-{i}", "task": task, "level": cell[1]}
                row |= {"prompt": f"What is {a} + {b}?", "answer": str(a + b), "completion": text, "score": float(right)}
                rows.append(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def _result(seeds: int) -> TrialResult:
    numbers = (
        ("zero_signal_share", "lower", {"uniform": 0.63, "steered": 0.46, "permuted": 0.575}, 0.02, 0.03),
        ("success.mastered", "higher", {"uniform": 0.91, "steered": 0.865, "permuted": 0.905}, 0.012, 0.02),
        ("success.reachable", "higher", {"uniform": 0.47, "steered": 0.602, "permuted": 0.384}, 0.03, 0.05),
        ("success.hopeless", "higher", {"uniform": 0.05, "steered": 0.064, "permuted": 0.041}, 0.01, 0.02),
        ("rollouts_to_target", "lower", {"uniform": 3400.0, "steered": 2100.0, "permuted": None}, 300.0, 500.0),
    )
    rng = np.random.default_rng(1)
    rows, effects = [], []
    for name, better, means, spread, noise in numbers:
        unit = "rollouts" if name.startswith("rollouts") else "share"
        values = {}
        for arm, mean in means.items():
            for seed in range(seeds):
                missed = mean is None or (name.startswith("rollouts") and arm == "uniform" and seed == 0)
                values[arm, seed] = None if missed else float(mean + rng.normal(0, spread))
                rows.append(SeedRow(arm, seed, name, values[arm, seed], unit))
        for arm in ("steered", "permuted"):
            both = [(values[arm, s], values["uniform", s]) for s in range(seeds)]
            found = [a - b for a, b in both if a is not None and b is not None]
            effects.append(_effect(arm, name, found, noise, better, seeds - len(found)))
    return TrialResult(
        arms=("uniform", "steered", "permuted"),
        nulls=("permuted",),
        seeds=tuple(range(seeds)),
        rows=tuple(rows),
        effects=tuple(effects),
        rollouts={"uniform": 24_320 * seeds, "steered": 25_600 * seeds, "permuted": 25_600 * seeds},
        target={"success.reachable": 0.1},
        unproven=False,
        notes=("Seeds 0, 2 and 4 start from base 0, seeds 1 and 3 from base 1.",),
    )


def _effect(arm: str, name: str, found: list[float], noise: float, better: str, censored: int) -> Effect:
    if len(found) < 2:
        return Effect(arm, "uniform", name, Interval(0.0, -4000.0, 4000.0, 0), noise, "inconclusive", better, censored)  # type: ignore[arg-type]
    mean, low, high = mean_over_seeds(found)
    clear = len(found) >= 5 and (low > 0 or high < 0)
    word = ("helps" if (low > 0) == (better == "higher") else "harms") if clear else "inconclusive"
    return Effect(arm, "uniform", name, Interval(mean, low, high, len(found)), noise, word, better, censored)  # type: ignore[arg-type]


def _records(run: RunFolder, seeds: int, names: dict[str, str]) -> None:
    write_json(
        run.manifest,
        RunManifest(
            seeds={"run": 0, "trial": seeds},
            versions={
                "python": "3.11.2",
                "mixwright": "0.1.0",
                "torch": "2.13.0",
                "trl": "1.16.0",
                "transformers": "5.23.0",
            },
            inputs={"train": "9f2c4e1ab7d05c3388a1f0e6d2b94c7715ea0c96d8f3b2417706cd5e9a81f4b3"},
            settings={
                "loss_type": "dapo",
                "scale_rewards": "group",
                "beta": 0.0,
                "learning_rate": 5e-4,
                "num_generations": 8,
            },
            parent="tiny: (2 bases)",
            command="mixwright run demo.yaml --out runs/demo",
            created="2026-01-01T12:00:00+00:00",
        ),
    )
    write_json(
        run.audit,
        [
            Observation("formats", None, "info", 3, 9, "Three answer skeletons cover 94 % of the rows.", ""),
            Observation(
                "frequency", names.get("gcd", "gcd"), "warning", 12, 1800, "Seen once in 150 draws.", "Raise its share."
            ),
        ],
    )
    write_json(
        run.path / "audit_neighbouring_seeds.json",
        [
            Observation(
                "contamination",
                names.get("gcd", "gcd"),
                "error",
                499,
                500,
                "499 of 500 eval items also stand in train, word for word.",
                "Make the splits by a hash of the prompt.",
                null="0 in a healthy corpus",
            )
        ],
    )
    write_plan(run.plan, _plan(names))


def _plan(names: dict[str, str]) -> Plan:
    tasks = list(dict.fromkeys(names.get(cell[0], cell[0]) for cell in CELLS))
    states = [("mastered" if c[3] > 0.8 else "reachable" if c[3] > 0.1 else "hopeless") for c in CELLS]
    cells = [
        CellPlan(names.get(c[0], c[0]), c[1], "lucky" if abs(c[3] - c[2]) < 0.03 and c[2] > 0.2 else s, c[3], c[2], 256, 200)  # type: ignore[arg-type]
        for c, s in zip(CELLS, states, strict=True)
    ]
    forecast = []
    for task in tasks:
        own = [c for c in CELLS if names.get(c[0], c[0]) == task]
        before, after = (float(np.mean([c[i] for c in own])) for i in (3, 4))
        forecast.append(Forecast(task, "pass@1", before, after, max(after - 0.06, 0), min(after + 0.08, 1)))
    stage = Stage(
        "grpo", "grpo", STEPS, {task: 1 / len(tasks) for task in tasks}, selector="difficulty", gates=("too_hard",)
    )
    return Plan("difficulty", (stage,), tuple(cells), tuple(forecast), {"stages.0.weights": "share of cells in the band"})
