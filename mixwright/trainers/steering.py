"""Class `SteeringConfig`, what a user says about steering, and what is built from it: plan, pool and run."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import numpy as np
from annotated_types import Len
from pydantic import FiniteFloat, TypeAdapter, ValidationError

from mixwright.config import NonNegativeFinite, NonNegativeInt
from mixwright.errors import InputError
from mixwright.plan.validate import check_levers
from mixwright.records import Plan, Stage
from mixwright.run.folder import read_plan
from mixwright.steer.beside.files import SteeringFiles
from mixwright.steer.beside.run import RunSteering
from mixwright.steer.pool import Pool, make_pool

if TYPE_CHECKING:
    from datasets import Dataset

INDEX_COLUMN = "mixwright_index"
"""Column that carries a row's pool index through the trainer; taken out before reward functions see the row."""
SlowRewards = Literal["stop", "wrong"]
DEFAULT_SELECTOR = "difficulty"
"""Of GRPO without a plan."""
DIGEST_ROWS = 1024
"""Rows that a digest of the data reads."""
STEERING_COLUMNS = ("id", "task", "level", "answer")
"""Columns of a dataset that steering reads."""


@dataclass
class SteeringConfig:
    """How a trainer is steered: `True` and a path stand for `SteeringConfig()` and `SteeringConfig(plan=path)`.

    Raises:
        InputError: a value that cannot be used, or an option that its lever does not take.
    """

    plan: Plan | str | Path | None = None
    """A plan, or the path of a plan.yaml. None: weight tasks by their rows and steer by difficulty, without prior
    measurements."""
    folder: str | Path | None = None
    """Folder for decisions, steps, draws and proof; None: steering/ in output_dir."""
    draw_seed: NonNegativeInt | None = None
    """Seed of the sampling; None takes the trainer's seed."""
    permute_rewards: bool = False
    """Control for trials: permute the rewards inside each group after the engine has seen them."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Field (id, task, level, answer) -> column of the dataset, where they differ; an empty name ignores the
    field."""
    reward_seconds: NonNegativeFinite = 600.0
    """Seconds that a reward function may take for the completions of one process; 0 sets no limit. After 60 s a warning
    names it. A call that blocks the thread of an async function is named but not interrupted; reward models have no
    limit."""
    slow_rewards: SlowRewards = "stop"
    """If a call takes longer: stop ends training, wrong gives its completions the reward of a wrong answer."""
    unscored_batches: NonNegativeInt = 3
    """Generation batches in a row without any score after which training stops; 0 never stops."""
    reward_range: Annotated[Sequence[FiniteFloat], Len(2, 2)] | None = None
    """Rewards of a wrong and of a right answer, summed over the reward functions with their weights. None: the range of
    the plan, else 0 to 1. Steering clips rewards outside."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments of plug-ins by kind.name, which override the plan's: {selectors.difficulty: {explore: 0.1}}."""

    def __post_init__(self) -> None:
        """Check the values. Raises InputError for one that cannot be used."""
        check_settings(self)


def read_steering(steering: SteeringConfig | str | Path | bool | None) -> SteeringConfig | None:
    """A `SteeringConfig` with its plan read, or None when nothing is steered.

    Raises:
        InputError: not one of the accepted forms, or a plan file that cannot be read.
    """
    if steering is None or steering is False:
        return None
    if isinstance(steering, str | Path | bool):
        steering = SteeringConfig() if steering is True else SteeringConfig(plan=steering)
    if not isinstance(steering, SteeringConfig):
        raise InputError(
            "steering: None, True, the path of a plan.yaml, or a SteeringConfig",
            type(steering).__name__,
            "Pass one of them.",
        )
    check_settings(steering)  # what was changed after it was made, too
    if isinstance(steering.plan, str | Path):
        return replace(steering, plan=read_plan(Path(steering.plan)))
    return steering


