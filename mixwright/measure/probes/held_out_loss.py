"""Probe of the loss on held-out targets: the primary outcome of SFT where no answer can be graded.

Source: the loss that SFT trains on, as TRL makes it: prompt, target, end token; mean over the tokens of the target.
Unit: nats per token
Cost: one forward pass over each item.
Blind spot: says how likely the given target is, not whether what the model would write is right or good; items that do not
    fit into the model's context are counted as `too_long` and not read.
"""

from __future__ import annotations

import numpy as np

from mixwright.answers.score import cell_measurements
from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.training_rows import row_tokens
from mixwright.measure.passes import Passes
from mixwright.measure.targets import count_too_long, read_targets
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")


class HeldOutLoss(Probe):
    """`loss` per item, cell and task; nothing is generated and nothing is graded."""

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError when no held-out row with a target fits into the model's context."""
        learner = passes.learner
        items = passes.picked(lambda example: example.target is not None)
        tokens = {item.id: row_tokens(learner, item)[1] for item in items}
        fitting, (logprobs,) = read_targets(learner, items, tokens)
        if not fitting:
            remedy = "Hold out rows with a target (corpus.eval), or use a model with a longer context."
            raise InputError("held-out rows with a target that fit into the model's context", "none", remedy)
        values = {item.id: -float(np.mean(own)) for item, own in zip(fitting, logprobs, strict=True)}
        passes.keep_readings(fitting, loss=values)
        found = cell_measurements("held_out_loss", "loss", "nats per token", fitting, values)
        return [*found, *count_too_long("held_out_loss", items, fitting)]
