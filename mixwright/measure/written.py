"""Greedy answers to held-out prompts that no grader judges: what a gate without graded answers compares.

Rows of prompts and targets are measured by their loss, which says nothing of what the model writes. For the gate both
checkpoints answer the prompts, too, and the answers are kept without a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixwright.answers.table import Answers, Header
from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.measure.passes import Passes, answer_row
from mixwright.records import Example, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


def items_to_answer(
    learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig, answer_tokens: int
) -> tuple[Example, ...]:
    """Items to answer, at most `config.items` of each cell, as far as an answer fits into the contexts.

    Args:
        learners: all of them answer the same items.
        corpus: its held-out rows are taken, all of them where there are none.
        config: how many items.
        answer_tokens: tokens of an answer.
    """
    picked = Passes(learners[0], config, corpus).picked(lambda example: True)
    return tuple(item for item in picked if all(learner.has_room(item.prompt, answer_tokens) for learner in learners))


def write_answers(learner: Learner, items: Sequence[Example], answer_tokens: int, seed: int) -> Answers:
    """One greedy answer per item, its target as the gold answer and no score."""
    if not items:
        return Answers.from_rows(())
    completions = learner.sample(
        [item.prompt for item in items], count=1, temperature=0, max_new_tokens=answer_tokens, seed=seed
    )
    golds = [plain(item.target) or item.answer for item in items]
    written = zip(items, completions, golds, strict=True)
    rows = (answer_row(item, best, gold, None) for item, (best,), gold in written)
    return Answers.from_rows(rows, Header(template=tuple(learner.form.list_arguments())))