def check_settings(steering: SteeringConfig) -> None:
    """Raises InputError for a value that is not of the declared type, or out of range."""
    for name, hint in get_type_hints(SteeringConfig, include_extras=True).items():
        value = getattr(steering, name)
        try:
            TypeAdapter(hint).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]["msg"].lower().removeprefix("input should be ")
            raise InputError(f"steering.{name}: {problem}", repr(value)[:80], "Correct the value.") from None
    if steering.reward_range is not None and not steering.reward_range[0] < steering.reward_range[1]:
        remedy = "Pass the rewards of a wrong and of a right answer, for example (-1, 1)."
        raise InputError("steering.reward_range with low < high", repr(steering.reward_range), remedy)
    check_levers(steering.options, "steering.options")


def with_row_numbers(dataset: Any, trainer: str) -> Dataset:
    """The dataset with its row numbers as a column.

    Raises:
        InputError: no map-style dataset, an empty one, or images.
    """
    from datasets import Dataset

    if not isinstance(dataset, Dataset):
        raise InputError(
            f"a datasets.Dataset as train_dataset of {trainer}",
            type(dataset).__name__,
            "Steering chooses rows by index: load a stream into a Dataset (Dataset.from_generator, or streaming=False), and "
            "pass rows also where an environment provides the prompts.",
        )
    if len(dataset) == 0:
        raise InputError("a train_dataset with rows", "none", "Check how the dataset was filtered.")
    if {"image", "images"} & set(dataset.column_names):
        raise InputError("a text dataset", "images", "Steering reads text only; train on images with steering=None.")
    dataset = dataset.remove_columns(INDEX_COLUMN) if INDEX_COLUMN in dataset.column_names else dataset
    return dataset.add_column(INDEX_COLUMN, np.arange(len(dataset)))  # type: ignore[call-arg]


def make_dataset_pool(dataset: Dataset, steering: SteeringConfig, rows: Sequence[int] | None = None) -> Pool:
    """The pool of a dataset: its task, level, id and answer columns, or one task `all` and row numbers as ids.

    Args:
        dataset: map-style, with row numbers.
        steering: which columns to read.
        rows: which rows may be drawn, in pool order; None for all.

    Raises:
        InputError: a column named in `columns` that is not there, or values that cannot be used.
    """
    digest, columns = digest_dataset(dataset), steering.columns
    dataset = dataset if rows is None else dataset.select(rows)
    for name, column in columns.items():
        if name not in STEERING_COLUMNS:
            raise InputError(f"columns for {', '.join(STEERING_COLUMNS)}", repr(name), "Correct SteeringConfig.columns.")
        if column and column not in dataset.column_names:
            raise InputError(
                f"a column {column!r} ({name})", ", ".join(dataset.column_names), "Correct SteeringConfig.columns."
            )
    column_of = {name: columns.get(name, name) for name in STEERING_COLUMNS}
    values_by_column = {
        name: list(dataset[column]) if column in dataset.column_names else None for name, column in column_of.items()
    }
    if values_by_column["task"] is None and columns.get("task") != "":
        logging.getLogger("mixwright").warning(
            "The dataset has no column 'task' (its columns: %s), so all rows are one task, 'all', and there are no tasks to "
            "balance. Name the column with SteeringConfig(columns={'task': ...}), or silence this with {'task': ''}.",
            ", ".join(name for name in dataset.column_names if name != INDEX_COLUMN),
        )
    for name in ("id", "task"):
        for place, value in enumerate(values_by_column[name] or []):
            if value is None or value != value:
                raise InputError(
                    f"a value in column {column_of[name]!r} ({name}) of every row",
                    f"none in row {dataset[place][INDEX_COLUMN]} (counted from 0)",
                    "Fill it in, leave these rows out, or name another column in SteeringConfig(columns=...).",
                )
    pool = make_pool(
        list(map(str, values_by_column["id"] or dataset[INDEX_COLUMN])),
        list(map(str, values_by_column["task"] or ["all"] * len(dataset))),
        values_by_column["level"],
        values_by_column["answer"],
    )
    return replace(pool, content_digest=digest)


