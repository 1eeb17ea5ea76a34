"""From the files of a finished branch to its numbers: one `SeedRow` each. Reads files only; needs no torch."""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.errors import InputError
from mixwright.records import CellPlan, Measurement, SeedRow, cell_key
from mixwright.runs import read_json, read_measurements

CLASSES = ("mastered", "reachable", "hopeless", "lucky")
"""Cell classes, fixed by the plan before the run."""
ABLE = ("mastered", "reachable")
"""Classes that are right more often than luck: elsewhere rewards that differ teach a trick or noise."""
SUCCESS = ("competence", "pass@1")
"""Probe and name of the measurement that success is read from."""
CHARGED = ("pass@1", "greedy")
"""Per-example measurements whose `n` counts rollouts."""


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """branch.json: what a finished branch is, so that an interrupted trial can go on."""

    arm: str
    seed: int
    base: str
    """Name of the starting model."""
    objective: str
    """grpo, sft or dpo."""
    planned: bool
    """True when the arm follows the plan, hence rests on the measuring before it."""
    digest: str
    """Of everything that decides the outcome; another digest, and the branch is run again."""


@dataclass(frozen=True, slots=True)
class BranchFiles:
    """One finished branch, read."""

    info: BranchInfo
    before: Sequence[Measurement]
    after: Sequence[Measurement]
    steps: Sequence[Mapping[str, Any]]
    """Lines of steps.jsonl."""
    progress: Sequence[Mapping[str, Any]]
    """Lines of progress.jsonl."""
    proof: Mapping[str, Any]
    """proof.json; its rollouts include canaries after the last step."""

    @property
    def measured_before(self) -> int:
        """Rollouts of the measuring before the run."""
        return measuring_rollouts(self.before)

    @property
    def charged(self) -> int:
        """Rollouts of this branch alone: training, canaries, evaluations on the way, measuring after."""
        training = max(int(line.get("rollouts", 0)) for line in (self.proof, *self.steps))
        evaluating = int(self.progress[-1]["evaluated"]) if self.progress else 0
        return training + evaluating + measuring_rollouts(self.after)


def read_branch(folder: Path) -> BranchFiles:
    """All of a branch's numbers. Raises InputError when a file is missing or broken."""
    return BranchFiles(
        read_json(folder / "branch.json", BranchInfo),
        read_measurements(folder / "before.parquet"),
        read_measurements(folder / "after.parquet"),
        list(_lines(folder / "steps.jsonl")),
        list(_lines(folder / "progress.jsonl")),
        read_json(folder / "proof.json", dict[str, Any]),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a .jsonl file; nothing when there is no such file."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError("JSON", str(error), "Remove the branch folder.", file=path, line=number) from None


def measuring_rollouts(measurements: Iterable[Measurement]) -> int:
    """Completions that these measurements were graded on; greedy and sampled ones of each item."""
    return sum(row.n for row in measurements if row.probe == SUCCESS[0] and row.example and row.name in CHARGED)


def class_success(measurements: Iterable[Measurement], cells: Sequence[CellPlan]) -> dict[str, float]:
    """Mean sampled pass@1 over the cells of each class, every cell counted once; `all` over all that are not lucky.

    Classes without a measured cell are left out.
    """
    measured = {
        cell_key(row.task, row.level): row.value
        for row in measurements
        if (row.probe, row.name) == SUCCESS and row.example is None
    }
    known = [(cell.state, measured[cell.key]) for cell in cells if cell.key in measured]
    groups = {name: [value for state, value in known if state == name] for name in CLASSES}
    groups["all"] = [value for state, value in known if state != "lucky"]
    return {name: statistics.fmean(values) for name, values in groups.items() if values}


def reached(progress: Sequence[Mapping[str, Any]], gain: float) -> tuple[int | None, float | None]:
    """(rollouts charged when the target was reached or None, the target), on the reachable cells.

    The target is the success of the starting model on the same fixed items plus `gain`, at most 1. It counts as reached
    at the first of two evaluations in a row at or above it: one alone is often luck, more so for a noisy run.
    """
    points = [(int(row["rollouts"]), row["success"]["reachable"]) for row in progress if "reachable" in row["success"]]
    if not points:
        return None, None
    target = min(1.0, points[0][1] + gain)
    for (rollouts, success), (_, following) in itertools.pairwise(points[1:]):
        if min(success, following) >= target:
            return rollouts, target
    return None, target


def branch_rows(branch: BranchFiles, cells: Sequence[CellPlan], gain: float) -> list[SeedRow]:
    """The numbers of one branch: shares, rollouts, and success before, after and gained per cell class."""
    values: dict[str, tuple[float | None, str]] = {}
    groups = sum(line.get("groups", 0) for line in branch.steps)
    if groups and branch.info.objective == "grpo":
        for name, key in (("zero_signal_share", "zero_signal"), ("refused_share", "refused")):
            values[name] = (sum(line.get(key, 0) for line in branch.steps) / groups, "share")
        able = {cell.key for cell in cells if cell.state in ABLE}
        teaching = sum(count for line in branch.steps for key, count in line.get("mixed", {}).items() if key in able)
        values["teaching_share"] = (teaching / groups, "share")
    before, after = class_success(branch.before, cells), class_success(branch.after, cells)
    for name in before.keys() & after.keys():
        values[f"start.{name}"] = (before[name], "share")
        values[f"success.{name}"] = (after[name], "share")
        values[f"gain.{name}"] = (after[name] - before[name], "share")
    if branch.info.objective == "grpo":
        count, target = reached(branch.progress, gain)
        if target is not None:
            measuring = branch.measured_before if branch.info.planned else 0
            values["training_rollouts_to_target"] = (count, "rollouts")
            values["rollouts_to_target"] = (None if count is None else count + measuring, "rollouts")
    values["rollouts"] = (branch.charged + branch.measured_before, "rollouts")
    info = branch.info
    return [SeedRow(info.arm, info.seed, name, value, unit) for name, (value, unit) in sorted(values.items())]
