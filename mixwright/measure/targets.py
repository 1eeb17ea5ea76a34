"""Held-out texts that are read, not generated: which items fit, and how probable each token is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mixwright.records import Example, Measurement

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


def read_targets(
    learner: Learner, items: Sequence[Example], *tokens: Mapping[str, Sequence[int]]
) -> tuple[list[Example], list[list[list[float]]]]:
    """Read texts behind the prompts of the items.

    Args:
        learner: reads them.
        items: those that do not fit into its context are left out; the same ones before and after.
        tokens: by item, of each text.

    Returns:
        The items that fit, and for each text the log-probabilities of its tokens behind each of them.
    """
    fitting = [item for item in items if learner.has_room(item.prompt, max(len(own[item.id]) for own in tokens))]
    prompts = [item.prompt for item in fitting]
    return fitting, [learner.logprobs(prompts, [own[item.id] for item in fitting]) for own in tokens]


def count_too_long(probe: str, items: Sequence[Example], fitting_items: Sequence[Example]) -> list[Measurement]:
    """Items per task that do not fit into the model's context; nothing for tasks of which all do."""
    counts = Counter(item.task for item in items)
    too_long_counts = sorted((counts - Counter(item.task for item in fitting_items)).items())
    return [
        Measurement(probe, task, "too_long", count, count, count, counts[task], "items") for task, count in too_long_counts
    ]
