"""Probe of the distance from the starting model: KL(now || start) on the model's own samples.

Source: exact over the vocabulary at every token of the sampled completions, at temperature 1; forgetting grows with it,
2509.04259.
Unit: nats per token
Cost: one forward pass of each model over the sampled completions; the current model's is shared with entropy.
Blind spot: sees only texts the current model writes on the measured prompts; at a sampling temperature other than 1
it is no longer the KL of whole completions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.measure.passes import Passes
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")


class Drift(Probe):
    """`kl` per cell, per task and over all (`*`); nothing without a starting model. Independent of the trainer's beta."""

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError when the starting model has another tokenizer."""
        if passes.start is None:
            return []
        rows = passes.per_token("drift", "kl", lambda read: np.zeros(0) if read.divergence is None else read.divergence)
        return [replace(row, null=0.0, null_of="the starting model itself") for row in rows]
