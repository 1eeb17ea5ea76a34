"""Stages of a plan in one branch, one after another: each starts from the files that the one before left, and is kept.

A finished stage is kept under trial/stages by a digest of all that led to it. Branches that begin with the same stages, seed
and starting model share them, and an interrupted branch goes on at the border, to the byte. After every stage the held-out
items are measured; where a task of an earlier stage is shown to be below what the plan expected, a later stage that has a
rehearsal share gives it to that task.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.answers.score import read_scores
from mixwright.answers.table import Answers
from mixwright.corpus.rows import pc
from mixwright.estimates.outcome import ItemScores
from mixwright.records import Stage, to_data
from mixwright.run.folder import (
    answers_file,
    read_json,
    read_json_lines,
    write_json,
    write_measurements,
    write_table,
    write_text,
)
from mixwright.trial.seed_rows import measuring_rollouts

if TYPE_CHECKING:
    from mixwright.contracts import Branch
    from mixwright.measure.stage import MeasureResult

TrainOne = Callable[["Branch", "StageStart", Path], "MeasureResult"]
"""(branch of one stage, what it starts from, its folder) -> what was measured after it; leaves its files in the folder."""
STANDARD_ERRORS_BELOW = 2.0
"""Standard errors by which a task has to be below what was expected before it is rehearsed."""
MEASURED_FILES = ("measured.parquet", "measured.answers.parquet")
STAGE_FILES = ("steps.jsonl", "decisions.jsonl", "proof.json", "draws.parquet", "stage.json", *MEASURED_FILES)


OPTIMIZER_FILE = "optimizer.safetensors"
"""File of a stage's folder: the optimiser's state, where the next stage takes it over."""


@dataclass(frozen=True)
class StageStart:
    """What a stage starts from."""

    number: int
    """Place in the plan, from 0."""
    model: Path | None = None
    """Folder of the model after the stage before; None is the branch's starting model."""
    optimizer: Path | None = None
    """File of the optimiser's state to take over; None starts a new one."""
    reference: Path | None = None
    """Folder of the reference model to keep; None takes the model that the stage starts from."""
    keeps_optimizer: bool = False
    """Whether the next stage takes the optimiser's state over, which is then to be written to `OPTIMIZER_FILE`."""


def train_stages(
    branch: Branch, digest: str, stages_folder: Path, base: Path, folder: Path, train_one: TrainOne, *, success_name: str
) -> None:
    """Train all stages, and leave the files of the whole branch in `folder`: the last model, lines and counts of all stages.

    Args:
        branch: with a plan of several stages.
        digest: of everything but the plan that decides the outcome.
        stages_folder: where finished stages are kept.
        base: starting model.
        folder: of the branch.
        train_one: trains and measures one stage.
        success_name: name of the measurement that success is read from.
    """
    stages, finished_folders = branch.plan.stages, list[Path]()
    for number, stage in enumerate(stages):
        start, further_stages = StageStart(number), stages[number + 1 :]
        if finished_folders:
            previous = finished_folders[-1]
            stage = with_rehearsal(stages[:number], stage, read_scores(previous / "measured.parquet"), success_name)
            start = StageStart(
                number,
                model=previous / "model",
                optimizer=previous / OPTIMIZER_FILE if "optimizer" in stage.kept else None,
                reference=base if "reference" in stage.kept else None,
            )
        start = replace(start, keeps_optimizer=bool(further_stages) and "optimizer" in further_stages[0].kept)
        stage_branch = replace(branch, plan=replace(branch.plan, stages=(stage,), why={}))
        deciding_values = [digest, to_data(stage_branch), start.keeps_optimizer]
        digest = hashlib.sha256(json.dumps(deciding_values, sort_keys=True).encode()).hexdigest()
        stage_folder = stages_folder / digest[:32]
        if not (stage_folder / "stage.json").is_file():
            _keep_stage(stage_folder, stage_branch, stages[number], start, train_one)
        finished_folders.append(stage_folder)
    shutil.copytree(finished_folders[-1] / "model", folder / "model")
    join_stages(stages, finished_folders, folder)


