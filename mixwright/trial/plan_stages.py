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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.answers.score import read_scores
from mixwright.answers.table import Answers
from mixwright.estimates.outcome import ItemScores
from mixwright.records import Plan, Stage, to_data
from mixwright.run.folder import answers_file, read_json, write_json, write_measurements, write_text

if TYPE_CHECKING:
    from mixwright.contracts import Branch
    from mixwright.measure.stage import MeasureResult

TrainOne = Callable[["Branch", "StageStart", Path], "MeasureResult"]
"""(branch of one stage, what it starts from, its folder) -> what was measured after it; leaves its files in the folder."""
STANDARD_ERRORS_BELOW = 2.0
"""Standard errors by which a task has to be below what was expected before it is rehearsed."""
MEASURED_FILES = ("measured.parquet", "measured.answers.parquet")
STAGE_FILES = ("steps.jsonl", "decisions.jsonl", "proof.json", "draws.parquet", "stage.json", *MEASURED_FILES)


@dataclass(frozen=True)
class StageStart:
    """What a stage starts from."""

    number: int
    """Place in the plan, from 0."""
    model: Path | None
    """Folder of the model after the stage before; None is the branch's starting model."""
    optimizer: Path | None
    """File of the optimiser's state to take over; None starts a new one."""
    reference: Path | None
    """Folder of the reference model to keep; None takes the model that the stage starts from."""
    keeps_optimizer: bool
    """Whether the next stage takes the optimiser's state over, which is then to be written to optimizer.safetensors."""


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
    stages, finished_folders, plan = branch.plan.stages, [], branch.plan
    for number, stage in enumerate(stages):
        measured = read_scores(finished_folders[-1] / "measured.parquet") if finished_folders else ItemScores({})
        stage = with_rehearsal(stages[:number], stage, measured, success_name)
        keeps_optimizer = number + 1 < len(stages) and "optimizer" in stages[number + 1].kept
        stage_branch = replace(branch, plan=replace(plan, stages=(stage,), why={}))
        digest = hashlib.sha256(
            json.dumps([digest, to_data(stage_branch), keeps_optimizer], sort_keys=True).encode()
        ).hexdigest()
        stage_folder = stages_folder / digest[:32]
        if not (stage_folder / "stage.json").is_file():
            previous_folder = finished_folders[-1] if finished_folders else None
            optimizer = (
                previous_folder / "optimizer.safetensors"
                if previous_folder is not None and "optimizer" in stage.kept
                else None
            )
            reference = base if previous_folder is not None and "reference" in stage.kept else None
            start = StageStart(
                number, None if previous_folder is None else previous_folder / "model", optimizer, reference, keeps_optimizer
            )
            _keep_stage(
                stage_folder,
                stage,
                stages[number],
                lambda partial_folder, stage_branch=stage_branch, start=start: train_one(
                    stage_branch, start, partial_folder
                ),
            )
        finished_folders.append(stage_folder)
    shutil.copytree(finished_folders[-1] / "model", folder / "model")
    join_stages(stages, finished_folders, folder)


def with_rehearsal(earlier: Sequence[Stage], stage: Stage, measured: ItemScores, name: str) -> Stage:
    """The stage, with its rehearsal share on tasks of earlier stages that are shown to be below what was expected of them.

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
    """Task -> (success, its standard error over items), read from the measurement of that name (greedy, pass@1)."""
    values_by_task: dict[str, list[float]] = {}
    for (task, _, _), value in measured.scores.get(name, {}).items():
        values_by_task.setdefault(task, []).append(value)
    success_by_task = {}
    for task, values in values_by_task.items():
        mean, count = sum(values) / len(values), len(values)
        success_by_task[task] = (mean, (max(mean * (1 - mean), 1 / (count + 2)) / count) ** 0.5)
    return success_by_task


def permuted_order(plan: Plan, seed: int) -> Plan:
    """The plan with its stages in a random order that differs from the plan's, names and borders staying in their places."""
    import numpy as np

    rng, order = np.random.default_rng([seed, 8_000_009]), list(range(len(plan.stages)))
    while len(order) > 1 and order == sorted(order):
        order = rng.permutation(len(plan.stages)).tolist()
    stages = [
        replace(plan.stages[stage_index], name=stage.name, kept=stage.kept, expected={}, earlier_share=0.0)
        for stage, stage_index in zip(plan.stages, order, strict=True)
    ]
    return replace(plan, stages=tuple(stages), why={})


