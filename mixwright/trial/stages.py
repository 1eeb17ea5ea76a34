"""Stages of a branch, one after another: each starts from the files that the one before left, and is kept.

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

from mixwright.estimates.outcome import item_scores
from mixwright.records import Measurement, Plan, Stage, to_data
from mixwright.run.folder import read_json, read_measurements, write_json, write_measurements, write_text

if TYPE_CHECKING:
    from mixwright.contracts import Branch

TrainOne = Callable[["Branch", "StageStart", Path], Sequence[Measurement]]
"""(branch of one stage, what it starts from, its folder) -> what was measured after it; leaves its files in the folder."""
STANDARD_ERRORS_BELOW = 2.0
"""Standard errors by which a task has to be below what was expected before it is rehearsed."""
STAGE_FILES = ("steps.jsonl", "decisions.jsonl", "proof.json", "draws.parquet", "measured.parquet", "stage.json")


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
    keeps: bool
    """Whether the next stage takes the optimiser's state over, which is then to be written to optimizer.safetensors."""


def train_stages(
    branch: Branch, digest: str, kept: Path, base: Path, folder: Path, train_one: TrainOne, *, success: str
) -> None:
    """Train all stages, and leave the files of the whole branch in `folder`: the last model, lines and counts of all stages.

    Args:
        branch: with a plan of several stages.
        digest: of everything but the plan that decides the outcome.
        kept: where finished stages are kept.
        base: starting model.
        folder: of the branch.
        train_one: trains and measures one stage.
        success: name of the measurement that success is read from.
    """
    stages, done, planned = branch.plan.stages, [], branch.plan
    for number, stage in enumerate(stages):
        measured = read_measurements(done[-1] / "measured.parquet") if done else ()
        stage = rehearsed(stages[:number], stage, measured, success)
        keeps = number + 1 < len(stages) and "optimizer" in stages[number + 1].kept
        one = replace(branch, plan=replace(planned, stages=(stage,), forecast=(), why={}))
        digest = hashlib.sha256(json.dumps([digest, to_data(one), keeps], sort_keys=True).encode()).hexdigest()
        place = kept / digest[:32]
        if not (place / "stage.json").is_file():
            before = done[-1] if done else None
            optimizer = before / "optimizer.safetensors" if before is not None and "optimizer" in stage.kept else None
            reference = base if before is not None and "reference" in stage.kept else None
            start = StageStart(number, None if before is None else before / "model", optimizer, reference, keeps)
            _kept(place, stage, stages[number], lambda part, one=one, start=start: train_one(one, start, part))
        done.append(place)
    shutil.copytree(done[-1] / "model", folder / "model")
    join(stages, done, folder)


def rehearsed(earlier: Sequence[Stage], stage: Stage, measured: Sequence[Measurement], name: str) -> Stage:
    """The stage, with its rehearsal share on tasks of earlier stages that are shown to be below what was expected of them.

    Args:
        earlier: stages before it, in order.
        stage: to be trained next.
        measured: after the last of the earlier ones.
        name: of the measurement that success is read from.
    """
    if not earlier or not stage.earlier_share:
        return stage
    least = {task: mean + STANDARD_ERRORS_BELOW * error for task, (mean, error) in success_of(measured, name).items()}
    trained = {task for each in earlier for task, weight in each.weights.items() if weight}
    worse = [
        task
        for task, expected in sorted(earlier[-1].expected.items())
        if task in trained and not stage.weights.get(task) and expected > least.get(task, 1.0)
    ]
    if not worse:
        return stage
    weights = {task: (1 - stage.earlier_share) * weight for task, weight in stage.weights.items()}
    return replace(stage, weights=weights | dict.fromkeys(worse, stage.earlier_share / len(worse)))


