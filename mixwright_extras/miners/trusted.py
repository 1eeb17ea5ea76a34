"""Miner that leaves out rows which a model of a few trusted rows finds unlikely: wrong labels above all.

Half of the trusted rows teach a copy of the model, and the other half says how unlikely a right row may look to it; then the
halves change places. A row is left out where so few of the trusted rows look as unlikely that chance seldom does it. Of rows
that are like the trusted ones, about the share `error` is left out by chance, whatever the model has learnt.

Source: conformal p-values for outliers, Bates et al. 2104.08279, with the halves in turn, Vovk 1208.0806; that a model of
    trusted rows tells rows apart: reducible loss, 2206.07137.
Unit: p-value of a row's least likely target token among those of the trusted rows.
Cost: two short trainings of `steps` steps (a LoRA adapter), and reading all training rows twice.
Blind spot: a right row of a kind that no trusted row is of is left out, too; a fault that the trusted rows share is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import (
    InputError,
    MinedRow,
    Miner,
    MiningResult,
    check_range,
    copy_with_adapter,
    join_some,
    report_share,
)
from mixwright_extras.mining.trainings import SHORT_TRAINING_LIMITS, read_losses

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner, TrainRows

MIN_TRUSTED_ROWS = 8
"""Below which half of them teach nothing."""
TRAINING_TIME_SHARE = 0.5
"""Of the time of a training and the reading after it, about, for the progress line."""


@dataclass(kw_only=True, eq=False)
class Trusted(Miner):
    """The trusted rows, and every other row that is not too unlike them.

    Args:
        targets: tasks whose training rows are trusted.
        error: share of rows like the trusted ones that may be left out by chance.
        steps: optimiser steps of each short training.
        batch: rows per step.
        learning_rate: of the short trainings.
        rank: of their LoRA adapter; 0 trains all weights of a copy.
    """

    NEEDS_MODEL = True

    targets: Sequence[str] = ()
    error: float = 0.1
    steps: int = 40
    batch: int = 16
    learning_rate: float = 5e-4
    rank: int = 16

    def __post_init__(self) -> None:
        limits = {name: SHORT_TRAINING_LIMITS[name] for name in ("steps", "batch", "learning_rate")}
        check_range("mine.options.trusted", vars(self), error=(1e-6, 0.5), rank=(0, 1024), **limits)

    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """Kept rows, all of them where no task is named.

        Raises InputError without a model, for targets that are unknown or all tasks, and with too few trusted rows.
        """
        by_task = rows.by_task()
        if not self.targets:
            note = "No rows are trusted, so all rows are kept. Name the trusted tasks in mine.options.trusted.targets."
            return MiningResult("trusted", tuple(MinedRow(name, "all rows are kept") for name in rows.ids), notes=(note,))
        if learner is None:
            raise InputError("a model for short trainings", "none", "Name a model.")
        if not set(self.targets) <= set(by_task) or set(self.targets) >= set(by_task):
            known = join_some(sorted(by_task))
            remedy = f"Name some tasks in mine.options.trusted.targets, but not all: {known}."
            raise InputError("one or more trusted tasks, but not all", join_some(self.targets), remedy)
        is_trusted = np.isin(rows.tasks, list(self.targets))
        trusted, others = np.flatnonzero(is_trusted), np.flatnonzero(~is_trusted)
        needed = max(int(np.ceil(1 / self.error)) - 1, MIN_TRUSTED_ROWS)  # with fewer no p-value can be as small
        if len(trusted) < needed:
            remedy = "Trust more rows"
            if len(trusted) >= MIN_TRUSTED_ROWS:
                remedy += f", or raise mine.options.trusted.error to {1 / (len(trusted) + 1):.2g} or more"
            remedy += "."
            raise InputError(f"{needed} trusted rows for an error of {self.error:g}", str(len(trusted)), remedy)
        p_values = self._p_values(corpus, learner, rows.corpus_indices[trusted], rows.corpus_indices[others], rng)
        p_by_row = dict(zip(others.tolist(), p_values.tolist(), strict=True))
        kept = [at for at in range(len(rows.ids)) if p_by_row.get(at, 1.0) > self.error]
        reasons = {at: f"p {p:.2g} among the trusted rows" for at, p in p_by_row.items()}
        mined = tuple(MinedRow(rows.ids[at], reasons.get(at, "a trusted row")) for at in kept)
        left_out = len(rows.ids) - len(kept)
        least_likely = [at for at, p in sorted(p_by_row.items(), key=lambda pair: pair[1])[:5] if p <= self.error]
        notes = [
            f"{left_out:,} of {len(others):,} rows are left out. Chance would leave out {self.error * len(others):,.0f} "
            f"if all were like the {len(trusted):,} trusted ones."
        ]
        if least_likely:
            examples = [corpus[int(rows.corpus_indices[at])] for at in least_likely]
            places = ", ".join(example.source or example.id for example in examples)
            notes.append(f"Check some of them by hand: {places}.")
        rule = tuple(MinedRow(rows.ids[at], "a trusted row") for at in trusted.tolist())
        described = f"the {len(rule)} training rows of {join_some(self.targets)} alone"
        return MiningResult("trusted", mined, notes=tuple(notes), simple_rule_rows=rule, simple_rule_description=described)

    def _p_values(
        self,
        corpus: Corpus,
        learner: Learner,
        trusted: NDArray[np.int64],
        others: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Of the other rows, shape (others,); rows are places in the corpus."""
        from mixwright.extend import RowLosses, draw_batches, train_on

        losses, order = RowLosses(learner, corpus), rng.permutation(trusted)
        halves = (order[::2], order[1::2])
        right_scores, scores = [], []
        for number, (own, other_half) in enumerate((halves, halves[::-1])):
            model = copy_with_adapter(learner.model, self.rank, int(rng.integers(2**31)))
            batches = draw_batches(own, self.steps, self.batch, rng)
            train_on(model, losses, batches, self.learning_rate)
            report_share(number / 2 + TRAINING_TIME_SHARE / 2)
            right_scores.append(read_losses(model, losses.largest, other_half, self.batch))
            scores.append(read_losses(model, losses.largest, others, self.batch))
            report_share((number + 1) / 2)
        return cross_conformal(right_scores, scores)


def cross_conformal(
    right_scores: Sequence[NDArray[np.float64]], scores: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """P-values of rows, shape (rows,): how often a trusted row looks at least as unlikely to the same model.

    Args:
        right_scores: of each model, scores of the trusted rows that it was not taught, high is unlikely.
        scores: of each model, scores of the rows, shape (rows,).
    """
    as_unlikely = sum(
        len(right) - np.searchsorted(np.sort(right), own, side="left")
        for right, own in zip(right_scores, scores, strict=True)
    )
    return (1 + np.asarray(as_unlikely)) / (1 + sum(map(len, right_scores)))
