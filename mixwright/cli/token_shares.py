"""Token shares of an SFT plan: a task with long answers takes more of each step than its share of the rows."""

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
"""Rows of a task that are tokenised to estimate its mean length."""


def count_token_shares(plan: Plan, corpus: Corpus, train: TrainConfig, learner: Learner) -> dict[str, tuple[float, float]]:
    """Return for each task its share of all tokens, and of those in the loss.

    Args:
        plan: for SFT; its first stage is read.
        corpus: training rows, with those to replay.
        train: with the longest row that is kept.
        learner: its tokenizer and chat template count.
    """
    weights = {task: weight for task, weight in plan.stages[0].weights.items() if weight > 0}
    tokens = {task: _mean_tokens(corpus.select(tasks=[task]), train, learner) for task in weights}
    of_all, of_loss = (_shares({task: weight * tokens[task][kind] for task, weight in weights.items()}) for kind in (0, 1))
    return {task: (of_all[task], of_loss[task]) for task in weights}


def with_token_shares(plan: Plan, shares: Mapping[str, tuple[float, float]]) -> Plan:
    """Return the plan with the token shares in the reason for each weight."""
    why = dict(plan.why)
    for task, (of_all, of_loss) in shares.items():
        key = f"stages.0.weights.{task}"
        reason = f"{of_all:.1%} of the tokens, {of_loss:.1%} of those in the loss"
        why[key] = f"{why[key]}; {reason}" if key in why else reason
    return replace(plan, why=why)


def _mean_tokens(rows: Corpus, train: TrainConfig, learner: Learner) -> tuple[float, float]:
    """Return the mean tokens of a task's training rows, and the mean of those in the loss."""
    examples = itertools.islice((row for row in rows if row.split != "eval"), ROWS_PER_TASK)
    limit = row_token_limit(train, learner)
    read = list(scan_rows(learner, examples, tokenise_together=True, limit=limit))
    count = max(1, len(read))
    in_loss = sum(len(row.target) for row in read)
    return (in_loss + sum(len(row.prompt) for row in read)) / count, in_loss / count


def _shares(amounts: Mapping[str, float]) -> dict[str, float]:
    total = sum(amounts.values()) or 1.0
    return {task: amount / total for task, amount in amounts.items()}
