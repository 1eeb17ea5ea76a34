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
from collections.abc import Mapping
from typing import Any

import numpy as np

from mixwright.extend import Check, Corpus, Example, Listing, Observation, sample_training_rows
from mixwright_extras.steps.step_errors import Clustering, Step, TaskSteps, read_steps, read_turns

DEFAULT = True
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
        by_task: dict[str, TaskSteps] = defaultdict(TaskSteps)
        wrong_rows: dict[str, Listing] = defaultdict(Listing)
        sample = sample_training_rows(corpus, whole=self.whole)
        for example in sample.rows:
            if example.split != "eval" and (steps := read_steps(example)):
                by_task[example.task].add(steps)
                if not all(step.is_right for step in steps):
                    wrong_rows[example.task].add(_make_evidence(example, steps))
        observations, others = list[Observation](), dict[str, Clustering]()
        for task, own in sorted(by_task.items()):
            found, listed = own.find_clustering(np.random.default_rng(SEED)), wrong_rows[task]
            if is_clustered(own, found, listed.count):
                observations.append(_observe(task, own, listed))
            else:
                others[task] = found
        if steps := sum(by_task[task].steps for task in others):
            wrong = sum(by_task[task].wrong for task in others)
            evidence = tuple(row for task in others for row in wrong_rows[task].rows)
            text = f"{wrong:,} of {steps:,} steps are wrong ({wrong / steps:.1%}), {_describe_others(by_task, others)}"
            observations.append(Observation("error_clusters", None, "info", wrong, steps, text, "", NULL, evidence))
        return sample.describe(observations)


def is_clustered(own: TaskSteps, found: Clustering, wrong_rows: int) -> bool:
    """Return whether mistakes cluster beyond chance, and are frequent enough to be learned."""
    if found.correlation is None or own.wrong < LEAST_WRONG or wrong_rows < LEAST_ROWS:
        return False
    beyond = found.correlation.value - max(0.0, found.null)
    return own.wrong >= LEAST_RATE * own.steps and beyond >= LEAST_CORRELATION and found.chance <= MOST_CHANCE


def _observe(task: str, own: TaskSteps, wrong_rows: Listing) -> Observation:
    after, other = (wrong / max(1, steps) for wrong, steps in (own.after, own.else_))
    text = f"{own.wrong:,} of {own.steps:,} steps are wrong ({own.wrong / own.steps:.1%}), in clusters: "
    text += f"after a wrong step {after:.0%} of the later steps in the row are wrong, elsewhere {other:.1%}."
    remedy = "Remove these rows, or keep the wrong steps out of the loss (--fix FILE --mask)."
    evidence = tuple(wrong_rows.rows)
    return Observation("error_clusters", task, "warning", own.wrong, own.steps, text, remedy, NULL, evidence)


def _describe_others(by_task: Mapping[str, TaskSteps], others: Mapping[str, Clustering]) -> str:
    together = sum(found.correlation is not None and found.chance <= MOST_CHANCE for found in others.values())
    few = sum(found.correlation is None and by_task[task].wrong > 0 for task, found in others.items())
    text = f"and in {together} of {len(others)} tasks they are in clusters, but too few or too weakly for a warning."
    text = text if together else "without clear clusters."
    return text + (f" In {few} of {len(others)} tasks there are too few to check." if few else "")


def _make_evidence(example: Example, steps: list[Step]) -> dict[str, Any]:
    """Return a row with its wrong steps, and the parts to leave out of the loss."""
    wrong, last = [step for step in steps if not step.is_right], len(read_turns(example)) - 1
    return {
        "id": example.id,
        "source": example.source,
        "wrong": [step.text for step in wrong[:MAX_TEXTS]],
        "right values": [f"{float(step.right):.12g}" for step in wrong[:MAX_TEXTS]],
        "mask": [list(step.span) for step in wrong if step.span is not None and step.turn == last],
        "turns": sorted({step.turn for step in wrong if step.span is None or step.turn < last}),
    }
