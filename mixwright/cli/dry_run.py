"""Dry runs of the command line: what `run` would do, and what a steered run would draw. Nothing is written or trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright.catalog import listing
from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.errors import join_some
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.learner.bases import TINY_PREFIX, bases_of
from mixwright.learner.engines import engine_name
from mixwright.records import Task, to_data
from mixwright.run.checked import CheckedRun
from mixwright.run.opening import resolve_training_settings
from mixwright.run.ray_workers import start_workers
from mixwright.run.workers import Job, Workers
from mixwright.steer.engine import Engine
from mixwright.steer.pool import corpus_pool
from mixwright.trial import power
from mixwright.trial.arm_roles import choose_arms
from mixwright.trial.costs import format_costs, held_out_cells, stage_seconds
from mixwright.trial.dry_run import DryRunJob, Timing, mean_timing, time_dry_run
from mixwright.trial.fitting import HeldOutCounts
from mixwright.trial.stage import checked_plan

MAX_DRAWS = 100_000
"""Draws that a dry run makes at most."""


def first_draws(run: CheckedRun) -> list[Sequence[Any]]:
    """What a steered run would draw before it has seen anything: (task, planned share, drawn, of draws). Trains nothing.

    Of a long run the first `MAX_DRAWS` draws. Raises InputError as `steer` would.
    """
    plan, corpus = checked_plan(run)
    rehearsed_tasks = {task for stage in plan.stages for task in stage.rehearse}
    pool = corpus_pool(corpus.training(rehearsed_tasks))
    rows: list[Sequence[Any]] = []
    for number, stage in enumerate(plan.stages):
        draw_count = min(run.config.train.prompts * stage.steps, MAX_DRAWS)
        engine = Engine(plan, pool, seed=run.config.seed, stage=number)
        draws_by_task = Counter(pool.tasks[pool.task_of[index]] for index in engine.draw(draw_count))
        stage_note = f" in {stage.name}" if len(plan.stages) > 1 else ""
        rows += [
            (f"{task}{stage_note}", f"{stage.weights.get(task, 0):.3f}", draws_by_task[task], draw_count)
            for task in pool.tasks
        ]
    return rows


def outline(run: CheckedRun) -> list[tuple[str, str]]:
    """(stage, what `run` would do), from the data itself; writes nothing. Raises InputError as `run` would."""
    config, folder, corpus = run.config, run.folder, run.corpus
    with start_workers(config.trial) as workers:
        resolve_training_settings(run, workers)
        (timing,) = time_configs([config], workers, run.relative_to)
    train, held_out = (corpus.select(split=name) for name in ("train", "eval"))
    measure_config, train_config, base_count = config.measure, config.train, len(bases_of(config.model, folder))
    items = sum(min(count, measure_config.items) for _, count in held_out_cells(corpus))
    rollouts = base_count * items * (1 + measure_config.samples)
    measured_text = f"{base_count} x {items} items, greedy and {measure_config.samples} samples: {rollouts} rollouts"
    if measure_config.engine == "vllm":
        measured_text += f", written by {engine_name()}"
    if outcome_of(measure_config.probes, measure_config.decoding) not in GRADED_OUTCOMES:
        measured_text = f"{base_count} x {items} items, read and not generated: {', '.join(measure_config.probes)}"
    arms = choose_arms(config, corpus, folder, run.relative_to)
    counts = {"items": items, "arms": len(arms.always_run) - 1, "bases": base_count, "rehearsed": prompts_to_answer(corpus)}
    stage_costs = stage_seconds(config, timing, **counts)
    time_text = format_costs(stage_costs, arms, config.trial.seeds, measure_config, timing)
    is_grpo = train_config.objective == "grpo"
    step_size = f"{train_config.prompts} groups of {train_config.generations}" if is_grpo else f"{train_config.prompts} rows"
    rows_per_prompt = train_config.generations if is_grpo else 1
    drawn_text = f"{train_config.steps * train_config.prompts * rows_per_prompt} {'rollouts' if is_grpo else 'rows'}"
    tasks = join_some([f"{name} ({_name_judge(task)})" for name, task in corpus.tasks.items()])
    overrides_text = "".join(f"; {name}: {to_data(value)}" for name, value in config.plan.stage.items())
    roles = {"references": arms.references, "levers": arms.levers, "ablations": arms.ablations}
    roles |= {"nulls, only if a lever beats every reference": arms.nulls} if arms.levers else {}
    compared_text = "; ".join(f"{role}: {', '.join(names) or 'none'}" for role, names in roles.items())
    power_lines = power.foresee_power(config, folder, corpus, bases_of(config.model, folder))
    return [
        ("corpus", f"{len(train)} training and {len(held_out)} held-out examples; tasks and graders: {tasks}"),
        ("audit", f"checks: {', '.join(listing('checks'))}"),
        ("measure", measured_text),
        ("plan", f"planner {config.planner}, {train_config.steps} steps of {step_size}{overrides_text}"),
        (
            "trial",
            f"{compared_text}; each on {config.trial.seeds} seeds, {drawn_text} a branch (frozen: none), "
            "then measured again",
        ),
        ("verdict", str(folder.page)),
        *(("can see", line.removeprefix("can see").lstrip(": ")) for line in power.format_power(power_lines)),
        ("time", time_text),
    ]


def held_out_data(config: RunConfig, corpus: Corpus) -> HeldOutCounts:
    """What has to be known of the rows to choose sizes for a time."""
    arms = choose_arms(config, corpus)
    bases = config.model.bases if config.model.path == TINY_PREFIX else 1
    cells, rehearsed = held_out_cells(corpus), prompts_to_answer(corpus)
    return HeldOutCounts(cells, len(arms.always_run) - 1, len(arms.references), bases, rehearsed)


def time_configs(configs: Sequence[RunConfig], workers: Workers, relative_to: Path) -> list[Timing]:
    """What dry runs of these settings timed; one runs in two workers at once where there are two, as a trial will."""
    copies = 2 if len(configs) == 1 and workers.count > 1 else 1
    jobs = [Job("dry run", time_dry_run, DryRunJob(config, str(relative_to))) for config in configs for _ in range(copies)]
    timings = workers.run(jobs, title="dry run: the model is loaded, a few items are measured, a few steps trained")
    means = [mean_timing(timings[start : start + copies]) for start in range(0, len(timings), copies)]
    return [replace(timing, workers=workers.count) for timing in means]


def prompts_to_answer(corpus: Corpus) -> int:
    """Prompts that the model answers itself before it is trained: rows to rehearse without a completion."""
    rows = corpus.select(split=REHEARSE_SPLIT).table
    return rows["target"].null_count if len(rows) else 0


def _name_judge(task: Task) -> str:
    """Who judges the answers of a task, or that nobody does."""
    return task.grader if task.kind == "verifiable" else "pairs" if task.kind == "preference" else "not graded"
