"""What shares of rows in an SFT plan are in tokens: a task with long answers takes more of each step than its rows say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mixwright.config import TrainConfig
from mixwright.corpus import Corpus
from mixwright.records import Plan
from mixwright.scan.rows import row_token_limit, scan_rows

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

ROWS_PER_TASK = 100
"""Rows of a task whose tokens are counted."""


def with_token_shares(plan: Plan, corpus: Corpus, train: TrainConfig, learner: Learner) -> Plan:
    """The plan, whose reason for each weight also says what share of all tokens, and of those in the loss, it comes to.

    Args:
        plan: for SFT; its first stage is read.
        corpus: training rows, with those to rehearse.
        train: with the longest row that is kept.
        learner: whose tokenizer and chat template count.
    """
    weights = {task: weight for task, weight in plan.stages[0].weights.items() if weight > 0}
    tokens = {task: _mean_tokens(corpus.select(tasks=[task]), train, learner) for task in weights}
    of_all, of_loss = (_shares({task: weight * tokens[task][kind] for task, weight in weights.items()}) for kind in (0, 1))
    why = dict(plan.why)
    for task in weights:
        key = f"stages.0.weights.{task}"
        said = f"{of_all[task]:.1%} of the tokens, {of_loss[task]:.1%} of those in the loss"
        why[key] = f"{why[key]}; {said}" if key in why else said
    return replace(plan, why=why)


def _mean_tokens(rows: Corpus, train: TrainConfig, learner: Learner) -> tuple[float, float]:
    """Mean tokens of a task's rows, and mean of those that the loss is taken over; rows for measuring are left out."""
    examples = itertools.islice((row for row in rows if row.split != "eval"), ROWS_PER_TASK)
    limit = row_token_limit(train, learner)
    read = list(scan_rows(learner, examples, tokenise_together=True, limit=limit))
    count = max(1, len(read))
    in_loss = sum(len(row.target) for row in read)
    return (in_loss + sum(len(row.prompt) for row in read)) / count, in_loss / count


def _shares(amounts: Mapping[str, float]) -> dict[str, float]:
    total = sum(amounts.values()) or 1.0
    return {task: amount / total for task, amount in amounts.items()}
