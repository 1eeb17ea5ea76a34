"""Columns of the form of each target: its skeleton, numbers as 9 and words as a.

Source: `mixwright.skeleton`, the one implementation of forms; the answer of a row for GRPO, the chosen answer of a pair.
Unit: text of at most 80 characters
Cost: reads the text; no pass through the model.
Blind spot: two ways of reasoning that end in one form are one form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow, plain, skeleton, target_of
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Formats(Columns):
    """`form`; empty where a row has no target."""

    NAMES: ClassVar[Mapping[str, str]] = {"form": "skeleton of the target's text, such as `9 + 9 = 9`"}
    PASSES: ClassVar[tuple[Pass, ...]] = ()

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        return {"form": np.array([skeleton(plain(target_of(row.example))) for row in rows], dtype=object)}
