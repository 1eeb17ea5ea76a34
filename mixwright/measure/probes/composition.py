"""Probe of skills used together: does the model compose the skills that it has, or does it need rows that combine them?

Source: skills that are known apart and fail together, Zhao et al. 2025 (arXiv 2508.01191); the words are our own.
Unit: share right, greedy.
Cost: none beside the greedy answers.
Blind spot: the product takes the skills of a row as independent, and as hard as alone: harder rows that combine them look as
    if the combination were lacking, and skills that fail on the same rows hide that it is. Whether a model can learn what
    it does not compose depends on how likely such answers are to it (McCoy et al. 2023, arXiv 2309.13638).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.measure.passes import Passes
from mixwright.records import Measurement

NEEDS = ("torch", "transformers")
LEAST_KNOWN, MOST_LOST = 0.5, 0.2
"""Share right that the skills alone promise together, below which they come first; and what a combination may lose of it."""
DRAWS = 20_000
"""From the posteriors of the shares, under Jeffreys' prior."""
TOGETHER, PROMISED, LOST = "together", "promised", "lost"


class Composition(Probe):
    """Of each combination of skills that rows name: the share right `together`, what the skills alone `promised`, and what
    is `lost`, the difference. Names of measurements are "SKILL > SKILL, together" and so on.
    """

    ONCE = True

    def __init__(self, *, least_items: int = 8) -> None:
        """`least_items`: items of a combination, and of each of its skills alone, below which nothing is said."""
        self.least_items = least_items

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class; rows of one skill are that skill alone, whatever their task."""
        right: dict[tuple[str, ...], list[float]] = defaultdict(list)
        tasks: dict[tuple[str, ...], str] = {}
        for item in passes.items:
            right[item.skills].append(passes.rollouts[item.id].success("greedy"))
            tasks[item.skills] = item.task
        found = list[Measurement]()
        for skills in sorted(right):
            parts = [right.get((skill,), []) for skill in skills]
            if len(skills) > 1 and min(map(len, [right[skills], *parts])) >= self.least_items:
                found += compare_with_parts(tasks[skills], " > ".join(skills), right[skills], parts, rng)
        return found


def compare_with_parts(
    task: str, name: str, together: Sequence[float], parts: Sequence[Sequence[float]], rng: np.random.Generator
) -> list[Measurement]:
    """Compare success on a combination with the product of the success of its skills.

    Args:
        task: of the combination's rows.
        name: of the combination.
        together: 1 for each right answer, 0 for each other.
        parts: the same of each of its skills alone, as often as it uses it.
        rng: of the draws.
    """
    whole, *alone = (rng.beta(sum(own) + 0.5, len(own) - sum(own) + 0.5, DRAWS) for own in (together, *parts))
    promised = np.prod(alone, axis=0)
    items = min(map(len, (together, *parts)))
    right = share_interval(int(sum(together)), len(together))
    found = [(TOGETHER, right.value, right.low, right.high)]
    for what, values in ((PROMISED, promised), (LOST, promised - whole)):
        low, high = np.quantile(values, (0.025, 0.975))
        found.append((what, float(values.mean()), float(low), float(high)))
    return [
        Measurement("composition", task, f"{name}, {what}", value, low, high, items, "share")
        for what, value, low, high in found
    ]


def word_composition(of: Mapping[str, Measurement]) -> str:
    """Say in a few words what to do about a combination.

    Args:
        of: its measurements, by what they are of (`TOGETHER`, `PROMISED`, `LOST`).
    """
    if of[LOST].high < 0 or (of[LOST].high < MOST_LOST and of[TOGETHER].low >= LEAST_KNOWN):
        return "composes them already"
    if of[PROMISED].high < LEAST_KNOWN:
        return "teach the skills alone first"
    if of[LOST].low > 0:
        return "add rows that combine them"
    return "composes them already" if of[LOST].high < MOST_LOST else "cannot tell: more items"


def read_compositions(rows: Sequence[Measurement]) -> dict[str, dict[str, Measurement]]:
    """Sort the measurements of this probe: combination -> what -> measurement."""
    found: dict[str, dict[str, Measurement]] = defaultdict(dict)
    for row in rows:
        if row.probe == "composition":
            name, _, what = row.name.rpartition(", ")
            found[name][what] = row
    return dict(found)
