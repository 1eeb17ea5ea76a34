"""Columns of what the target tells about its prompt: the prompt's loss after the target, and reversed IFD.

Source: r-IFD of Selective Reflection-Tuning (2402.10110): perplexity of the prompt given the target over its perplexity
alone; low where the target fits this prompt and no other. The source asks for the prompt in words; here the target, its end
token and the prompt simply follow each other, which needs no instruct model. The prompt's first token, before which there is
nothing in its own pass, is left out of both.
Unit: nats per token; r-IFD has none
Cost: a forward pass over start token, target and prompt, shared with ifd; the prompt's own loss is read off the forward pass
    over prompt and target.
Blind spot: tokens of a fixed template dilute it, and prompts that are read after a target are unusual to a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class ReverseIfd(Columns):
    """`nll_prompt`, `nll_prompt_alone` and `r_ifd`; NaN without a target, and for prompts of one token or cut ones."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "nll_prompt": "mean negative log-likelihood of the prompt's tokens from the second on, after the target, in nats",
        "nll_prompt_alone": "the same without the target, in nats",
        "r_ifd": "exp(nll_prompt - nll_prompt_alone): perplexity of the prompt with the target over that without",
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("prompt", "prompt_given_target")

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        values_by_name = {name: np.full(len(rows), np.nan, dtype=np.float32) for name in self.NAMES}
        for i, (alone_logprobs, given_target_logprobs) in enumerate(
            zip(passes.prompt, passes.prompt_given_target, strict=True)
        ):
            if alone_logprobs is None or given_target_logprobs is None:
                continue
            nll_alone, nll_given_target = -alone_logprobs.mean(dtype=float), -given_target_logprobs.mean(dtype=float)
            values_by_name["nll_prompt"][i], values_by_name["nll_prompt_alone"][i] = nll_given_target, nll_alone
            with np.errstate(over="ignore"):
                values_by_name["r_ifd"][i] = np.exp(nll_given_target - nll_alone)
        return values_by_name
