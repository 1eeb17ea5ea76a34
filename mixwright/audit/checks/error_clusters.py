"""Check of error clusters: wrong steps in solutions and dialogues that pile up in some rows.

Source: Sinha et al. 2025 (arXiv 2509.09677): models go wrong more often once their context holds mistakes, and larger ones
    do too. That rows teach it by mistakes that stand together is our reading; they do not change the data.
Unit: equations, and numbers that answer an expression in the turn before, of training rows with two of them or more.
Cost: one pass over training rows, at most as many as of `traces`, and 400 exchanges of at most 20,000 steps of a task.
Blind spot: steps that are no arithmetic; rows that are harder in another way than by the operation, the size of the numbers
    and the place; a final answer that goes on from a wrong step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixwright.audit.rows import Listing, sample_training_rows
from mixwright.audit.steps.step_errors import Clustering, Step, TaskSteps, count_turns, read_steps
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation

LEAST_WRONG, LEAST_ROWS = 10, 5
"""Wrong steps of a task, and rows with one, below which no clustering is told."""
LEAST_RATE, LEAST_CORRELATION = 0.02, 0.1
"""Share of wrong steps, and correlation beyond the null, from which on it warns."""
MOST_CHANCE = 0.005
SEED = 20_509
"""Of the null."""
MAX_TEXTS = 5
"""Wrong steps of a row that are shown."""
NULL = "the same mistakes dealt out among steps of one operation, size and place"


class ErrorClusters(Check):
    """Looks at the assistant's turns of training rows."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """A warning for each task whose mistakes stand together; else an info with the share of wrong steps."""
        by_task: dict[str, _Task] = defaultdict(_Task)
        sample = sample_training_rows(corpus, whole=self.whole)
        for example in sample.rows:
            if example.split != "eval" and (steps := read_steps(example)):
                by_task[example.task].add(example, steps)
        observations, others = [], []
        for task, own in sorted(by_task.items()):
            found = own.steps.find_clustering(np.random.default_rng(SEED))
            if is_clustered(found, own.wrong.count):
                observations.append(_observe(task, found, own))
            else:
                others.append((found, own))
        if steps := sum(found.steps for found, _ in others):
            observations.append(_observe_others(steps, others))
        return sample.describe(observations)


class _Task:
    """What is kept of a task's rows."""

    def __init__(self) -> None:
        self.steps, self.wrong = TaskSteps(), Listing()

    def add(self, example: Example, steps: list[Step]) -> None:
        self.steps.add(steps)
        if any(not step.is_right for step in steps):
            self.wrong.add(_make_evidence(example, steps))


def is_clustered(found: Clustering, wrong_rows: int) -> bool:
    """Return whether mistakes cluster beyond chance, and are frequent enough to be learned."""
    if found.correlation is None or found.wrong < LEAST_WRONG or wrong_rows < LEAST_ROWS:
        return False
    beyond = found.correlation.value - max(0.0, found.null)
    return found.wrong >= LEAST_RATE * found.steps and beyond >= LEAST_CORRELATION and found.chance <= MOST_CHANCE


def _observe(task: str, found: Clustering, own: _Task) -> Observation:
    after, other = (wrong / max(1, steps) for wrong, steps in (found.after, found.else_))
    text = f"{found.wrong:,} of {found.steps:,} steps are wrong ({found.wrong / found.steps:.1%}), in clusters: "
    text += f"after a wrong step {after:.0%} of the later steps in the row are wrong, elsewhere {other:.1%}."
    remedy = "Remove these rows, or keep the wrong steps out of the loss (--fix FILE --mask)."
    evidence = tuple(own.wrong.rows)
    return Observation("error_clusters", task, "warning", found.wrong, found.steps, text, remedy, NULL, evidence)


def _observe_others(steps: int, others: Sequence[tuple[Clustering, _Task]]) -> Observation:
    wrong = sum(found.wrong for found, _ in others)
    text = f"{wrong:,} of {steps:,} steps are wrong ({wrong / steps:.1%}), "
    together = sum(found.correlation is not None and found.chance <= MOST_CHANCE for found, _ in others)
    if together:
        text += f"and in {together} of {len(others)} tasks they are in clusters, but too few or too weakly for a warning."
    else:
        text += "without clear clusters."
    if few := sum(found.correlation is None and found.wrong > 0 for found, _ in others):
        text += f" In {few} of {len(others)} tasks there are too few to check."
    evidence = tuple(row for _, own in others for row in own.wrong.rows)
    return Observation("error_clusters", None, "info", wrong, steps, text, "", NULL, evidence)


def _make_evidence(example: Example, steps: list[Step]) -> dict[str, Any]:
    """Return a row with its wrong steps, and the parts to leave out of the loss."""
    wrong, last = [step for step in steps if not step.is_right], count_turns(example) - 1
    return {
        "id": example.id,
        "source": example.source,
        "wrong": [step.text for step in wrong[:MAX_TEXTS]],
        "right values": [f"{float(step.right):.12g}" for step in wrong[:MAX_TEXTS]],
        "mask": [list(step.span) for step in wrong if step.span is not None and step.turn == last],
        "turns": sorted({step.turn for step in wrong if step.span is None or step.turn < last}),
    }
