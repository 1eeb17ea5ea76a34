"""Short trainings on candidate rewrites: a copy of the model, or a new LoRA adapter on one, read on questions.

Candidates are trained on equal target tokens, whatever the number and length of their rows: every step takes rows until it
has its share of the tokens.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from mixwright.learner.batches import without_warnings
from mixwright.learner.warmup import warmup_tokens
from mixwright.measure.bursts import read_losses, train_on
from mixwright.measure.row_losses import RowLosses

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner
    from mixwright.records import Example


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
        from mixwright.corpus import Corpus

        self.learner, self.short = learner, sizes
        groups = [*candidates, questions, protected]
        ends = np.cumsum([0, *map(len, groups)])
        places = [np.arange(begin, end) for begin, end in itertools.pairwise(ends.tolist())]
        self.questions, self.protected, self.candidates = places[-2], places[-1], places[:-2]
        rows = [row for group in groups for row in group]
        self.lengths = np.array([len(warmup_tokens(learner, row)[1]) for row in rows])
        numbered = Corpus.from_examples(_renumber_rows(rows))
        self.losses = RowLosses(learner, numbered)

    def __call__(self, candidate: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probability per token of every question and every protected row, after training on a candidate."""
        model = self._copy(seed)
        train_on(model, self.losses, self.batches(candidate, seed), self.short.learning_rate)
        return self.probabilities(model)

    def probabilities(self, model: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same without training."""
        model = self.learner.model if model is None else model
        return self._probabilities(model, self.questions), self._probabilities(model, self.protected)

    def surprise(self, candidate: int) -> float:
        """Nats per target token of a candidate's rows under the model as it is."""
        rows = self.candidates[candidate]
        nats = read_losses(self.learner.model, self.losses, rows, self.short.batch)
        return float((nats * self.lengths[rows]).sum() / self.lengths[rows].sum())

    def tokens(self, candidate: int) -> int:
        """Target tokens of all rows of a candidate, end tokens included."""
        return int(self.lengths[self.candidates[candidate]].sum())

    def _probabilities(self, model: Any, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        if not len(rows):
            return np.zeros(0)
        return np.exp(-read_losses(model, self.losses, rows, self.short.batch))

    def batches(self, candidate: int, seed: int) -> list[NDArray[np.int64]]:
        """Rows of every step: as many target tokens as `batch` rows of the reference have on average."""
        rng, rows = np.random.default_rng(seed), self.candidates[candidate]
        share = self.short.batch * float(self.lengths[self.candidates[0]].mean())
        found: list[NDArray[np.int64]] = []
        waiting: list[int] = []
        spent = 0.0
        for step in range(1, self.short.steps + 1):
            taken: list[int] = []
            while not taken or spent < step * share - float(self.lengths[rows].mean()) / 2:
                waiting = waiting or rng.permutation(rows).tolist()
                taken.append(waiting.pop())
                spent += self.lengths[taken[-1]]
            found.append(np.array(taken))
        return found

    def _copy(self, seed: int) -> Any:
        model: Any = copy.deepcopy(self.learner.model).eval()  # no dropout: runs differ by their rows and seeds alone
        if not self.short.rank or hasattr(model, "peft_config") or importlib.util.find_spec("peft") is None:
            return model
        from peft import LoraConfig, get_peft_model

        rank = self.short.rank
        with torch.random.fork_rng(devices=[]), without_warnings():
            torch.manual_seed(seed)
            settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
            return get_peft_model(model, settings).eval()


def _renumber_rows(rows: Sequence[Example]) -> list[Example]:
    """Rows with new ids, one task and split, so that they can stand in one corpus."""
    return [replace(row, id=str(number), split="train", level=None) for number, row in enumerate(rows)]