def join_stages(stages: Sequence[Stage], finished_folders: Sequence[Path], folder: Path) -> None:
    """Lines and counts of all stages as those of one run, steps and rollouts counted on; each stage's own under stages/."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mixwright.corpus.rows import pc
    from mixwright.run.folder import write_table
    from mixwright.trial.seed_rows import measuring_rollouts

    lines: dict[str, list[str]] = {"steps.jsonl": [], "decisions.jsonl": []}
    draws, proof, steps, rollouts = [], {}, 0, 0
    for number, (stage, finished_folder) in enumerate(zip(stages, finished_folders, strict=True)):
        stage_folder = folder / "stages" / str(number + 1)  # names may hold what paths must not
        stage_folder.mkdir(parents=True)
        for name in STAGE_FILES:
            if (finished_folder / name).is_file():
                shutil.copyfile(finished_folder / name, stage_folder / name)
        for name, joined_lines in lines.items():
            joined_lines += [
                _shift_counts(line, steps, rollouts)
                for line in (stage_folder / name).read_text(encoding="utf-8").splitlines()
            ]
        proof = read_json(stage_folder / "proof.json", dict[str, Any])
        info = read_json(stage_folder / "stage.json", dict[str, Any])
        if info["rehearses"]:
            why = f"lower than expected after the previous stage: {', '.join(info['rehearses'])}"
            lines["decisions.jsonl"].append(json.dumps(_rehearsal_decision(steps, stage.earlier_share, why)))
        if (stage_folder / "draws.parquet").is_file():
            table = pq.read_table(stage_folder / "draws.parquet")
            step_column = table.column_names.index("step")
            draws.append(table.set_column(step_column, "step", pc.add(table["step"], steps)))
        steps += stage.steps
        rollouts += int(proof.get("rollouts", 0))
        if number + 1 < len(stages):
            rollouts += measuring_rollouts(Answers.read(answers_file(stage_folder / "measured.parquet")))
    for name, joined_lines in lines.items():
        write_text(folder / name, "".join(line + "\n" for line in joined_lines))
    write_json(folder / "proof.json", {**proof, "rollouts": rollouts})
    if draws:
        write_table(folder / "draws.parquet", pa.concat_tables(draws))


def _rehearsal_decision(step: int, share: float, why: str) -> Mapping[str, Any]:
    return {"step": step, "what": "earlier_share", "old": 0.0, "new": share, "because": why}


def _shift_counts(line: str, steps: int, rollouts: int) -> str:
    """A line with its counts after those of the stages before."""
    fields = json.loads(line)
    offsets = {"step": steps, "rollouts": rollouts}
    return json.dumps(
        fields | {name: fields[name] + offset for name, offset in offsets.items() if isinstance(fields.get(name), int)}
    )


def _keep_stage(folder: Path, stage: Stage, planned: Stage, train: Callable[[Path], MeasureResult]) -> None:
    """One stage in a folder that appears whole; of two branches that train the same at once, one is kept."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial_folder = Path(tempfile.mkdtemp(prefix=".", suffix=".partial", dir=folder.parent))
    try:
        measured, file = train(partial_folder), partial_folder / "measured.parquet"
        measured.answers.write(answers_file(file))
        write_measurements(file, measured.measurements)
        rehearsed_tasks = sorted(set(stage.weights) - set(planned.weights))
        write_json(partial_folder / "stage.json", {"stage": to_data(stage), "rehearses": rehearsed_tasks})
        try:
            partial_folder.rename(folder)
        except OSError:
            if not (folder / "stage.json").is_file():
                raise
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)
