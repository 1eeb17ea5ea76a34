"""Columns of what the prompt contributes to its target: the target's loss without the prompt, and IFD.

Source: IFD, instruction-following difficulty, of Cherry LLM (2308.12032) and Selective Reflection-Tuning (2402.10110): the
perplexity of the target after the prompt over its perplexity alone, exp(nll - nll_alone). The ratio of the losses, which
their code also stores, orders rows otherwise and is not this.
Unit: nats per token; IFD has none, and below 1 the prompt helps
Cost: one forward pass over a start token and the target, shared with reverse_ifd.
Blind spot: grows with shortness and with an unfamiliar format; nearly always below 1 in tuned models. Cherry LLM keeps high
    values, Selective Reflection-Tuning takes a better prompt by a higher one: what is good depends on the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Ifd(Columns):
    """`nll_alone` and `ifd`; NaN where a row has no target, or no prompt to be left out."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "nll_alone": "mean negative log-likelihood of the target's tokens after a start token alone, nats per token",
        "ifd": "exp(nll - nll_alone): perplexity of the target with the prompt over that without",
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("target", "response_only")

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        nll_alone, ifd = np.full((2, len(rows)), np.nan, dtype=np.float32)
        for i, (row, readings, alone_logprobs) in enumerate(zip(rows, passes.target, passes.response_only, strict=True)):
            if readings is None or alone_logprobs is None or not row.example.prompt:
                continue
            mean_logprob = alone_logprobs.mean(dtype=float)
            nll_alone[i] = -mean_logprob
            with np.errstate(over="ignore"):
                ifd[i] = np.exp(mean_logprob - readings.logprobs.mean(dtype=float))
        return {"nll_alone": nll_alone, "ifd": ifd}
