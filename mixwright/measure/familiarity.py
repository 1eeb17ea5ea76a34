"""Whether a model has read items before: each item beside twins of it with other numbers and names.

The twins are the null: an easy text has easy twins. Their numbers and names are those of other items of the task, with as
many digits, so that round numbers and common names are as common in both.
Left out on purpose: texts without numbers and names, which have no twin.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from mixwright.records import Interval

Word = Literal["clean", "task seen", "item seen", "cannot tell"]
LOWEST_SHARE = 0.2
"""Share of a text's tokens, the least likely ones, that its likelihood is read from."""
CLEAN_NATS = 0.1
"""Lead over the twins, nats per token, that must be excluded before items are called clean."""
_SLOT = re.compile(r"\d+|[^\W\d_]+")
_NAME = re.compile(r"(?<=[^\W_] )[A-Z][a-z]+|(?<=[^\W_][,;] )[A-Z][a-z]+")


class Reading(NamedTuple):
    """What a model gives to a text."""

    likelihood: float
    """Mean log-probability of the least likely tokens, nats."""
    completed: float
    """Share of the tokens of the second half that are the model's first choice, 0..1."""


def read(logprobs: np.ndarray, is_first_choice: np.ndarray) -> Reading:
    """Of the log-probabilities of a text's tokens, and whether each is the likeliest; arrays of shape (tokens,)."""
    lowest = np.sort(logprobs)[: max(1, round(LOWEST_SHARE * len(logprobs)))]
    return Reading(float(lowest.mean()), float(is_first_choice[len(is_first_choice) // 2 :].mean()))


def make_twins(texts: Sequence[str], count: int, rng: np.random.Generator) -> list[list[str]]:
    """For each text of a task `count` different ones with numbers and names of other texts; fewer where there are none."""
    names = {name for text in texts for name in _NAME.findall(text)}
    pool: dict[str, list[str]] = defaultdict(list)
    slots = [{slot: _kind(slot) for slot in _SLOT.findall(text) if slot[0].isdigit() or slot in names} for text in texts]
    for own in slots:
        for slot, kind in own.items():
            pool[kind].append(slot)
    twins = []
    for text, own in zip(texts, slots, strict=True):
        found: dict[str, None] = {}
        for _ in range(3 * count):
            if len(found) < count and own:
                found[_refill(text, own, pool, rng)] = None
        twins.append([twin for twin in found if twin != text])
    return twins


def _kind(slot: str) -> str:
    return f"{len(slot)} digits" if slot[0].isdigit() else "name"


def _refill(text: str, own: dict[str, str], pool: dict[str, list[str]], rng: np.random.Generator) -> str:
    """The text with another filling of each slot; the same number or name gets the same one."""
    filling: dict[str, str] = {}
    for slot, kind in own.items():
        others = [one for one in pool[kind] if one not in own and one not in filling.values()]
        filling[slot] = others[int(rng.integers(len(others)))] if others else slot
    return _SLOT.sub(lambda found: filling.get(found.group(), found.group()), text)


def word_of(lead: Interval, task_gain: Interval | None) -> Word:
    """What became of a task's items.

    Args:
        lead: likelihood of the items over that of their twins, nats per token.
        task_gain: gain of the twins' likelihood since the starting model; None without one.
    """
    if lead.low > 0:
        return "item seen"
    if lead.high > CLEAN_NATS:
        return "cannot tell"
    if task_gain is None:
        return "clean"
    return "task seen" if task_gain.low > 0 else "clean"
