"""Minutes that a run takes, stage by stage, from what a dry run timed."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mixwright.config import MeasureConfig, RunConfig
from mixwright.errors import join_some
from mixwright.measure.fitting import training_probes
from mixwright.run.workers import count_cores
from mixwright.trial.arm_roles import Arms
from mixwright.trial.dry_run import Timing

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

PROGRESS_COMPLETIONS = 128
"""Completions of an evaluation on the way, at most."""


def held_out_cells(corpus: Corpus) -> list[tuple[str, int]]:
    """Task and held-out items of each cell."""
    held_out = corpus.select(split="eval")
    return [(cell.task, cell.count) for cell in held_out.cells()] if len(held_out) else []


def branch_seconds(config: RunConfig, timing: Timing, items: int) -> tuple[float, float]:
    """Seconds of one process for a branch that is trained and measured, and for one that is only measured."""
    train_config = config.train
    measuring_seconds = timing.engine_seconds + items * timing.item_seconds(config.measure.samples)
    evaluating_seconds = 0.0
    if train_config.objective == "grpo" and config.trial.progress_every:
        evaluations = 1 + math.ceil(train_config.steps / config.trial.progress_every)
        evaluating_seconds = evaluations * min(PROGRESS_COMPLETIONS, items) * timing.greedy_seconds
    training_seconds = (
        2 * timing.load_seconds
        + timing.setup_seconds
        + train_config.steps * timing.step_seconds
        + evaluating_seconds
        + measuring_seconds
    )
    return training_seconds, timing.load_seconds + measuring_seconds


def makespan(seconds: Iterable[float], workers: int) -> float:
    """Seconds until all jobs are done, the longest first, each by whoever is free."""
    end_times = [0.0] * max(workers, 1)
    for job_seconds in sorted(seconds, reverse=True):
        heapq.heappush(end_times, heapq.heappop(end_times) + job_seconds)
    return max(end_times)


def stage_seconds(
    config: RunConfig, timing: Timing, *, items: int, arms: int, bases: int = 1, rehearsed: int = 0
) -> list[tuple[str, float]]:
    """(stage, seconds) of a run that begins now. Nulls, which run for a lever that helps, are left out.

    Args:
        config: sizes of measuring, training and trial.
        timing: what a dry run timed.
        items: held-out items that are measured.
        arms: that are trained, beside the model that is not.
        bases: starting models.
        rehearsed: prompts that the model answers itself before it is trained.
    """
    workers = timing.workers or config.trial.workers or count_cores()
    trained_branch, untrained_branch = branch_seconds(config, timing, items)
    warmup, loading_seconds = config.model.warmup, timing.load_seconds + timing.engine_seconds
    stage_costs = [
        ("start", timing.start_seconds + loading_seconds * bool(rehearsed) + rehearsed * timing.greedy_seconds),
        ("warm-up", makespan([warmup.steps * timing.warmup_step_seconds] * bases, workers) if warmup is not None else 0.0),
        ("measure", makespan([untrained_branch] * bases, workers)),
        ("trial", makespan(config.trial.seeds * ([trained_branch] * arms + [untrained_branch]), workers)),
    ]
    return [(name, seconds) for name, seconds in stage_costs if seconds]


def format_costs(
    stage_costs: Sequence[tuple[str, float]], arms: Arms, seeds: int, measure: MeasureConfig, timing: Timing
) -> str:
    """The minutes for people, and what was timed."""

    def format_minutes(seconds: float) -> str:
        return f"{seconds / 60:.0f}" if seconds >= 600 else f"{max(seconds / 60, 0.1):.1f}"

    cost_texts = [f"{name} {format_minutes(value)}" for name, value in stage_costs]
    size_text = f"({len(arms.always_run)} arms x {seeds} seeds)"
    total_minutes, probes = format_minutes(sum(value for _, value in stage_costs)), training_probes(measure)
    left_out_text = (
        f"nulls and what the probe{'s' * (len(probes) > 1)} {join_some(probes)} will train" if probes else "nulls"
    )
    return (
        f"about {total_minutes} minutes: {', '.join(cost_texts)} {size_text}, without {left_out_text}. "
        f"Timed here: {timing.timed_items} items at {timing.item_seconds(measure.samples):.2g} s each and "
        f"{timing.timed_steps} training steps, {timing.step_seconds:.2g} s each"
    )
