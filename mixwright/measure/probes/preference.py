"""Probe of preference accuracy on held-out pairs: the primary outcome of DPO.

Source: accuracy and margin as TRL's DPOTrainer logs them, over whole completions with their end token. The change of a
    margin against the starting model is DPO's implicit reward margin divided by its beta.
Unit: share; nats
Cost: two forward passes per pair, of prompt and chosen, prompt and rejected.
Blind spot: longer completions are less likely, so a pair can be right by length alone; accuracy does not say that the model
    would write the chosen answer, nor that it is good. Pairs that do not fit into the context are counted as `too_long`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixwright.answers.score import cell_measurements
from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.training_rows import completion_tokens
from mixwright.measure.passes import Passes
from mixwright.measure.targets import count_too_long, read_targets
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")
COIN_ACCURACY = 0.5
"""Accuracy of a coin, which is the chance level of a pair."""


class Preference(Probe):
    """`preference` (1 where the chosen answer is likelier, 0.5 for a tie) and `margin`, per item, cell and task."""

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError when no held-out pair fits into the model's context."""
        learner = passes.learner
        items = passes.picked(lambda example: example.chosen is not None and example.rejected is not None)
        tokens = [
            {item.id: completion_tokens(learner, getattr(item, side) or "") for item in items}
            for side in ("chosen", "rejected")
        ]
        fitting, sides = read_targets(learner, items, *tokens)
        if not fitting:
            remedy = "Hold out preference pairs (corpus.eval), or use a model with a longer context."
            raise InputError("held-out pairs of chosen and rejected that fit into the model's context", "none", remedy)
        margins = {item.id: sum(chosen) - sum(rejected) for item, chosen, rejected in zip(fitting, *sides, strict=True)}
        wins = {name: (1 + float(np.sign(margin))) / 2 for name, margin in margins.items()}
        accuracy = cell_measurements("preference", "preference", "share", fitting, wins)
        found = [replace(row, null=COIN_ACCURACY, null_of="a coin") for row in accuracy]
        found += cell_measurements("preference", "margin", "nats", fitting, margins)
        chances = dict.fromkeys(wins, COIN_ACCURACY)
        passes.keep_readings(fitting, preference=wins, margin=margins, chance=chances)
        return [*found, *count_too_long("preference", items, fitting)]
