"""Held-out texts that are read, not generated: which items fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mixwright.corpus import Corpus
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


def count_too_long(probe: str, items: Sequence[Example], fitting_items: Sequence[Example]) -> list[Measurement]:
    """Items per task that do not fit into the model's context; nothing for tasks of which all do."""
    counts = Counter(item.task for item in items)
    too_long_counts = sorted((counts - Counter(item.task for item in fitting_items)).items())
    return [
        Measurement(probe, task, "too_long", count, count, count, counts[task], "items") for task, count in too_long_counts
    ]
