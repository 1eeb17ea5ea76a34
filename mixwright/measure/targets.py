"""Measurements of held-out texts that are read, not generated: which items fit, and rows per item, cell and task."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixwright.corpus import Corpus
from mixwright.estimates.intervals import rate
from mixwright.records import Example, Measurement

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


def keep_fitting_items(learner: Learner, items: Iterable[Example], count_tokens: Callable[[Example], int]) -> list[Example]:
    """The items whose tokens fit into the model's context; the same ones before and after."""
    return [item for item in items if learner.context is None or count_tokens(item) <= learner.context]


def exact_answer_tasks(corpus: Corpus) -> set[str]:
    """Tasks whose answers are graded by a grader that accepts the gold answer alone."""
    graded = [name for name, task in corpus.tasks.items() if task.kind == "verifiable"]
    return {name for name in graded if corpus.grader(name).accepts_gold_only}


def cell_measurements(
    probe: str, name: str, unit: str, items: Sequence[Example], values: Mapping[str, float]
) -> list[Measurement]:
    """The mean over the items of each cell, and of each task of several levels; groups of one item are left out."""
    groups: dict[tuple[str, float | None], list[float]] = defaultdict(list)
    levels = {task: {item.level for item in items if item.task == task} for task in {item.task for item in items}}
    for item in items:
        groups[item.task, item.level].append(values[item.id])
        if len(levels[item.task]) > 1:
            groups[item.task, None].append(values[item.id])
    measurements = []
    for (task, level), group_values in groups.items():
        mean = rate(np.array(group_values), np.ones(len(group_values)))
        if mean is not None:
            low, high = (max(0.0, mean.low), min(1.0, mean.high)) if unit == "share" else (mean.low, mean.high)
            measurements.append(Measurement(probe, task, name, mean.value, low, high, mean.n, unit, level))
    return measurements


def item_measurements(
    probe: str, name: str, unit: str, items: Sequence[Example], values: Mapping[str, float]
) -> list[Measurement]:
    """One row per item; it was read, not sampled, so its interval has no width."""
    return [
        Measurement(probe, item.task, name, value := values[item.id], value, value, 1, unit, item.level, item.id)
        for item in items
    ]


def count_too_long(probe: str, items: Sequence[Example], fitting_items: Sequence[Example]) -> list[Measurement]:
    """Items per task that do not fit into the model's context; nothing for tasks of which all do."""
    counts = Counter(item.task for item in items)
    too_long_counts = sorted((counts - Counter(item.task for item in fitting_items)).items())
    return [
        Measurement(probe, task, "too_long", count, count, count, counts[task], "items") for task, count in too_long_counts
    ]
