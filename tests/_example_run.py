"""A synthetic run folder as a trial leaves it behind: a lever that helps, a lucky cell, a damaged one, a leak."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from answer_rows import ItemValue, write_measured, write_sides

from mixwright.config import CorpusConfig, RunConfig, TrialConfig
from mixwright.records import (
    CellAssessment,
    Decision,
    Measurement,
    Observation,
    Plan,
    RunManifest,
    Stage,
    TrialResult,
    cell_key,
    to_data,
)
from mixwright.run.folder import RunFolder, write_json, write_plan
from mixwright.trial.arm_roles import assign_roles
from mixwright.trial.seed_rows import BranchInfo
from mixwright.trial.summary import summarise

# task, level, chance level, success before, and after under uniform and steered
CELLS = (
    ("chain_sum", 1.0, 0.02, 0.93, 0.95, 0.96),
    ("chain_sum", 2.0, 0.02, 0.41, 0.58, 0.87),
    ("chain_sum", 3.0, 0.01, 0.06, 0.09, 0.39),
    ("spell_backward", 1.0, 0.01, 0.97, 0.97, 0.98),
    ("spell_backward", 2.0, 0.01, 0.52, 0.60, 0.81),
    ("spell_backward", 3.0, 0.00, 0.11, 0.12, 0.25),
    ("products", 1.0, 0.02, 0.96, 0.94, 0.56),
    ("products", 2.0, 0.02, 0.18, 0.24, 0.60),
    ("products", 3.0, 0.01, 0.01, 0.01, 0.02),
    ("gcd", 1.0, 0.34, 0.82, 0.84, 0.95),
    ("gcd", 2.0, 0.33, 0.45, 0.52, 0.83),
    ("gcd", 3.0, 0.33, 0.33, 0.34, 0.76),
    ("count_bits", 1.0, 0.36, 0.34, 0.37, 0.36),
    ("base_conversion", None, 0.00, 0.0, 0.0, 0.0),
    ("lcm", None, 0.03, 0.02, 0.02, 0.03),
    ("prime_factorization", None, 0.01, 0.0, 0.01, 0.0),
)
CONSTANT = ("gcd", 3.0)
"""The cell whose success is the commonest answer alone."""
ITEMS, SAMPLES, STEPS, GROUPS = 32, 8, 60, 8
REFERENCES = ("frozen", "uniform", "equal_shares")
COLUMNS = {"frozen": 3, "uniform": 4, "equal_shares": 4, "steered": 5, "shuffled_levels": 4}
SILENT = {"uniform": (0.66, 0.60), "equal_shares": (0.62, 0.5), "steered": (0.58, 0.34), "shuffled_levels": (0.58, 0.57)}


KEPT = tempfile.TemporaryDirectory(prefix="mixwright-example-run-")
"""Every run that was asked for, made once per process; tests get copies, which they may change."""


def build(folder: Path, *, seeds: int = 5, rename: dict[str, str] | None = None, nulls: bool = False) -> RunFolder:
    """Write the run.

    Args:
        folder: where to.
        seeds: of every arm.
        rename: replaces task names, for hostile ones.
        nulls: one ran, too.
    """
    return _copied(_built(seeds, tuple((rename or {}).items()), nulls), folder)


def build_pair(folder: Path, *, rename: dict[str, str] | None = None) -> RunFolder:
    """A plain before and after of one checkpoint pair, nothing else."""
    return _copied(_built_pair(tuple((rename or {}).items())), folder)


def _copied(kept: Path, folder: Path) -> RunFolder:
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    return RunFolder(folder)


@functools.cache
def _built(seeds: int, renamed: tuple[tuple[str, str], ...], nulls: bool) -> Path:
    run, names = RunFolder(Path(tempfile.mkdtemp(dir=KEPT.name))), dict(renamed)
    arms = [*REFERENCES, "steered", *(["shuffled_levels"] if nulls else [])]
    _records(run, seeds, names)
    for arm in arms:
        for seed in range(seeds):
            _branch(run.branch(arm, seed), arm, seed, names)
    write_json(run.result, _result(run, seeds, nulls=nulls))
    return run.path


@functools.cache
def _built_pair(renamed: tuple[tuple[str, str], ...]) -> Path:
    run, rng = RunFolder(Path(tempfile.mkdtemp(dir=KEPT.name))), np.random.default_rng(7)
    for name, column in (("before", 3), ("after", 5)):
        write_measured(run.measurements(name), _measured(column, rng, dict(renamed)))
    return run.path


def item_rows(cell: tuple[str, float | None], values: dict[str, Sequence[float]]) -> list[ItemValue]:
    """Scores of items: name of a measurement -> one value per item."""
    task, level = cell
    return [
        ItemValue(task, name, value, level, f"{task}-{level}-{i}", SAMPLES if name == "pass@1" else 1)
        for name, column in values.items()
        for i, value in enumerate(map(float, column))
    ]


def _measured(column: int, rng: np.random.Generator, names: dict[str, str]) -> list[ItemValue | Measurement]:
    rows: list[ItemValue | Measurement] = []
    for place, cell in enumerate(CELLS):
        task, level, chance, success = names.get(cell[0], cell[0]), cell[1], cell[2], float(cell[column])
        hard = np.random.default_rng([3, place]).permutation((np.arange(ITEMS) + 0.5) / ITEMS)
        greedy = (hard + rng.normal(0, 0.08, ITEMS) * (0.02 < success < 0.98) < success).astype(float)
        sampled = rng.binomial(SAMPLES, np.clip(success + rng.normal(0, 0.02), 0, 1), ITEMS) / SAMPLES
        swapped = success if cell[:2] == CONSTANT else min(chance, success)
        values = {"greedy": greedy, "pass@1": sampled, "chance": (hard < chance).astype(float)}
        values |= {f"{name}.swapped": np.full(ITEMS, swapped) for name in ("greedy", "pass@1")}
        rows += item_rows((task, level), values)  # type: ignore[arg-type]
        for name, mean in (("greedy", greedy.mean()), ("pass@1", sampled.mean())):
            low, high = max(mean - 0.05, 0), min(mean + 0.05, 1)
            rows.append(Measurement("competence", task, name, mean, low, high, 256, "share", level, chance, "constant 1"))
    return rows


def _branch(folder: Path, arm: str, seed: int, names: dict[str, str]) -> None:
    rng = np.random.default_rng([seed, *arm.encode()])
    column = COLUMNS[arm]
    write_measured(folder / "before.parquet", _measured(3, np.random.default_rng(seed), names))
    write_measured(folder / "after.parquet", _measured(column, rng, names))
    _completions(folder, rng, names)
    trained = arm != "frozen"
    write_json(folder / "branch.json", BranchInfo(arm, seed, f"base-{seed % 2}", "grpo", trained, "digest"))
    if not trained:
        return
    write_json(folder / "proof.json", {"rollouts": 64 * STEPS})
    start, end = SILENT[arm]
    with (folder / "steps.jsonl").open("w") as file:
        for step in range(STEPS):
            done = step / STEPS
            silent = int(rng.binomial(GROUPS, start + (end - start) * done))
            cells, states = {}, {}
            for cell in CELLS:
                key = cell_key(names.get(cell[0], cell[0]), cell[1])
                before, after = float(cell[3]), float(cell[column])
                cells[key] = max((before + (after - before) * done - cell[2]) / (1 - cell[2]), 0.0)
                states[key] = _state(before + (after - before) * done, cell[2])
            line = {"step": step, "rollouts": 64 * (step + 1), "groups": GROUPS, "zero_signal": silent, "refused": 1}
            file.write(json.dumps(line | {"reward": 0.3, "cells": cells, "states": states}) + "\n")
    with (folder / "decisions.jsonl").open("w") as file:
        for decision in _decisions(rng, names) if arm != "uniform" else []:
            file.write(json.dumps(to_data(decision)) + "\n")


def _state(success: float, chance: float) -> str:
    if abs(success - chance) < 0.03 and chance > 0.2:
        return "lucky"
    return "mastered" if success > 0.9 else "reachable" if success > 0.1 else "hopeless"


def _decisions(rng: np.random.Generator, names: dict[str, str]) -> list[Decision]:
    trap, lost = names.get("count_bits", "count_bits"), names.get("products", "products")
    found = []
    for step in range(STEPS):
        if rng.random() < 0.35:
            because = "kappa 0.02, at most 0.08 in 64 groups"
            found.append(Decision(step, f"refuse.{trap}@1", None, "refused", because))
        if step % 10 == 0:
            found.append(Decision(step, f"weights.{lost}", 0.12, 0.12 + step / 1000, "5 of 14 cells in the band"))
    return found


def _completions(folder: Path, rng: np.random.Generator, names: dict[str, str]) -> None:
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
    write_sides(folder, rows)


def _result(run: RunFolder, seeds: int, *, nulls: bool) -> TrialResult:
    trial = TrialConfig(seeds=seeds)
    config = RunConfig(CorpusConfig("train.jsonl"), trial=trial)
    null_arms = {"steered": ("shuffled_levels",)} if nulls else None
    notes = ("Seeds 0, 2 and 4 start from base 0, seeds 1 and 3 from base 1.",)
    return summarise(run, config, assign_roles(trial), null_arms, notes)


def _records(run: RunFolder, seeds: int, names: dict[str, str]) -> None:
    write_json(
        run.manifest,
        RunManifest(
            seeds={"run": 0, "trial_seed_count": seeds},
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
            Observation("options", None, "info", 3, 9, "Three of nine rows have options.", ""),
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
    cells = [
        CellAssessment(
            names.get(c[0], c[0]), c[1], _state(c[3], c[2]), c[3], c[2], 256, 200,
            swapped=min(c[2], c[3]), kappa=(c[3] - min(c[2], c[3])) / (1 - min(c[2], c[3])), kappa_high=0.08,
        )  # type: ignore[arg-type]
        for c in CELLS
    ]  # fmt: skip
    stage = Stage(
        "grpo", "grpo", STEPS, {task: 1 / len(tasks) for task in tasks}, selector="difficulty", gates=("too_hard",)
    )
    return Plan("difficulty", (stage,), tuple(cells), {"stages.0.weights": "share of cells in the band"})
