"""Columns of how likely the model finds each target: on the mean, at its hardest token, and against how it compresses.

Source: Min-k % as in Shi et al., Detecting pretraining data (2310.16789), of 20 % of the tokens and at least one; the zlib
ratio after Carlini et al. (2012.07805), here bits of the model per bit of zlib, so that it does not fall with length.
Unit: nats per token; the ratio has none
Cost: one forward pass over prompt and target, shared.
Blind spot: a low likelihood is a new fact, a hard step, noise, or an unfamiliar format, and these look alike; zlib adds
    about 11 bytes to any text, so the ratio of short targets is small.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow, check_range, plain, target_of
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Likelihood(Columns):
    """`nll`, `nll_max`, `min_k` and `zlib_ratio`; NaN where a row has no target."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "nll": "mean negative log-likelihood of the target's tokens after the prompt, nats per token: the loss of SFT",
        "nll_max": "the largest of these over the tokens, nats",
        "min_k": "mean log-probability of the least likely 20 % of the target's tokens, nats per token",
        "zlib_ratio": "bits that the model needs for the whole target over bits that zlib needs for its text; NaN if "
        "part of the target is cut",
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("target",)

    def __init__(self, *, share: float = 0.2) -> None:
        """`share`: of the tokens that `min_k` takes, above 0 and at most 1."""
        self.share = share
        check_range("columns.likelihood", vars(self), share=(1e-6, 1.0))

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        values_by_name = {name: np.full(len(rows), np.nan, dtype=np.float32) for name in self.NAMES}
        for i, (row, readings) in enumerate(zip(rows, passes.target, strict=True)):
            if readings is None:
                continue
            losses = -readings.logprobs.astype(float)
            largest_losses = np.sort(losses)[::-1][: max(1, math.ceil(self.share * len(losses)))]
            values_by_name["nll"][i] = losses.mean()
            values_by_name["nll_max"][i] = losses.max()
            values_by_name["min_k"][i] = -largest_losses.mean()
            if not row.cut_tokens:
                text = plain(target_of(row.example)).encode("utf-8", errors="replace")
                values_by_name["zlib_ratio"][i] = losses.sum() / math.log(2) / (8 * len(zlib.compress(text)))
        return values_by_name
