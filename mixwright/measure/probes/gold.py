"""Probe of the probability of the gold answer, where one string is right: success without generating, and on more items.

Source: the probability that sampling at temperature 1 writes the gold answer and ends there.
Unit: share
Cost: one forward pass over each item, of up to `times` times as many items as are answered.
Blind spot: the answer's own tokenisation alone counts, without white space in front, at temperature 1, so that a model that
    is right greedily may have little of it; tasks whose grader accepts more than one string are left out.
"""

from __future__ import annotations

import math

import numpy as np

from mixwright.answers.score import cell_measurements
from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.errors import check_range
from mixwright.learner.warmup import completion_tokens
from mixwright.measure.passes import Passes
from mixwright.measure.targets import count_too_long, exact_answer_tasks, read_targets
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")


class Gold(Probe):
    """`gold` per item, cell and task: exp of the summed log-probability of the gold answer and its end token.

    The items that are answered are among those that are read. Nothing where no task's grader accepts one string alone.
    """

    def __init__(self, *, times: int = 4) -> None:
        """`times`: how many times the items per cell that are answered are read at most, at least 1."""
        self.times = times
        check_range("measure.options.gold", vars(self), times=(1, 1000))

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class; an answer that does not fit into the model's context is counted as `too_long` and not read."""
        learner, tasks = passes.learner, exact_answer_tasks(corpus)
        items = passes.picked(lambda item: item.answer is not None and item.task in tasks, self.times)
        answers = {item.id: completion_tokens(learner, (item.answer or "").strip()) for item in items}
        fitting, (logprobs,) = read_targets(learner, items, answers)
        values = {item.id: min(math.exp(math.fsum(own)), 1.0) for item, own in zip(fitting, logprobs, strict=True)}
        passes.keep_readings(fitting, gold_probability=values)
        found = cell_measurements("gold", "gold", "share", fitting, values)
        return [*found, *count_too_long("gold", items, fitting)]
