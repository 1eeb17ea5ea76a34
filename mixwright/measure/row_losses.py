"""Losses of numbered rows of a corpus, as SFT reads them, for experiments on copies of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mixwright.corpus import Corpus
from mixwright.learner.learner import Learner
from mixwright.learner.training_rows import row_tokens
from mixwright.records import Example


class RowLosses:
    """Nats per target token of numbered rows, as SFT reads them: prompt, completion, end token. Rows are encoded once.

    Args:
        learner: its tokenizer; the model is given with each call.
        corpus: the rows, in the order of their numbers.
    """

    def __init__(self, learner: Learner, corpus: Corpus | Sequence[Example]) -> None:
        self._learner, self._corpus = learner, corpus
        self._encoded: dict[int, tuple[list[int], list[int]]] = {}

    def __call__(self, model: Any, rows: np.ndarray) -> Tensor:
        """Shape (rows,), with gradients."""
        nats, is_target = self._nats(model, rows)
        return nats.sum(1) / is_target.sum(1)

    def largest(self, model: Any, rows: np.ndarray) -> Tensor:
        """Nats of each row's least likely target token, shape (rows,)."""
        return self._nats(model, rows)[0].amax(1)

    def _nats(self, model: Any, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Nats of each target token, 0 elsewhere, and where the targets are, both of shape (rows, tokens)."""
        for row in map(int, rows):
            if row not in self._encoded:
                self._encoded[row] = row_tokens(self._learner, self._corpus[row])
        token_ids, device = [self._encoded[int(row)] for row in rows], self._learner.device
        # Padded on the right: causal attention needs no mask then.
        ids = pad_sequence([torch.tensor(prompt + completion) for prompt, completion in token_ids], True).to(device)
        labels = [torch.tensor([-100] * len(prompt) + completion) for prompt, completion in token_ids]
        targets = pad_sequence(labels, True, -100)[:, 1:].to(device)
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1].float()
        nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=-100, reduction="none")
        return nats, targets != -100
