"""Probe of the entropy of the next-token distribution along the model's own samples.

Source: exact from the logits at temperature 1, at every token of the sampled completions, end token included; entropy
collapse as the price of reward, 2505.22617.
Unit: nats per token
Cost: one forward pass over the sampled completions, shared with drift.
Blind spot: says how sure the model is, not whether it is right; which positions are visited depends on the sampling
temperature.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.measure.passes import Passes
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")


class Entropy(Probe):
    """`entropy` per cell, per task and over all (`*`); the null is the logarithm of the vocabulary."""

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class."""
        null = math.log(passes.learner.model.config.get_text_config().vocab_size)
        rows = passes.per_token("entropy", "entropy", lambda readings: readings.entropy)
        return [replace(row, null=null, null_of="every token equally likely") for row in rows]
