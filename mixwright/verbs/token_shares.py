"""Token shares of an SFT plan: a task with long answers takes more of each step than its share of the rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mixwright.config import TrainConfig
from mixwright.corpus import Corpus
from mixwright.records import Plan
from mixwright.scan.rows import row_token_limit, scan_rows

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

ROWS_PER_TASK = 100
"""Rows of a task that are tokenised to estimate its mean length."""


def loss_token_shares(plan: Plan, corpus: Corpus, train: TrainConfig, learner: Learner) -> dict[str, float]:
    """Return for each task its share of the tokens in the loss.

    Args:
        plan: for SFT; its first stage is read.
        corpus: training rows, with those to replay; rows for measuring are skipped.
        train: with the longest row that is kept.
        learner: its tokenizer and chat template count.
    """
    limit, amounts = row_token_limit(train, learner), dict[str, float]()
    for task, weight in plan.stages[0].weights.items():
        examples = itertools.islice((row for row in corpus.select(tasks=[task]) if row.split != "eval"), ROWS_PER_TASK)
        lengths = [len(row.target) for row in scan_rows(learner, examples, tokenise_together=True, limit=limit)]
        if weight > 0:
            amounts[task] = weight * sum(lengths) / max(1, len(lengths))
    return {task: amount / (sum(amounts.values()) or 1.0) for task, amount in amounts.items()}