def digest_dataset(dataset: Dataset) -> str:
    """Digest of a dataset: its size, its columns, and up to `DIGEST_ROWS` rows spread over it, whole."""
    rows = np.unique(np.linspace(0, len(dataset) - 1, DIGEST_ROWS).astype(int))
    table: Any = dataset.with_format("arrow")[rows.tolist()]
    digest = hashlib.sha256(f"{len(dataset)} {sorted(table.column_names)}".encode())
    for row in table.to_pylist():
        digest.update(json.dumps(row, sort_keys=True, default=repr).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def default_plan(pool: Pool, objective: str, steps: int, *, kl_penalty: bool = True) -> Plan:
    """Weights by rows, and the levers that need no prior measurement.

    GRPO: the selector and the gate; drift only where there is a KL coefficient to move, since without one it showed no
    effect. On an over-hard pool, on which an unsteered run lost 50 points, this plan lost none, as equal shares of the
    levels did; without levels it lost 23, and 3 where beta was 0.01; a fifth of the learning rate lost nothing (the study
    `overhard`). DPO: displacement, which reads what training shows anyway; its alarms are written down and change nothing.
    SFT: none. There the KL from the start grows because learning is moving away from it: a KL penalty would throttle just
    that.

    Args:
        pool: whose tasks are drawn.
        objective: sft, dpo or grpo.
        steps: of the one stage.
        kl_penalty: whether there is a KL coefficient to move.
    """
    counts = np.bincount(pool.task_of, minlength=len(pool.tasks))
    weights = {task: float(count / counts.sum()) for task, count in zip(pool.tasks, counts, strict=True)}
    stage = Stage("training", objective, steps, weights)  # type: ignore[arg-type]
    if objective == "grpo":
        drift = ("drift",) if kl_penalty else ()
        stage = replace(stage, selector=DEFAULT_SELECTOR, gates=("too_hard",), controllers=drift)
    if objective == "dpo":
        stage = replace(stage, monitors=("displacement",))
    return Plan("default", (stage,), why={"stages.0.weights": "the task's share of the rows, because no plan was given"})


def make_run(
    steering: SteeringConfig,
    pool: Pool,
    *,
    objective: str,
    args: Any,
    beta: float,
    lr_reason: str = "",
    is_main: bool = True,
) -> RunSteering:
    """The run beside a trainer.

    Args:
        steering: as read by `read_steering`.
        pool: what may be drawn.
        objective: sft, dpo or grpo.
        args: the trainer's arguments (seed, output_dir).
        beta: its KL coefficient.
        lr_reason: why its learning rate cannot be scaled, if it cannot.
        is_main: whether this process writes files.

    Raises:
        InputError: a plan that does not fit the pool, or a plug-in that does not exist.
    """
    from mixwright.steer.engine import Engine

    fallback_plan = default_plan(pool, objective, max(1, args.max_steps), kl_penalty=beta > 0)
    plan = steering.plan if isinstance(steering.plan, Plan) else fallback_plan
    stage_index = next((place for place, stage in enumerate(plan.stages) if stage.objective == objective), None)
    if stage_index is None:
        expected, found = f"a plan with a stage whose objective is {objective}", [stage.objective for stage in plan.stages]
        remedy = "Add such a stage, or use the trainer for the plan's objective."
        raise InputError(expected, ", ".join(found) or "no stage", remedy)
    stages, options = list(plan.stages), dict(plan.stages[stage_index].options)
    for name, arguments in steering.options.items():
        options[name] = {**options.get(name, {}), **arguments}
    if steering.reward_range is not None:
        options["engine"] = {**options.get("engine", {}), "reward_range": list(steering.reward_range)}
    stages[stage_index] = replace(stages[stage_index], options=options)
    plan = replace(plan, stages=tuple(stages))
    seed = args.seed if steering.draw_seed is None else steering.draw_seed
    folder = Path(steering.folder) if steering.folder is not None else Path(args.output_dir) / "steering"
    engine = Engine(plan, pool, seed=seed, stage=stage_index)
    files = SteeringFiles(folder, writes=is_main)
    run = RunSteering(engine, pool, files, beta=beta, lr_reason=lr_reason, objective=objective)
    run.max_unscored_batches = steering.unscored_batches
    return run
