"""Probe of whether the model has read the prompts of a task before, beside twins of each with other numbers and names.

Source: min-k% probability of Shi et al. 2023 (arXiv 2310.16789) and completion of the half (Golchin & Surdeanu 2023,
    arXiv 2308.08493); the twins as null are our own.
Unit: nats per token; share of tokens
Cost: one forward pass over each item and its twins, and of the starting model where there is one.
Blind spot: prompts are read as plain text, so what a trainer masked is not seen: SFT on completions alone does not teach
    prompts; items without numbers and names have no twin; numbers that belong together look seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.errors import check_range
from mixwright.estimates.intervals import mean_interval
from mixwright.measure.familiarity import Reading, make_twins, read
from mixwright.measure.passes import Passes
from mixwright.records import Measurement, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

NEEDS = ("torch", "transformers")
HEAD_WORDS = 3
"""Words that a text begins with, which are given and not read."""
LEAST_TOKENS, MOST_TOKENS = 8, 512
"""Tokens of a text that are read at least and at most; shorter ones are left out."""
NULL_OF = "the same items with numbers and names of others"


class Familiarity(Probe):
    """`likelihood_lead` and `completed_lead` per item and task: the item's, less the mean of its twins'.

    With a starting model also `twins_gain` per task: how much likelier the twins became, which is the task and no item.
    """

    ONCE = True

    def __init__(self, *, twins: int = 3) -> None:
        """`twins`: of each item."""
        self.twins = twins
        check_range("measure.options.familiarity", vars(self), twins=(1, 100))

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class; nothing of tasks of which fewer than two items have a twin."""
        by_task = defaultdict(list)
        for item in passes.picked(lambda item: bool(item.prompt)):
            by_task[item.task].append(item)
        measurements = []
        for task, items in by_task.items():
            texts = [plain(item.prompt) for item in items]
            twins = make_twins(texts, self.twins, rng)
            kept = [at for at, own in enumerate(twins) if own]
            sides = [read_texts(passes.learner, [text for at in kept for text in (texts[at], *twins[at])])]
            if passes.start is not None and passes.start is not passes.learner:
                sides.append(read_texts(passes.start, [text for at in kept for text in (texts[at], *twins[at])]))
            leads, gains, start = dict[str, Reading](), list[float](), 0
            for at in kept:
                stop = start + 1 + len(twins[at])
                own, *others = [side[start:stop] for side in sides]
                start = stop
                lead = lead_of(own)
                if lead is None:
                    continue
                leads[items[at].id] = lead
                gains += [
                    float(
                        np.mean(
                            [
                                now.likelihood - then.likelihood
                                for now, then in zip(own[1:], side[1:], strict=True)
                                if now and then
                            ]
                        )
                    )
                    for side in others
                ]
            if len(leads) < 2:
                continue
            for name, unit in (("likelihood", "nats per token"), ("completed", "share")):
                values = np.array([getattr(lead, name) for lead in leads.values()])
                mean = mean_interval(values)
                whole = Measurement("familiarity", task, f"{name}_lead", mean.value, mean.low, mean.high, mean.n, unit)
                measurements.append(replace(whole, null=0.0, null_of=NULL_OF))
                measurements += [
                    replace(whole, value=float(value), low=float(value), high=float(value), n=1, example=name_of)
                    for name_of, value in zip(leads, values, strict=True)
                ]
            if gains:
                mean = mean_interval(np.array(gains))
                unit = "nats per token"
                gain = Measurement("familiarity", task, "twins_gain", mean.value, mean.low, mean.high, mean.n, unit)
                measurements.append(replace(gain, null=0.0, null_of="the starting model"))
        return measurements


def lead_of(readings: Sequence[Reading | None]) -> Reading | None:
    """The first reading less the mean of the others; None where the first, or all others, are missing."""
    own, others = readings[0], [one for one in readings[1:] if one is not None]
    if own is None or not others:
        return None
    means = np.mean(np.array(others), axis=0)
    return Reading(own.likelihood - float(means[0]), own.completed - float(means[1]))


def read_texts(learner: Learner, texts: Sequence[str]) -> list[Reading | None]:
    """What the model gives to each text, as plain text; None for those that are too short."""
    plain_learner = learner.with_form(replace(learner.form, template=False, system=None))
    words = [text.split(" ") for text in texts]
    heads = [" ".join(one[:HEAD_WORDS]) for one in words]
    tails = [
        learner.tokenizer(text[len(head) :], add_special_tokens=False)["input_ids"][:MOST_TOKENS]
        for text, head in zip(texts, heads, strict=True)
    ]
    read_now = [at for at, tail in enumerate(tails) if len(tail) >= LEAST_TOKENS and heads[at].strip()]
    found: list[Reading | None] = [None] * len(texts)
    for place, table in plain_learner.distributions([heads[at] for at in read_now], [tails[at] for at in read_now]):
        tail = np.array(tails[read_now[place]])
        choices = table.argmax(-1).cpu().numpy() == tail
        logprobs = table[np.arange(len(tail)), tail].cpu().numpy()
        found[read_now[place]] = read(logprobs, choices)
    return found
