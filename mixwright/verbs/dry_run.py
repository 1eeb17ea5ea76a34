"""Dry runs of the command line: what `run` would do, and what a steered run would draw. Nothing is written or trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mixwright.catalog import listing
from mixwright.errors import join_some
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.learner.bases import bases_of
from mixwright.learner.engines import engine_name
from mixwright.records import Task, to_data
from mixwright.run.checked import CheckedRun
from mixwright.run.opening import resolve_training_settings
from mixwright.run.ray_workers import start_workers
from mixwright.steer.engine import Engine
from mixwright.steer.pool import corpus_pool
from mixwright.trial import power
from mixwright.trial.arm_roles import choose_arms
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
    """(stage, what `run` would do), from settings and data alone. Raises InputError as `run` would."""
    config, folder, corpus = run.config, run.folder, run.corpus
    with start_workers(config.trial) as workers:
        resolve_training_settings(run, workers)
    train, held_out = (corpus.select(split=name) for name in ("train", "eval"))
    measure_config, train_config, base_count = config.measure, config.train, len(bases_of(config.model, folder))
    items = sum(min(count, measure_config.items) for _, count in power.held_out_cells(corpus))
    rollouts = base_count * items * (1 + measure_config.samples)
    measured_text = f"{base_count} x {items} items, greedy and {measure_config.samples} samples: {rollouts} rollouts"
    if measure_config.engine == "vllm":
        measured_text += f", written by {engine_name()}"
    if outcome_of(measure_config.probes, measure_config.decoding) not in GRADED_OUTCOMES:
        measured_text = f"{base_count} x {items} items, read and not generated: {', '.join(measure_config.probes)}"
    arms = choose_arms(config, corpus, folder, run.relative_to)
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
    ]


def _name_judge(task: Task) -> str:
    """Who judges the answers of a task, or that nobody does."""
    return task.grader if task.kind == "verifiable" else "pairs" if task.kind == "preference" else "not graded"
