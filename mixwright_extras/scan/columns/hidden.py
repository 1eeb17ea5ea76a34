"""Columns of where each row lies for the model: its mean-pooled last hidden state.

Source: prototypes after Sorscher et al. (2206.14486), on the states of a language model: the mean over prompt and target of
what the output layer sees.
Unit: as the model has it
Cost: none of its own; the forward pass over prompt and target is shared. Two bytes per row and hidden unit.
Blind spot: no labels and no gradients: rows that read alike lie close, whatever they teach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Hidden(Columns):
    """`hidden`, a vector of the model's width."""

    NAMES: ClassVar[Mapping[str, str]] = {"hidden": "mean of the last hidden states over prompt and target, float16"}
    PASSES: ClassVar[tuple[Pass, ...]] = ("hidden",)

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        return {"hidden": passes.hidden}
