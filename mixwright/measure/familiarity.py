"""Whether a model has read items before: how likely they are to it, beside fresh items of the same task.

Fresh items are of the same task and certainly unread: written or generated after training, or held back from it. If nobody
trained on the items, both are drawn from one population, and the ranks of both are alike. Twins with other numbers are no
null (they were tried twice): untrained models prefer some items to their twins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import Z, mean_interval
from mixwright.records import Interval

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

Word = Literal["item seen", "task seen", "clean", "cannot tell"]
LOWEST_SHARE = 0.5
"""Share of a text's tokens, the least likely ones, that its likelihood is read from."""
MOST_TOKENS = 256
"""Tokens of a text that are read."""
LEVEL = 0.01
"""One-sided p of the rank test below which items are called seen."""
CLEAN_AUROC = 0.7
"""AUROC that must be excluded before items are called clean: about what three epochs leave in hard tasks."""
Array = NDArray[np.float64]


class Reading(NamedTuple):
    """What a model gives to a text."""

    likelihood: float
    """Mean log-probability of the less likely half of the tokens, nats per token."""
    completed: float
    """1 where every token of the second half is the model's first choice after those before it, else 0."""


@dataclass(frozen=True)
class Familiarity:
    """The items of a task beside fresh ones."""

    auroc: Interval
    """Share of pairs of an item and a fresh item in which the item is likelier; 0.5 if nobody trained on the items."""
    p: float
    """One-sided p of the rank test (Mann-Whitney, normal approximation with ties)."""
    fresh_gain: Interval | None
    """Gain in likelihood of the fresh items since the starting model, nats per token; None without one."""


def read(logprobs: Array, is_first_choice: NDArray[np.bool_]) -> Reading:
    """Of the log-probabilities of a text's tokens, and whether each is the likeliest; arrays of shape (tokens,)."""
    lowest = np.sort(logprobs)[: max(1, round(LOWEST_SHARE * len(logprobs)))]
    return Reading(float(lowest.mean()), float(is_first_choice[len(is_first_choice) // 2 :].all()))


def read_texts(learner: Learner, texts: Sequence[str]) -> list[Reading]:
    """What the model gives to each text, not empty, as plain text after its start token."""
    tokens = [learner.tokenizer(text, add_special_tokens=False)["input_ids"][:MOST_TOKENS] for text in texts]
    plain_learner = learner.with_form(replace(learner.form, template=False, system=None))
    found = dict[int, Reading]()
    for at, table in plain_learner.distributions([""] * len(texts), tokens):
        row = np.array(tokens[at])
        logprobs = table[np.arange(len(row)), row].cpu().double().numpy()
        found[at] = read(logprobs, table.argmax(-1).cpu().numpy() == row)
    return [found[at] for at in range(len(texts))]


def compare(items: Array, fresh: Array, start: tuple[Array, Array] | None = None) -> Familiarity:
    """Likelihoods of items beside those of fresh items.

    Args:
        items: shape (items,).
        fresh: shape (fresh,).
        start: both under the starting model. What it says of a text is then taken away, at the slope that it has among
            the fresh items.
    """
    gain = None
    if start is not None:
        items_then, fresh_then = start
        slope = _slope(fresh_then, fresh)
        gain = mean_interval(fresh - fresh_then)
        items, fresh = items - slope * items_then, fresh - slope * fresh_then
    return Familiarity(auroc(items, fresh), rank_p(items, fresh), gain)


def _slope(then: Array, now: Array) -> float:
    """Slope of the regression, within 0..1."""
    spread = float(np.var(then))
    return min(max(float(np.mean((then - then.mean()) * (now - now.mean()))) / spread, 0.0), 1.0) if spread else 0.0


def auroc(first: Array, second: Array) -> Interval:
    """Share of pairs in which the first is larger, ties counting half, with a 95 % interval (DeLong et al. 1988)."""
    wins = (first[:, None] > second) + 0.5 * (first[:, None] == second)
    value = float(wins.mean())
    variance = wins.mean(axis=1).var(ddof=1) / len(first) + wins.mean(axis=0).var(ddof=1) / len(second)
    half = Z * math.sqrt(variance)
    return Interval(value, max(0.0, value - half), min(1.0, value + half), len(first))


def rank_p(first: Array, second: Array) -> float:
    """One-sided p that the first are larger by no more than chance (Mann & Whitney 1947), normal, with ties."""
    values = np.concatenate([first, second])
    n, m, total = len(first), len(second), len(values)
    ties = np.unique(values, return_counts=True)[1].astype(float)
    variance = n * m / 12 * (total + 1 - float((ties**3 - ties).sum()) / (total * (total - 1)))
    above = float(((first[:, None] > second) + 0.5 * (first[:, None] == second)).sum()) - n * m / 2
    return 0.5 * math.erfc((above - 0.5) / math.sqrt(2 * variance)) if variance else 1.0


def word_of(found: Familiarity) -> Word:
    """What became of a task's items: `task seen` needs a starting model, to which fresh items were less likely."""
    if found.p < LEVEL:
        return "item seen"
    if found.auroc.high > CLEAN_AUROC:
        return "cannot tell"
    return "task seen" if found.fresh_gain is not None and found.fresh_gain.low > 0 else "clean"
