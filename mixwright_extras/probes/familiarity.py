"""Probe of whether the model has been trained on the held-out items of a task: their likelihood beside fresh items.

Source: min-k% probability of Shi et al. 2023 (arXiv 2310.16789), at 50 %; setting off what a reference model gives is of
    Carlini et al. 2021 (arXiv 2012.07805).
Unit: share of pairs; nats per token
Cost: one forward pass over each item and each fresh item, and of the starting model where there is one.
Blind spot: prompts are read as plain text, so what a trainer masked is not seen: SFT on completions alone does not teach
    prompts. Fresh items that are less usual by themselves than the held-out ones look like training.

Fresh items are of the same task and certainly unread: written or generated after training, or held back from it. If nobody
trained on the items, both are drawn from one population, and the ranks of both are alike. Twins with other numbers are no
null (they were tried twice): untrained models prefer some items to their twins.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import (
    Corpus,
    Example,
    InputError,
    Interval,
    Measurement,
    Observation,
    Passes,
    Probe,
    Z,
    load_learner,
    mean_interval,
    plain,
    read_corpus,
)

if TYPE_CHECKING:
    from mixwright.extend import Learner

NEEDS = ("torch", "transformers")
LEAST_ITEMS = 10
"""Items of a task, and fresh items of it, below which nothing is said."""
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


class Familiarity(Probe):
    """Per task `auroc` and `p`, and with a starting model `fresh_gain`; without fresh rows the mean `likelihood` alone.

    `auroc` is the share of pairs of a held-out and a fresh item in which the held-out one is likelier, `p` that of its rank
    test. With a starting model both are of what it does not explain. `fresh_gain` is how much likelier fresh items became.
    """

    ONCE = True

    def __init__(self, *, fresh: str = "", start: str = "") -> None:
        """Set options.

        Args:
            fresh: file of rows of the same tasks, or `reasoning-gym:...`, that nobody has trained on; empty: none.
            start: checkpoint that the training began with; empty: none.
        """
        self.fresh, self.start = fresh, start

    def check_rows(self, corpus: Corpus) -> None:
        """Raise InputError when no task has ten items and ten fresh ones."""
        if self.fresh:
            read_fresh(self.fresh, corpus)

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError when no task has ten items and ten fresh ones that the corpus lacks."""
        held_out = _texts_by_task(passes.picked(lambda item: bool(item.prompt)))
        if not self.fresh:
            means = {task: mean_interval(np.array(read_texts(passes.learner, texts))) for task, texts in held_out.items()}
            return [
                Measurement("familiarity", task, "likelihood", of.value, of.low, of.high, of.n, "nats per token")
                for task, of in means.items()
                if of is not None
            ]
        measurements = []
        start = load_learner(self.start, batch_size=passes.learner.batch_size) if self.start else None
        for task, fresh in read_fresh(self.fresh, corpus, held_out).items():
            chosen = fresh[: max(len(held_out[task]), LEAST_ITEMS)]
            measurements += _beside_fresh(passes.learner, start, task, held_out[task], chosen)
        return measurements

    def remark(self, measurements: Sequence[Measurement]) -> list[Observation]:
        """Say of each task whether the model has been trained on its held-out items."""
        return note_familiarity(measurements)


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


def _beside_fresh(
    learner: Learner, start: Learner | None, task: str, items: Sequence[str], fresh: Sequence[str]
) -> list[Measurement]:
    """Return the measurements of one task."""
    texts, cut = [*items, *fresh], len(items)
    now = np.array(read_texts(learner, texts))
    then = None if start is None else np.array(read_texts(start, texts))
    found = compare(now[:cut], now[cut:], None if then is None else (then[:cut], then[cut:]))
    values = [
        ("auroc", found.auroc, "share of pairs", 0.5, "items that nobody trained on"),
        ("p", Interval(found.p, found.p, found.p, cut), "p", 0.5, "items that nobody trained on"),
    ]
    if found.fresh_gain is not None:
        values.append(("fresh_gain", found.fresh_gain, "nats per token", 0.0, "the starting model"))
    return [
        Measurement("familiarity", task, name, of.value, of.low, of.high, of.n, unit, null=null, null_of=null_of)
        for name, of, unit, null, null_of in values
    ]


class BesideFresh(NamedTuple):
    """The items of a task beside fresh ones."""

    auroc: Interval
    """Share of pairs of an item and a fresh item in which the item is likelier; 0.5 if nobody trained on the items."""
    p: float
    """One-sided p of the rank test (Mann-Whitney, normal approximation with ties)."""
    fresh_gain: Interval | None
    """Gain in likelihood of the fresh items since the starting model, nats per token; None without one."""


def read(logprobs: Array) -> float:
    """Mean of the less likely half of the log-probabilities of a text's tokens, nats per token."""
    return float(np.sort(logprobs)[: max(1, round(LOWEST_SHARE * len(logprobs)))].mean())


def read_texts(learner: Learner, texts: Sequence[str]) -> list[float]:
    """How likely each text, not empty, is to the model, as plain text after its start token."""
    tokens = [learner.tokenizer(text, add_special_tokens=False)["input_ids"][:MOST_TOKENS] for text in texts]
    plain_learner = learner.with_form(replace(learner.form, template=False, system=None))
    found = dict[int, float]()
    for at, table in plain_learner.distributions([""] * len(texts), tokens):
        found[at] = read(table[np.arange(len(tokens[at])), np.array(tokens[at])].cpu().double().numpy())
    return [found[at] for at in range(len(texts))]


def compare(items: Array, fresh: Array, start: tuple[Array, Array] | None = None) -> BesideFresh:
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
    return BesideFresh(auroc(items, fresh), rank_p(items, fresh), gain)


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


def word_of(p: float, auroc_high: float, gain_low: float | None) -> Word:
    """What became of a task's items: `task seen` needs a starting model, to which fresh items were less likely."""
    if p < LEVEL:
        return "item seen"
    if auroc_high > CLEAN_AUROC:
        return "cannot tell"
    return "task seen" if gain_low is not None and gain_low > 0 else "clean"


def note_familiarity(measurements: Sequence[Measurement]) -> list[Observation]:
    """For each task that the probe familiarity read: whether the model has been trained on the held-out items."""
    rows_by_task: dict[str, dict[str, Measurement]] = {}
    for row in measurements:
        if row.probe == "familiarity":
            rows_by_task.setdefault(row.task, {})[row.name] = row
    notes = []
    for task, rows in rows_by_task.items():
        if (row := rows.get("auroc")) is None:
            continue
        gain = rows.get("fresh_gain")
        word = word_of(rows["p"].value, row.high, None if gain is None else gain.low)
        message = (
            f"{task}: {word}; the model finds the held-out item likelier than the fresh one in {100 * row.value:.0f} % of "
            f"the pairs [{100 * row.low:.0f}, {100 * row.high:.0f}], against 50 % if it was not trained on them"
        )
        is_seen = word == "item seen"
        remedy = "Evaluate on fresh items, unless the fresh items are more unusual anyway." if is_seen else ""
        severity = "warning" if is_seen else "info"
        notes.append(Observation("familiarity", task, severity, row.n, row.n, message, remedy, row.null_of))
    return notes
