"""Check of error clusters: wrong steps of solutions and talks that stand together in some rows.

Source: Sinha et al. 2025 (arXiv 2509.09677): models go wrong more often once their context holds mistakes, and larger ones
    do too. That rows teach it by mistakes that stand together is our reading; they do not change the data.
Unit: equations, and numbers that answer an expression in the turn before, of training rows with two of them or more.
Cost: one pass over training rows with completions, as `traces`, and 400 exchanges of at most 20,000 steps of a task.
Blind spot: steps that are no arithmetic; rows that are harder in another way than by the operation, the size of the numbers
    and the place; a final answer that goes on from a wrong step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixwright.audit.rows import max_pairs_listed, note_unlisted
from mixwright.audit.step_errors import Clustering, Step, find_clustering, read_steps
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

Row = tuple[Example, list[Step]]


class ErrorClusters(Check):
    """Looks at the assistant's turns of training rows."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """A warning for each task whose mistakes stand together; else an info with the share of wrong steps."""
        by_task: dict[str, list[Row]] = defaultdict(list)
        for example in corpus:
            if example.split != "eval" and (steps := read_steps(example)):
                by_task[example.task].append((example, steps))
        observations, others = [], []
        for task, rows in sorted(by_task.items()):
            found = find_clustering([steps for _, steps in rows], np.random.default_rng(SEED))
            wrong_rows = [row for row in rows if any(not step.is_right for step in row[1])]
            if is_clustered(found, len(wrong_rows)):
                observations.append(_observe(task, found, wrong_rows))
            else:
                others.append((found, wrong_rows))
        if steps := sum(found.steps for found, _ in others):
            observations.append(_observe_others(steps, others))
        return observations


def is_clustered(found: Clustering, wrong_rows: int) -> bool:
    """Whether mistakes stand together beyond chance, and are many enough to be learnt from."""
    if found.correlation is None or found.wrong < LEAST_WRONG or wrong_rows < LEAST_ROWS:
        return False
    beyond = found.correlation.value - max(0.0, found.null)
    return found.wrong >= LEAST_RATE * found.steps and beyond >= LEAST_CORRELATION and found.chance <= MOST_CHANCE


def _observe(task: str, found: Clustering, rows: Sequence[Row]) -> Observation:
    own = found.correlation
    after, other = (wrong / max(1, steps) for wrong, steps in (found.after, found.else_))
    text = f"{found.wrong:,} of {found.steps:,} steps are wrong ({found.wrong / found.steps:.1%}), and they stand together: "
    text += f"after a wrong step of the same row {after:.0%} are, else {other:.1%}. "
    if own is not None:
        text += f"Correlation within rows {own.value:.2f} [{own.low:.2f}, {own.high:.2f}], by chance {found.null:.2f}. "
    text += "A model may learn that after a mistake the next is due."
    if found.goes_on:
        text += f" {found.goes_on:,} further steps go on rightly from a wrong value and are not counted."
    remedy = (
        "Leave the wrong steps out of the loss and in the context (--fix FILE --mask writes such rows; --out lists them), "
    )
    remedy += "or drop these rows."
    text += note_unlisted(len(rows))
    evidence = tuple(map(_make_evidence, rows[: max_pairs_listed()]))
    return Observation("error_clusters", task, "warning", found.wrong, found.steps, text, remedy, NULL, evidence)


def _observe_others(steps: int, others: Sequence[tuple[Clustering, Sequence[Row]]]) -> Observation:
    wrong = sum(found.wrong for found, _ in others)
    rows = [row for _, of_task in others for row in of_task]
    text = f"{wrong:,} of {steps:,} steps are wrong ({wrong / steps:.1%}), "
    together = sum(found.correlation is not None and found.chance <= MOST_CHANCE for found, _ in others)
    if together:
        text += f"and in {together} of {len(others)} tasks they stand together, but are too few or too loosely to warn of."
    else:
        text += "and are not shown to stand together in rows."
    if few := sum(found.correlation is None and found.wrong > 0 for found, _ in others):
        text += f" In {few} of {len(others)} tasks that cannot be told."
    evidence = tuple(map(_make_evidence, rows[: max_pairs_listed()]))
    return Observation("error_clusters", None, "info", wrong, steps, text + note_unlisted(len(rows)), "", NULL, evidence)


def _make_evidence(row: Row) -> dict[str, Any]:
    """A row with its wrong steps, and what of it is to be left out of the loss."""
    example, steps = row
    wrong = [step for step in steps if not step.is_right]
    turns = 1 + max(step.turn for step in steps) if isinstance(example.prompt, str) else _count_turns(example)
    spans = [list(step.span) for step in wrong if step.span is not None and step.turn == turns - 1]
    left_out = sorted({step.turn for step in wrong if step.span is None or step.turn < turns - 1})
    return {
        "id": example.id,
        "source": example.source,
        "wrong": [step.text for step in wrong[:MAX_TEXTS]],
        "right values": [f"{float(step.right):.12g}" for step in wrong[:MAX_TEXTS]],
        "mask": spans,
        "turns": left_out,
    }


def _count_turns(example: Example) -> int:
    target = example.target if isinstance(example.target, tuple) else ()
    own = int(isinstance(example.target, str))
    return own + sum(message["role"] == "assistant" for message in (*example.prompt, *target))  # type: ignore[misc]
