"""Columns of lengths: tokens of the prompt, of the target that is trained on, and of what the trainer cuts off.

Source: the tokens as the trainer has them: of SFT as TRL tokenises prompt and completion, else the target alone.
Unit: tokens
Cost: tokenising; no pass through the model.
Blind spot: the target of a row for GRPO is its answer, of a pair the chosen answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Lengths(Columns):
    """`n_tokens`, `n_prompt` and `n_cut`."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "n_tokens": "tokens of the target that the loss is taken over, end token included",
        "n_prompt": "tokens before the target",
        "n_cut": "tokens of the target beyond the longest row that training keeps",
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ()

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        return {
            "n_tokens": np.array([len(row.target) for row in rows], dtype=np.int32),
            "n_prompt": np.array([len(row.prompt) for row in rows], dtype=np.int32),
            "n_cut": np.array([row.cut_tokens for row in rows], dtype=np.int32),
        }
