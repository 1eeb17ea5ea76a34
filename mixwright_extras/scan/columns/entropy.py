"""Columns of the model's own uncertainty along each target: entropy of its next-token distribution.

Source: exact from the logits at temperature 1, at every token of the target after its prompt, end token included.
Unit: nats per token
Cost: none of its own; the forward pass over prompt and target is shared.
Blind spot: along the given target, not along what the model would write; says how sure it is, not whether it is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Entropy(Columns):
    """`entropy`; NaN where a row has no target."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "entropy": "mean entropy of the next-token distribution over the target's tokens, nats per token"
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("target",)

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        means = [np.nan if readings is None else readings.entropy.mean(dtype=float) for readings in passes.target]
        return {"entropy": np.array(means, dtype=np.float32)}
