"""Likelihood of a model's own former answers after training: how much less probable they became, in nats a token.

The later checkpoint reads, in one forward pass, the prompts and the greedy answers that the earlier one gave. How probable
they were is known from the writing of them. No grader is asked, and no answer is written.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.estimates.intervals import rate
from mixwright.records import FormerAnswers, Text
from mixwright.run.folder import RunFolder

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

MAX_ANSWERS_PER_TASK = 100
"""Answers of a task that are read at most."""
Rows = Sequence[Mapping[str, Any]]
"""Completions as a measuring writes them, with their tokens and the log-probability of these."""


def former_file(run: RunFolder) -> Path:
    """Where it is kept."""
    return run.path / "former.json"


def rows_to_read(before: Rows) -> list[Mapping[str, Any]]:
    """Former answers whose tokens are known, `MAX_ANSWERS_PER_TASK` of a task, in an order that no result decides."""
    tasks: dict[str, list[tuple[bytes, Mapping[str, Any]]]] = defaultdict(list)
    for row in before:
        if row.get("tokens") and row.get("logprob") is not None:
            tasks[row["task"]].append((hashlib.sha256(f"former {row['example']}".encode()).digest(), row))
    ranked = (sorted(tasks[task], key=lambda pair: pair[0])[:MAX_ANSWERS_PER_TASK] for task in sorted(tasks))
    return [row for of_task in ranked for _, row in of_task]


def same_tokens(learner: Learner, other_learner: Learner) -> bool:
    """Whether two models read the same tokens, so that what one wrote can be read by the other."""
    return learner.tokenizer.get_vocab() == other_learner.tokenizer.get_vocab()


def read_former_answers(learner: Learner, prompts: Mapping[str, Text], before: Rows) -> list[FormerAnswers]:
    """Let the later checkpoint read the former answers, task by task; nothing of tasks with fewer than two.

    Args:
        learner: the later checkpoint.
        prompts: by item; answers to others are not read.
        before: greedy completions of the earlier one, as `rows_to_read` chose them.
    """
    rows = [row for row in before if row["example"] in prompts]
    logprobs = learner.logprobs([prompts[row["example"]] for row in rows], [row["tokens"] for row in rows])
    answers_by_task: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for row, after in zip(rows, logprobs, strict=True):
        answers_by_task[row["task"]].append((float(row["logprob"]), float(sum(after)), len(after)))
    former_answers = []
    for task, answers in answers_by_task.items():
        logprobs_before, logprobs_after, tokens = np.array(answers, dtype=float).T
        moved = rate(logprobs_after - logprobs_before, tokens)
        if moved is not None:
            mean = float(logprobs_before.sum() / tokens.sum())
            former_answers.append(
                FormerAnswers(task, len(answers), int(tokens.sum()), mean, moved.value, moved.low, moved.high)
            )
    return former_answers
