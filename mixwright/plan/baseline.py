"""Shares of the tasks as every planner rounds them, and the plan of those that weigh tasks alone: no levers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mixwright.errors import InputError
from mixwright.records import Cell, Plan, Stage, TrainingSetup


def task_counts(cells: Sequence[Cell]) -> dict[str, int]:
    """Training examples per task, tasks sorted.

    Raises:
        InputError: no examples at all.
    """
    counts: Counter[str] = Counter()
    for cell in cells:
        counts[cell.task] += cell.count
    if not counts.total():
        raise InputError("training examples to plan for", "none", "Check corpus.train and the split column.")
    return dict(sorted(counts.items()))


def as_shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights scaled to sum to 1, rounded to 4 places so that a plan is readable; the largest takes the rounding error."""
    total = sum(weights.values())
    rounded = {task: round(weight / total, 4) for task, weight in weights.items()}
    largest = max(rounded, key=lambda task: rounded[task])
    rounded[largest] = round(rounded[largest] + 1 - sum(rounded.values()), 4)
    return rounded


def weights_only(planner: str, weights: Mapping[str, float], reasons: Mapping[str, str], training: TrainingSetup) -> Plan:
    """A plan of one stage with these weights (scaled to shares) and nothing else.

    Args:
        planner: name of the planner.
        weights: per task, non-negative.
        reasons: per task, why that weight.
        training: what it is for.
    """
    stage = Stage("training", training.objective, training.steps, as_shares(weights))
    why = {f"stages.0.weights.{task}": reasons[task] for task in weights}
    return Plan(
        planner,
        (stage,),
        why=why
        | {"stages.0.steps": "from the settings", "stages.0.selector": "baseline: uniform sampling without steering"},
    )
