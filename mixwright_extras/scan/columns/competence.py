"""Columns of what the model writes for each prompt: greedy success, pass@1, pass@k, and how many different answers.

Source: rollouts as the probe `competence` makes them, k = measure.samples at measure.temperature, judged by
the graders of the corpus.
Unit: shares, 0..1; outcomes are counted
Cost: 1 + k completions per row, written for the scan alone; by far its dearest columns.
Blind spot: of one row pass@1 rests on k samples; answers count as different when their texts do, spaces at the ends apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Competence(Columns):
    """`greedy`, `pass_1`, `pass_k` and `outcomes`; NaN where nothing can be graded or the prompt leaves no room."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "greedy": "1 if the greedy completion gets full marks, else 0",
        "pass_1": "share of the sampled completions with full marks, 0..1",
        "pass_k": "1 if any sampled completion gets full marks, else 0: pass@k with k = measure.samples",
        "outcomes": "number of different sampled completions, without spaces at their ends",
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("rollouts",)

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        values_by_name = {name: np.full(len(rows), np.nan, dtype=np.float32) for name in self.NAMES}
        for i, rollouts in enumerate(passes.rollouts):
            if rollouts is None:
                continue
            values_by_name["greedy"][i] = rollouts.success("greedy")
            values_by_name["pass_1"][i] = rollouts.success("pass@1")
            values_by_name["pass_k"][i] = float(rollouts.correct.any())
            values_by_name["outcomes"][i] = len({sample.text.strip() for sample in rollouts.samples})
        return values_by_name
