"""Short trainings on candidate rewrites: a copy of the model, or a new LoRA adapter on one, read on questions.

Candidates are trained on equal target tokens, whatever the number and length of their rows: every step takes rows until it
has its share of the tokens. What is said of them: their ranking and its reliability, price, and what is forgotten.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import RowLosses, copy_with_adapter, row_tokens, train_on
from mixwright_extras.mining.halving import Halved, rank_candidates
from mixwright_extras.mining.replicates import format_ranking
from mixwright_extras.mining.trainings import read_losses

if TYPE_CHECKING:
    from mixwright.extend import Example, Learner

FORGOTTEN_FALL = 0.05
"""Fall of the protected rows' probability per token from which a note warns."""


@dataclass(frozen=True)
class ShortTraining:
    """Sizes of a short training."""

    steps: int = 50
    batch: int = 16
    """Rows of the reference per step; others have as many tokens."""
    learning_rate: float = 1e-3
    rank: int = 16
    """Of the LoRA adapter; 0 trains all weights of the copy."""


class RewriteTrials:
    """Trains on one candidate at a time; the learner is left as it was.

    Args:
        learner: copied.
        candidates: rows of each; the first is the reference, whose length sets the tokens of a step.
        questions: rows that are read for the score.
        protected: rows that must not be forgotten; may be empty.
        sizes: sizes.
    """

    def __init__(
        self,
        learner: Learner,
        candidates: Sequence[Sequence[Example]],
        questions: Sequence[Example],
        protected: Sequence[Example],
        sizes: ShortTraining,
    ) -> None:
        from mixwright.extend import Corpus

        self.learner, self.sizes = learner, sizes
        groups = [*candidates, questions, protected]
        ends = np.cumsum([0, *map(len, groups)])
        row_ranges = [np.arange(begin, end) for begin, end in itertools.pairwise(ends.tolist())]
        self.questions, self.protected, self.candidates = row_ranges[-2], row_ranges[-1], row_ranges[:-2]
        rows = [row for group in groups for row in group]
        self.lengths = np.array([len(row_tokens(learner, row)[1]) for row in rows])
        # new ids, one split and no levels, so that all can stand in one corpus
        numbered = [replace(row, id=str(number), split="train", level=None) for number, row in enumerate(rows)]
        self.losses = RowLosses(learner, Corpus.from_examples(numbered))

    def __call__(self, candidate: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probability per token of every question and every protected row, after training on a candidate."""
        model = copy_with_adapter(self.learner.model, self.sizes.rank, seed)
        train_on(model, self.losses, self.batches(candidate, seed), self.sizes.learning_rate)
        return self.probabilities(model)

    def probabilities(self, model: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same of any copy, or of the model itself, without training."""
        model = self.learner.model if model is None else model
        losses = (
            read_losses(model, self.losses, rows, self.sizes.batch) if len(rows) else np.zeros(0)
            for rows in (self.questions, self.protected)
        )
        questions, protected = (np.exp(-nats) for nats in losses)
        return questions, protected

    def mean_nll(self, candidate: int) -> float:
        """Nats per target token of a candidate's rows under the model as it is."""
        rows = self.candidates[candidate]
        nats = read_losses(self.learner.model, self.losses, rows, self.sizes.batch)
        return float((nats * self.lengths[rows]).sum() / self.lengths[rows].sum())

    def batches(self, candidate: int, seed: int) -> list[NDArray[np.int64]]:
        """Rows of every step: as many target tokens as `batch` rows of the reference have on average."""
        rng, rows = np.random.default_rng(seed), self.candidates[candidate]
        tokens_per_step = self.sizes.batch * float(self.lengths[self.candidates[0]].mean())
        batches: list[NDArray[np.int64]] = []
        waiting_rows: list[int] = []
        tokens_taken = 0.0
        for step in range(1, self.sizes.steps + 1):
            step_rows: list[int] = []
            while not step_rows or tokens_taken < step * tokens_per_step - float(self.lengths[rows].mean()) / 2:
                waiting_rows = waiting_rows or rng.permutation(rows).tolist()
                step_rows.append(waiting_rows.pop())
                tokens_taken += self.lengths[step_rows[-1]]
            batches.append(np.array(step_rows))
        return batches


def describe_edits(halved: Halved, names: Sequence[str], trial: RewriteTrials) -> list[str]:
    """A sentence per candidate, best first, then how far the ranking can be believed and whether the winner is proven."""
    scores, protected_scores = trial.probabilities()
    questions_before, protected_before = (
        float(scores[::2].mean()),
        float(protected_scores.mean()) if len(protected_scores) else 0.0,
    )
    lines = [
        f"{halved.trainings} short trainings of {trial.sizes.steps} steps. Before training, the answers to the reward "
        f"questions have {questions_before:.3g} probability per token. Half of the {len(scores)} questions chooses the "
        "best way, the other half tests it."
    ]
    for candidate in rank_candidates(halved):
        gain, rows = float(np.mean(halved.choosing_scores[candidate])) - questions_before, trial.candidates[candidate]
        line = (
            f"{names[candidate]!r}: {gain:+.3g} over {len(halved.choosing_scores[candidate])} runs, "
            f"{1000 * gain / int(trial.lengths[rows].sum()):+.3g} per 1,000 target tokens of its {len(rows)} rows; "
            f"{trial.mean_nll(candidate):.3g} nats per token under the model as it is"
        )
        lines.append(
            line
            + (
                f"; protected rows {np.mean(halved.protected_scores[candidate]) - protected_before:+.3g}."
                if len(protected_scores)
                else "."
            )
        )
    if len(names) > 2:
        lines += format_ranking(halved.ranking)
    if len(protected_scores) and np.mean(halved.protected_scores[halved.best]) < protected_before - FORGOTTEN_FALL:
        lines.append("The best way costs protected tasks: mix their rows in, or train for fewer steps.")
    proof = f"{halved.gain.value:+.3g} [{halved.gain.low:+.3g}, {halved.gain.high:+.3g}]"
    comparison = f"On the other questions, with new seeds, {names[halved.best]!r} minus the facts as they stand"
    return [*lines, f"{comparison}: {proof}."]