def with_rehearsal(earlier: Sequence[Stage], stage: Stage, measured: ItemScores, name: str) -> Stage:
    """Return the stage, with its rehearsal share on tasks of earlier stages that are shown to be below what was expected.

    Args:
        earlier: stages before it, in order.
        stage: to be trained next.
        measured: after the last of the earlier ones.
        name: of the measurement that success is read from.
    """
    if not earlier or not stage.earlier_share:
        return stage
    upper_success = {
        task: mean + STANDARD_ERRORS_BELOW * error for task, (mean, error) in success_of(measured, name).items()
    }
    trained_tasks = {task for earlier_stage in earlier for task, weight in earlier_stage.weights.items() if weight}
    fallen_tasks = [
        task
        for task, expected in sorted(earlier[-1].expected.items())
        if task in trained_tasks and not stage.weights.get(task) and expected > upper_success.get(task, 1.0)
    ]
    if not fallen_tasks:
        return stage
    weights = {task: (1 - stage.earlier_share) * weight for task, weight in stage.weights.items()}
    return replace(stage, weights=weights | dict.fromkeys(fallen_tasks, stage.earlier_share / len(fallen_tasks)))


def success_of(measured: ItemScores, name: str) -> dict[str, tuple[float, float]]:
    """Return task -> (success, its standard error over items), read from the measurement of that name (greedy, pass@1)."""
    success_by_task = {}
    for task, own in measured.by_task().items():
        values = own.column(name, own.having(name)).tolist()
        if not values:
            continue
        mean, count = sum(values) / len(values), len(values)
        success_by_task[task] = (mean, (max(mean * (1 - mean), 1 / (count + 2)) / count) ** 0.5)
    return success_by_task


def join_stages(stages: Sequence[Stage], finished_folders: Sequence[Path], folder: Path) -> None:
    """Write lines and counts of all stages as those of one run, counted on; each stage's own are under stages/."""
    lines: dict[str, list[dict[str, Any]]] = {"steps.jsonl": [], "decisions.jsonl": []}
    draws, proof, steps, rollouts = [], {}, 0, 0
    for number, (stage, finished_folder) in enumerate(zip(stages, finished_folders, strict=True), start=1):
        stage_folder = folder / "stages" / str(number)  # names may hold what paths must not
        stage_folder.mkdir(parents=True)
        for name in STAGE_FILES:
            if (finished_folder / name).is_file():
                shutil.copyfile(finished_folder / name, stage_folder / name)
        for name, joined_lines in lines.items():
            for line in read_json_lines(stage_folder / name):
                counts = {"step": steps, "rollouts": rollouts}
                joined_lines.append(line | {key: line[key] + before for key, before in counts.items() if key in line})
        rehearsed_tasks = read_json(stage_folder / "stage.json", dict[str, Any])["rehearses"]
        if rehearsed_tasks:
            why = f"lower than expected after the previous stage: {', '.join(rehearsed_tasks)}"
            decision = {"step": steps, "what": "earlier_share", "old": 0.0, "new": stage.earlier_share, "because": why}
            lines["decisions.jsonl"].append(decision)
        if (stage_folder / "draws.parquet").is_file():
            table = pq.read_table(stage_folder / "draws.parquet")
            place = table.column_names.index("step")
            draws.append(table.set_column(place, "step", pc.add(table["step"], steps)))
        proof = read_json(stage_folder / "proof.json", dict[str, Any])
        steps += stage.steps
        rollouts += proof.get("rollouts", 0)
        if number < len(stages):
            rollouts += measuring_rollouts(Answers.read(answers_file(stage_folder / "measured.parquet")))
    for name, joined_lines in lines.items():
        write_text(folder / name, "".join(json.dumps(line) + "\n" for line in joined_lines))
    write_json(folder / "proof.json", {**proof, "rollouts": rollouts})
    if draws:
        write_table(folder / "draws.parquet", pa.concat_tables(draws))


def _keep_stage(folder: Path, branch: Branch, planned: Stage, start: StageStart, train_one: TrainOne) -> None:
    """Train one stage in a folder that appears whole; of two branches that train the same at once, one is kept."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial_folder = Path(tempfile.mkdtemp(prefix=".", suffix=".partial", dir=folder.parent))
    try:
        measured, file = train_one(branch, start, partial_folder), partial_folder / "measured.parquet"
        measured.answers.write(answers_file(file))
        write_measurements(file, measured.measurements)
        (stage,) = branch.plan.stages
        rehearsed_tasks = sorted(set(stage.weights) - set(planned.weights))
        write_json(partial_folder / "stage.json", {"stage": to_data(stage), "rehearses": rehearsed_tasks})
        try:
            partial_folder.rename(folder)
        except OSError:
            if not (folder / "stage.json").is_file():
                raise
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)
