"""Verb `run`: all stages of a run, one of them, what they would do, or the settings to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mixwright.catalog import list_defaults
from mixwright.config import RunConfig
from mixwright.errors import InputError, join_some, one_line
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.learner.bases import base_of, build_base
from mixwright.learner.engines import engine_name
from mixwright.mine.job import mine_rehearsal
from mixwright.records import Task, TrialResult, Verdict
from mixwright.run import pipeline
from mixwright.run.checked import CheckedRun
from mixwright.run.opening import open_with_workers, resolve_training_settings, validate_run
from mixwright.run.ray_workers import start_workers
from mixwright.trial import power
from mixwright.trial.arm_roles import choose_arms
from mixwright.trial.selection import format_selection
from mixwright.trial.stage import checked_plan, checked_trial, run_trial, steer_once
from mixwright.verbs import output
from mixwright.verbs.budget import Budget, as_budget
from mixwright.verbs.options import PLACING, DryRun, Folder, Placing, Time, open_settings, with_budget
from mixwright.verbs.proposals import write_settings


def run(
    source: Annotated[str | Path | RunConfig | None, typer.Argument(metavar="RUN.YAML|TRAIN")] = None,
    folder: Folder = None,
    *,
    init: Annotated[bool, typer.Option("--init")] = False,
    output_file: Annotated[Path, typer.Option("--output")] = Path("run.yaml"),
    held_out: Annotated[str | None, typer.Option("--eval")] = None,
    model: str | None = None,
    objective: str | None = None,
    only: Literal["steer", "trial"] | None = None,
    data: Annotated[str | None, typer.Option(metavar="MINER|TABLE")] = None,
    dry_run: DryRun = False,
    budget: Time = None,
    placing: Placing = PLACING,
) -> Verdict | TrialResult | Path | list[Sequence[Any]]:
    """Compare a plan with simple rules, on your own model. Runs all stages from data to verdict; resumes where it stopped.

    The page is `verdict.html` in the run folder, and `verdict.json` next to it holds what is returned. With `only` it is the
    result of `steer` or `trial`, with `dry_run` rows for a table, with `init` the file of the settings.

    Examples:
        >>> run("run.yaml").reason
        'trial'

    Args:
        source: Settings; with --init, training rows.
        folder: Run folder; default: runs/<name of RUN.YAML>.
        init: Write a commented run.yaml for TRAIN instead.
        output_file: File that --init writes.
        held_out: With --init: held-out items.
        model: With --init: checkpoint; default: a tiny model with random weights.
        objective: With --init: grpo, sft or dpo; default: from the columns.
        only: Run one stage: steer trains once under the plan, trial compares the plan with simpler choices.
        data: With --only trial: compare mined rows (a miner's name or a table) with all rows, and with as many random rows.
        dry_run: Show the steps; write nothing.
        budget: Time for the whole command, such as 90s, 20m or 1h30m; as many seeds are trained as fit.
        placing: Cluster and engine of the workers, over those of the settings.

    Raises:
        InputError: something in the settings or the data, before the folder is made where that can be known.
    """
    if init:
        told = {"held_out": held_out, "model": model, "objective": objective, "budget": as_budget(budget)}
        for note in write_settings(str(source) if source else None, output_file, **told):
            output.say(note)
        output.say(f"Check {output_file}, then run: mixwright run {output_file} --dry-run")
        return output_file
    if held_out or model or objective:
        raise InputError("--init with --eval, --model and --objective", "no --init", "Add it, or set them in RUN.YAML.")
    if source is None:
        raise InputError("RUN.YAML", "nothing", "Write one with: mixwright run --init TRAIN.jsonl")
    if data is not None and only != "trial":
        raise InputError("--only trial with --data", str(only), "Add it, or leave --data out.")
    if only == "steer" and not dry_run:
        return steer(source, folder, placing=placing)
    if only == "trial" and not dry_run:
        return trial(source, folder, data=data, budget=budget, placing=placing)
    settings, run_folder, relative_to = open_settings(source, folder, placing)
    if dry_run:
        checked_run = validate_run(settings, run_folder, relative_to=relative_to, for_trial=True)
        if only == "steer":
            checked_plan(checked_run)
        output.say("dry run: settings and data are valid; checking the trainer's settings")
        return list(outline(checked_run))
    settings, deadline = with_budget(settings, budget)
    return pipeline.run(settings, run_folder, relative_to=relative_to, say=output.say, deadline=deadline)


def show(
    found: Verdict | TrialResult | Path | list[Sequence[Any]],
    *,
    source: str | None,
    folder: Path | None,
    init: bool,
) -> None:
    """Print the report of what was done; settings that were written are named on stderr alone."""
    if isinstance(found, list):
        output.out_rows(("stage", "steps"), found)
    elif isinstance(found, TrialResult):
        output.out_effects(found.effects)
        for line in format_selection(found):
            output.out(one_line(line))
    elif isinstance(found, Verdict):
        output.conclude(open_settings(str(source), folder)[1], found)
    elif not init:
        output.out(str(found))


def steer(config: str | Path | RunConfig, folder: Folder = None, *, placing: Placing = PLACING) -> Path:
    """Train once under the plan of a run folder; returns the folder of the branch, which a later trial takes over.

    On the command line: `mixwright run RUN.YAML --only steer`.

    Examples:
        >>> steer("run.yaml").as_posix()
        'runs/run/trial/steered-0'

    Args:
        config: as `run` takes them.
        folder: as `run` takes it; planned already.
        placing: a cluster for the workers, over that of the settings.

    Raises:
        InputError: something in the settings, the data or the plan, or a folder without a plan.
    """
    with open_with_workers(*open_settings(config, folder, placing), for_trial=True, needs_plan=True) as (workers, opened):
        return steer_once(opened, workers, say=output.say)


def trial(
    config: str | Path | RunConfig,
    folder: Folder = None,
    *,
    data: str | None = None,
    budget: Budget | str | None = None,
    placing: Placing = PLACING,
) -> TrialResult:
    """Try the plan of a run folder against simpler choices, paired by seed; where it helps, against its nulls.

    On the command line: `mixwright run RUN.YAML --only trial`.

    Examples:
        >>> result = trial("run.yaml")
        >>> sorted({effect.against for effect in result.effects if effect.arm == "steered"})
        ['frozen', 'uniform']

    Args:
        config: as `run` takes them.
        folder: as `run` takes it; measured and planned already. Finished branches are not trained again.
        data: a miner's name, or a table of rows, to try instead of the plan.
        budget: as `run` takes it.
        placing: a cluster for the workers, over that of the settings.

    Raises:
        InputError: something in the settings, the data or the plan, or a folder without a plan.
    """
    settings, run_folder, relative_to = open_settings(config, folder, placing)
    settings = settings if data is None else replace(settings, trial=replace(settings.trial, data=data))
    settings, deadline = with_budget(settings, budget)
    with open_with_workers(settings, run_folder, relative_to, for_trial=True, needs_plan=True) as (workers, checked_run):
        mine_rehearsal(checked_run, workers, say=output.say)
        checked = checked_trial(checked_run)
        build_base(checked_run, workers)
        return run_trial(replace(checked, workers=workers), say=output.say, deadline=deadline)


def outline(run: CheckedRun) -> list[tuple[str, str]]:
    """(stage, what `run` would do), from settings and data alone. Raises InputError as `run` would."""
    config, folder, corpus = run.config, run.folder, run.corpus
    with start_workers(config.trial) as workers:
        resolve_training_settings(run, workers)
    train, held_out = (corpus.select(split=name) for name in ("train", "eval"))
    measure_config, train_config = config.measure, config.train
    items = sum(min(count, measure_config.items) for _, count in power.held_out_cells(corpus))
    rollouts = items * (1 + measure_config.samples)
    measured_text = f"{items} items, greedy and {measure_config.samples} samples: {rollouts} rollouts"
    if measure_config.engine == "vllm":
        measured_text += f", written by {engine_name()}"
    if outcome_of(measure_config.probes, measure_config.decoding) not in GRADED_OUTCOMES:
        measured_text = f"{items} items, scored without generating: {', '.join(measure_config.probes)}"
    arms = choose_arms(config, folder, run.relative_to)
    is_grpo = train_config.objective == "grpo"
    step_size = f"{train_config.prompts} groups of {train_config.generations}" if is_grpo else f"{train_config.prompts} rows"
    rows_per_prompt = train_config.generations if is_grpo else 1
    drawn_text = f"{train_config.steps * train_config.prompts * rows_per_prompt} {'rollouts' if is_grpo else 'rows'}"
    tasks = join_some([f"{name} ({_name_judge(task)})" for name, task in corpus.tasks.items()])
    roles = {"references": arms.references, "levers": arms.levers}
    roles |= {"nulls, only if a lever beats every reference": arms.nulls} if arms.levers else {}
    compared_text = "; ".join(f"{role}: {', '.join(names) or 'none'}" for role, names in roles.items())
    power_lines = power.foresee_power(config, folder, corpus, base_of(config.model, folder))
    return [
        ("corpus", f"{len(train)} training and {len(held_out)} held-out examples; tasks and graders: {tasks}"),
        ("audit", f"checks: {', '.join(list_defaults('checks'))}"),
        ("measure", measured_text),
        ("plan", f"planner {config.planner}, {train_config.steps} steps of {step_size}"),
        ("trial", f"{compared_text}; each on {config.trial.seeds} seeds, {drawn_text} a branch, then measured again"),
        ("verdict", str(folder.page)),
        *(("can see", line.removeprefix("can see").lstrip(": ")) for line in power_lines),
    ]


def _name_judge(task: Task) -> str:
    """Who judges the answers of a task, or that nobody does."""
    return task.grader if task.kind == "verifiable" else "pairs" if task.kind == "preference" else "not graded"
