"""Miner of rows that keep what the model can do: its own finished answers to prompts without labels.

Answers are made before training, to the prompts of `corpus.rehearse` that have no completion; rows there that have one are
taken as they are. Prompts that stand in the held-out rows are left out, as the audit finds them. The planner `rehearsal`
draws the rows that come out.

Source: Self-Distillation Fine-Tuning, Yang et al. 2402.13669, which rewrites all rows in the model's own words; ours keeps
    the rows and adds own answers. On SmolLM2 these kept the mean of rehearsed tasks; true rows raised some and cost others.
Unit: rows.
Cost: one greedy answer per prompt, and again with twice the room for tasks of which most answers were cut.
Blind spot: what the model answers wrongly before is rehearsed, too, where no gold answer is given; answers that do not end
    are left out, so tasks of long answers may get few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixwright.contracts import Miner
from mixwright.errors import InputError, check_range
from mixwright.mine.own_answers import rehearsal_rows
from mixwright.records import MinedRow, MiningResult

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.mine.choosing import TrainRows


@dataclass(kw_only=True, eq=False)
class Rehearsal(Miner):
    """Own answers.

    Args:
        max_new_tokens: longest answer, tokens.
    """

    NEEDS_MODEL = True

    max_new_tokens: int = 256

    def __post_init__(self) -> None:
        check_range("mine.options.rehearsal", vars(self), max_new_tokens=(1, 1e6))

    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """New rows; all training rows where there is nothing to rehearse."""
        if learner is None:
            raise InputError("the model to train", "none", "Name the model: it answers the prompts itself.")
        rehearsal = rehearsal_rows(corpus, lambda: learner, max_new_tokens=self.max_new_tokens)
        if not rehearsal.rows:
            all_rows = tuple(MinedRow(name, 1.0, "all rows are kept") for name in rows.ids)
            reason = "There are no rows to replay (corpus.rehearse), so all rows are kept unchanged."
            return MiningResult("rehearsal", all_rows, rollouts=rehearsal.rollouts, notes=(*rehearsal.notes, reason))
        return MiningResult("rehearsal", new_rows=rehearsal.rows, rollouts=rehearsal.rollouts, notes=rehearsal.notes)
