"""Probe of whether the model has been trained on the held-out items of a task: their likelihood beside fresh items.

Source: min-k% probability of Shi et al. 2023 (arXiv 2310.16789), at 50 %; setting off what a reference model gives is of
    Carlini et al. 2021 (arXiv 2012.07805), completing the second half of Golchin & Surdeanu 2023 (arXiv 2308.08493).
Unit: share of pairs; nats per token; share of items
Cost: one forward pass over each item and each fresh item, and of the starting model where there is one.
Blind spot: prompts are read as plain text, so what a trainer masked is not seen: SFT on completions alone does not teach
    prompts. Fresh items that are less usual by themselves than the held-out ones look like training.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixwright.contracts import Probe
from mixwright.corpus import Corpus, read_corpus
from mixwright.errors import InputError
from mixwright.estimates.intervals import share_interval
from mixwright.measure.familiarity import compare, read_texts
from mixwright.measure.passes import Passes
from mixwright.records import Example, Interval, Measurement, plain

NEEDS = ("torch", "transformers")
LEAST_ITEMS = 10
"""Items of a task, and fresh items of it, below which nothing is said."""


class Familiarity(Probe):
    """Per task `auroc`, `p` and `completed`, and with a starting model `fresh_gain`; without fresh rows `completed` alone.

    `auroc` is the share of pairs of a held-out and a fresh item in which the held-out one is likelier, `p` that of its rank
    test. With a starting model both are of what it does not explain. `completed` is the share of items whose second half
    the model writes to the token, its null that of fresh items. `fresh_gain` is how much likelier fresh items became.
    """

    ONCE = True

    def __init__(self, *, fresh: str = "") -> None:
        """`fresh`: file of rows of the same tasks, or `reasoning-gym:...`, that nobody has trained on; empty: none."""
        self.fresh = fresh

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError when no task has ten items and ten fresh ones that the corpus lacks."""
        held_out = _texts_by_task(passes.picked(lambda item: bool(item.prompt)))
        if not self.fresh:
            readings = {task: np.array(read_texts(passes.learner, texts)) for task, texts in held_out.items()}
            return [_completed(task, values) for task, values in readings.items()]
        measurements = []
        for task, fresh in read_fresh(self.fresh, corpus, held_out).items():
            measurements += _beside_fresh(passes, task, held_out[task], fresh[: max(len(held_out[task]), LEAST_ITEMS)])
        return measurements


def read_fresh(file: str, corpus: Corpus, held_out: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[str]]:
    """Fresh prompts that a corpus lacks, by task with enough of them and of held-out items.

    Args:
        file: rows that nobody trained on.
        corpus: with the held-out items.
        held_out: prompts by task that are measured; None takes all of the corpus.

    Raises:
        InputError: no such file, or no task has enough of both.
    """
    known = _texts_by_task(corpus)
    counts, all_known = known if held_out is None else held_out, {text for texts in known.values() for text in texts}
    found: dict[str, list[str]] = {}
    for task, texts in sorted(_texts_by_task(read_corpus(file)).items()):
        fresh = [text for text in texts if text not in all_known]
        if min(len(counts.get(task, ())), len(fresh)) >= LEAST_ITEMS:
            found[task] = fresh
    if not found:
        expected = f"a task with {LEAST_ITEMS} held-out items, and {LEAST_ITEMS} fresh items that are not in the corpus"
        raise InputError(expected, "none", "Add rows, and use the same task names in both files.", file=file)
    return found


def _texts_by_task(rows: Iterable[Example]) -> dict[str, list[str]]:
    """Different prompts by task, those without a visible character left out."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        if (text := plain(row.prompt)).strip():
            found[row.task][text] = None
    return {task: list(texts) for task, texts in found.items()}


def _completed(task: str, values: NDArray[np.float64], null: float | None = None) -> Measurement:
    share = share_interval(values[:, 1].sum(), len(values))
    row = Measurement("familiarity", task, "completed", share.value, share.low, share.high, share.n, "share", null=null)
    return row if null is None else replace(row, null_of="fresh items")


def _beside_fresh(passes: Passes, task: str, items: Sequence[str], fresh: Sequence[str]) -> list[Measurement]:
    """The rows of one task."""
    start = passes.start if passes.start is not passes.learner else None
    texts, cut = [*items, *fresh], len(items)
    now = np.array(read_texts(passes.learner, texts))
    then = None if start is None else np.array(read_texts(start, texts))[:, 0]
    found = compare(now[:cut, 0], now[cut:, 0], None if then is None else (then[:cut], then[cut:]))
    values = [
        ("auroc", found.auroc, "share of pairs", 0.5, "items that nobody trained on"),
        ("p", Interval(found.p, found.p, found.p, cut), "p", 0.5, "items that nobody trained on"),
    ]
    if found.fresh_gain is not None:
        values.append(("fresh_gain", found.fresh_gain, "nats per token", 0.0, "the starting model"))
    rows = [
        Measurement("familiarity", task, name, of.value, of.low, of.high, of.n, unit, null=null, null_of=null_of)
        for name, of, unit, null, null_of in values
    ]
    return [*rows, _completed(task, now[:cut], float(now[cut:, 1].mean()))]
