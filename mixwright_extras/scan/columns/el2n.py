"""Columns of the error at each target's tokens: EL2N, the distance of the model's distribution from what is there.

Source: Paul, Ganguli and Dziugaite, Deep learning on a data diet (2107.07075), for classifiers; here the mean over the
tokens of the target. The source averages over several short training runs: one model gives one of those readings.
Unit: Euclidean length, 0..1.42
Cost: none of its own; the forward pass over prompt and target is shared.
Blind spot: of a model that is trained out it says little; wrong labels and hard rows are equally high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class El2n(Columns):
    """`el2n`; NaN where a row has no target."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "el2n": "mean over the target's tokens of the Euclidean length of distribution minus token, 0..1.42"
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("target",)

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        means = [np.nan if readings is None else readings.error.mean(dtype=float) for readings in passes.target]
        return {"el2n": np.array(means, dtype=np.float32)}