def success_of(measured: Sequence[Measurement], name: str) -> dict[str, tuple[float, float]]:
    """Task -> (success, its standard error over items), read from the measurement of that name (greedy, pass@1)."""
    found: dict[str, list[float]] = {}
    for (task, _, _), value in item_scores(measured).scores.get(name, {}).items():
        found.setdefault(task, []).append(value)
    told = {}
    for task, values in found.items():
        mean, count = sum(values) / len(values), len(values)
        told[task] = (mean, (max(mean * (1 - mean), 1 / (count + 2)) / count) ** 0.5)
    return told


def permuted_order(plan: Plan, seed: int) -> Plan:
    """The plan with its stages in a random order that differs from the plan's, names and borders staying in their places."""
    import numpy as np

    rng, order = np.random.default_rng([seed, 8_000_009]), list(range(len(plan.stages)))
    while len(order) > 1 and order == sorted(order):
        order = rng.permutation(len(plan.stages)).tolist()
    stages = [
        replace(plan.stages[other], name=here.name, kept=here.kept, expected={}, earlier_share=0.0)
        for here, other in zip(plan.stages, order, strict=True)
    ]
    return replace(plan, stages=tuple(stages), forecast=(), why={})


def join(stages: Sequence[Stage], done: Sequence[Path], folder: Path) -> None:
    """Lines and counts of all stages as those of one run, steps and rollouts counted on; each stage's own under stages/."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mixwright.corpus.rows import pc
    from mixwright.run.folder import write_table
    from mixwright.trial.seed_rows import measuring_rollouts

    lines: dict[str, list[str]] = {"steps.jsonl": [], "decisions.jsonl": []}
    draws, proof, steps, rollouts = [], {}, 0, 0
    for number, (stage, place) in enumerate(zip(stages, done, strict=True)):
        own = folder / "stages" / str(number + 1)  # names may hold what paths must not
        own.mkdir(parents=True)
        for name in STAGE_FILES:
            if (place / name).is_file():
                shutil.copyfile(place / name, own / name)
        for name, found in lines.items():
            found += [_shifted(line, steps, rollouts) for line in (own / name).read_text(encoding="utf-8").splitlines()]
        proof = read_json(own / "proof.json", dict[str, Any])
        info = read_json(own / "stage.json", dict[str, Any])
        if info["rehearses"]:
            why = f"measured below what was expected after the stage before: {', '.join(info['rehearses'])}"
            lines["decisions.jsonl"].append(json.dumps(_decision(steps, stage.earlier_share, why)))
        if (own / "draws.parquet").is_file():
            table = pq.read_table(own / "draws.parquet")
            place_of = table.column_names.index("step")
            draws.append(table.set_column(place_of, "step", pc.add(table["step"], steps)))
        steps += stage.steps
        rollouts += int(proof.get("rollouts", 0))
        if number + 1 < len(stages):
            rollouts += measuring_rollouts(read_measurements(own / "measured.parquet"))
    for name, found in lines.items():
        write_text(folder / name, "".join(line + "\n" for line in found))
    write_json(folder / "proof.json", {**proof, "rollouts": rollouts})
    if draws:
        write_table(folder / "draws.parquet", pa.concat_tables(draws))


def _decision(step: int, share: float, why: str) -> Mapping[str, Any]:
    return {"step": step, "what": "earlier_share", "old": 0.0, "new": share, "because": why}


def _shifted(line: str, steps: int, rollouts: int) -> str:
    """A line with its counts after those of the stages before."""
    found = json.loads(line)
    more = {"step": steps, "rollouts": rollouts}
    return json.dumps(found | {name: found[name] + by for name, by in more.items() if isinstance(found.get(name), int)})


def _kept(place: Path, stage: Stage, planned: Stage, train: Callable[[Path], Sequence[Measurement]]) -> None:
    """One stage in a folder that appears whole; of two branches that train the same at once, one is kept."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".", suffix=".partial", dir=place.parent))
    try:
        write_measurements(part / "measured.parquet", train(part))
        extra = sorted(set(stage.weights) - set(planned.weights))
        write_json(part / "stage.json", {"stage": to_data(stage), "rehearses": extra})
        try:
            part.rename(place)
        except OSError:
            if not (place / "stage.json").is_file():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
