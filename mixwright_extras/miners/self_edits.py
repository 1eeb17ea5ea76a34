"""Miner that rewrites facts into forms the learner knows, in the way that short trainings prove best.

Facts stand in the rows of one task. Ways of rewriting are forms in which other training rows say such facts (found by the
values that they share with the facts), forms that are given, and edits that the model itself writes. Ways are tried by short
trainings at equal target tokens with sequential halving; one half of the reward questions chooses, the other half, with new
seeds, says whether the winner beats the facts as they stand. Else all rows are kept. The null of the new rows has the same
facts, each in a way that was drawn at random.

Source: Zweiger et al., SEAL, 2506.10943 (edits by the model, kept by their reward). Its released logs: reliability of the
    ranking .32 and .17, so that the best of five is mostly luck; forms instead of reinforcement learning are ours.
Unit: probability per token of the answers to reward questions, 0..1.
Cost: about 2 x (ways + 2) x `runs` short trainings of `steps` steps; `samples` completions per fact row where asked for.
Blind spot: facts are read by the user's pattern; what no pattern reads is left as it stands. Reward questions prefer the
form that they ask in.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from mixwright.extend import (
    Example,
    InputError,
    MinedRow,
    Miner,
    MiningResult,
    check_range,
)
from mixwright_extras.mining.edit_runs import RewriteTrials, ShortTraining, describe_edits
from mixwright_extras.mining.halving import halve
from mixwright_extras.mining.rewrites import (
    AS_IS_WAY,
    OWN_WAY,
    Ways,
    as_own_parent,
    as_they_stand,
    draw_null,
    parents_of,
    rewrite_in_forms,
    without_questions,
    write_own_edits,
)
from mixwright_extras.mining.rewriting import Slots, find_forms, read_facts, text_of
from mixwright_extras.mining.trainings import SHORT_TRAINING_LIMITS

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner, TrainRows

MAX_ROWS_READ = 256
"""Reward questions, and protected rows, that are read after each short training."""
Rows = list[Example]


@dataclass(kw_only=True, eq=False)
class SelfEdits(Miner):
    """Facts in the learner's own forms.

    Args:
        facts: task whose training rows state the facts; empty takes all that are no questions and not protected.
        questions: task whose training rows ask about them; the reward. Empty: nothing can be tried, and all rows are kept.
        pattern: how a fact stands in the text, with slots; of several the last one finds each fact, those before are looked
            for once and hold for the row.
        templates: further forms, `prompt => target` with the slots of the pattern.
        forms: forms that are looked for in other training rows, at most.
        instruction: text for the model with {text} where the facts are to stand; each line of its answer is a row.
        samples: edits that the model writes of each row, each of them a candidate; 0 asks for none.
        max_new_tokens: longest edit.
        protected: tasks that must not be forgotten.
        steps: optimiser steps of each short training.
        runs: seeds of each round.
        batch: rows per step of the facts as they stand; other ways have as many target tokens.
        learning_rate: of the short trainings.
        rank: of their LoRA adapters; 0 trains all weights.
    """

    NEEDS_MODEL = True

    facts: str = ""
    questions: str = ""
    pattern: str | Sequence[str] = ()
    templates: Sequence[str] = ()
    forms: int = 4
    instruction: str = ""
    samples: int = 0
    max_new_tokens: int = 128
    protected: Sequence[str] = ()
    steps: int = 50
    runs: int = 4
    batch: int = 16
    learning_rate: float = 1e-3
    rank: int = 16

    def __post_init__(self) -> None:
        self.pattern = (self.pattern,) if isinstance(self.pattern, str) else tuple(self.pattern)
        self.short_training = ShortTraining(self.steps, self.batch, self.learning_rate, self.rank)
        if self.samples and "{text}" not in self.instruction:
            remedy = "Write mine.options.self_edits.instruction."
            raise InputError("an instruction with {text} for the model's own edits", repr(self.instruction), remedy)
        limits = SHORT_TRAINING_LIMITS | {
            "rank": (0, 4096),
            "forms": (0, 100),
            "samples": (0, 100),
            "max_new_tokens": (1, 1e6),
        }
        check_range("mine.options.self_edits", vars(self), **limits)

    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: Generator) -> MiningResult:
        """New rows of the proven way, or all rows. Raises InputError without a model, or for an unknown task."""
        if learner is None:
            raise InputError(
                "a model for short trainings", "none", "Name a model: each way of rewriting is tried on a copy of it."
            )
        examples = [corpus[int(number)] for number in rows.corpus_indices]
        tasks = {row.task for row in examples}
        if unknown := [task for task in (self.facts, self.questions, *self.protected) if task and task not in tasks]:
            raise InputError(f"a task with training rows: {', '.join(sorted(tasks))}", unknown[0], "Correct its name.")
        if not self.questions:
            return _keep_all_rows(
                examples, "No task with reward questions is named (mine.options.self_edits.questions).", ()
            )
        return self._rewrite(examples, list(corpus.select(split="eval")), learner, rng)

    def _rewrite(self, rows: Rows, held_out: Rows, learner: Learner, rng: Generator) -> MiningResult:
        question_rows = [row for row in rows if row.task == self.questions]
        excluded_tasks = {self.questions, *self.protected}
        fact_rows = [row for row in rows if (row.task == self.facts if self.facts else row.task not in excluded_tasks)]
        used_ids = {row.id for row in fact_rows} | {row.id for row in question_rows}
        protected_rows = [row for row in rows if row.task in self.protected and row.target is not None]
        facts_by_row = [read_facts(text_of(row), tuple(self.pattern)) for row in fact_rows]
        other_rows = [row for row in rows if row.id not in used_ids]
        ways, rollouts, notes = self._make_ways(
            fact_rows, facts_by_row, other_rows, [*question_rows, *held_out], learner, rng
        )
        if len(ways) < 2 or len(question_rows) < 2:
            why = "There is no way of rewriting to try." if len(ways) < 2 else "There are fewer than two reward questions."
            return _keep_all_rows(rows, why, notes, rollouts)
        names = list(ways)
        questions, protected = (
            [task_rows[at] for at in np.sort(rng.permutation(len(task_rows))[:MAX_ROWS_READ]).tolist()]  # in their order
            for task_rows in (question_rows, protected_rows)
        )
        trial = RewriteTrials(learner, list(ways.values()), questions, protected, self.short_training)
        seeds = (int(rng.integers(2**31)) for _ in itertools.count())
        halved = halve(len(names), trial, len(trial.questions), runs=self.runs, seeds=seeds)
        notes += describe_edits(halved, names, trial)
        if not halved.proven:
            return _keep_all_rows(rows, "No way of rewriting beats the original facts beyond chance.", notes, rollouts)
        new_rows = ways[names[halved.best]]
        rewritten_ids = _fully_rewritten(new_rows, fact_rows, facts_by_row)
        unchanged_rows = [as_own_parent(row) for row in rows if row.id not in rewritten_ids]
        null_rows = draw_null(ways, set(parents_of(new_rows)), rng)
        null_ids = {row.id for row in null_rows}  # rows that were not read whole stay, too, and none may stand there twice
        null_rows += [row for row in unchanged_rows if row.id not in null_ids]
        notes.append(
            f"{len(rewritten_ids)} of {len(fact_rows)} rows with facts are replaced by {len(new_rows)} in the way "
            f"{names[halved.best]!r}. All other training rows are kept, so you can train on the table as it is."
        )
        all_rows = (*new_rows, *unchanged_rows)
        return MiningResult(
            "self_edits", new_rows=all_rows, null_rows=tuple(null_rows), rollouts=rollouts, notes=tuple(notes)
        )

    def _make_ways(
        self,
        fact_rows: Rows,
        facts_by_row: Sequence[Sequence[Slots]],
        other_rows: Rows,
        question_rows: Rows,
        learner: Learner,
        rng: Generator,
    ) -> tuple[Ways, int, list[str]]:
        """Rows of every way, the facts as they stand first; completions that were sampled; and what was read and found."""
        all_facts, seed = [fact for row_facts in facts_by_row for fact in row_facts], int(rng.integers(2**31))
        forms = find_forms(other_rows, all_facts, self.forms) if all_facts else []
        own_edits, rollouts = write_own_edits(learner, fact_rows, self.instruction, self.samples, self.max_new_tokens, seed)
        ways = rewrite_in_forms(fact_rows, facts_by_row, [*self.templates, *(form for form, _ in forms)])
        ways, notes = without_questions({AS_IS_WAY: as_they_stand(fact_rows), **ways, **own_edits}, question_rows)
        forms_described = "; ".join(f"{form!r} of {count} things" for form, count in forms) or "none"
        summary = f"{len(all_facts)} facts were read in {len(fact_rows)} rows. Forms found in other rows: {forms_described}."
        return ways, rollouts, [summary, *notes]


def _fully_rewritten(new_rows: Rows, fact_rows: Rows, facts_by_row: Sequence[Sequence[Slots]]) -> set[str]:
    """Ids of rows all of whose facts were rewritten; of the model's own edits every one."""
    counts = Counter(parents_of(new_rows))
    by_model = new_rows[0].extra["provenance"].find(OWN_WAY) >= 0
    return {
        row.id
        for row, facts in zip(fact_rows, facts_by_row, strict=True)
        if counts[row.id] >= (1 if by_model else max(len(facts), 1))
    }


def _keep_all_rows(rows: Rows, why: str, notes: Sequence[str], rollouts: int = 0) -> MiningResult:
    """All rows as they stand."""
    all_rows = tuple(MinedRow(row.id, "all rows are kept") for row in rows)
    return MiningResult("self_edits", all_rows, rollouts=rollouts, notes=(*notes, f"{why} All rows are kept unchanged."))
