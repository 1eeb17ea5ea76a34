"""Check for held-out items that are in train in other words, in another language, or with other names and numbers.

Source: Li & Flanigan 2023 (arXiv 2312.16337) for task seen against item seen; the views and their null are our own.
Unit: held-out rows that no other check lists as copies, of a task's.
Cost: reads train twice more; about 8 KB per held-out row, 140 us of one core per train row and pass where rows are short.
Blind spot: copies that keep no rare word, name, number or brief answer; items of which train has several wordings; pairs
    of words that 128 held-out rows share, so templates in large files of few words; tasks of under 300 rows; options in
    another order; turns of chats, which are compared as one text; what follows 6,000 characters.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from mixwright.extend import Check, Corpus, Observation, Reader, Severity, chance_explains, format_expected, has_held_out
from mixwright_extras.likeness.features import ANCHORS, TEMPLATE, WORDS, visible
from mixwright_extras.likeness.reworded import LEAST_COMPARED_ROWS, Likenesses, find_likenesses

DEFAULT = True
SHARED_WORDS_SHOWN = 8
"""Words that both rows have, shown with each pair."""
WHY = {WORDS: "same answer, like words", ANCHORS: "same answer, names and numbers", TEMPLATE: "same template"}
_WORD = re.compile(r"\w+")


class Judged(NamedTuple):
    """One way to be in train in other words."""

    views: tuple[int, ...]
    """In which it shows."""
    words: str
    """What such items do."""
    severity: Severity
    remedy: str


JUDGED = (
    Judged(
        (WORDS, ANCHORS),
        "seem to be in train in other words or another language.",
        "error",
        "Check the pairs, and remove copies from train or from eval.",
    ),
    Judged(
        (TEMPLATE,),
        "match a training row except for names, numbers or things: the template was seen, not the item.",
        "warning",
        "Report that these templates were trained on, or hold out items with other templates.",
    ),
)


class Reworded(Check):
    """Compares held-out rows with all train rows, without regard to order, beside what is normal within the task."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Report items and templates that train has in other words, per task of eval."""
        if not has_held_out(corpus):
            text = "There is no eval split, so reworded items were not checked."
            return [Observation("reworded", None, "info", 0, 0, text, "")]
        found, reader = find_likenesses(corpus), Reader(corpus, whole=self.whole)
        observations = []
        for one in filter(lambda one: one.can_tell, found):
            words, anchors, template = (one.is_told(view) for view in (WORDS, ANCHORS, TEMPLATE))
            views = np.where(words, WORDS, np.where(anchors, ANCHORS, TEMPLATE))
            for judged, is_told in zip(JUDGED, (words | anchors, template & ~words & ~anchors), strict=True):
                if is_told.any():
                    observations.append(_observe(one, reader, np.flatnonzero(is_told), views, judged))
        told = {observation.task for observation in observations}
        return [*observations, *_observe_rest([one for one in found if one.task not in told])]


def _observe(one: Likenesses, reader: Reader, items: np.ndarray, views: np.ndarray, judged: Judged) -> Observation:
    """Report these items, as a note if chance explains as many."""
    expected, severity, remedy = one.expected(judged.views), judged.severity, judged.remedy
    text = f"{len(items)} of {len(one.numbers)} held-out items {judged.words}"
    if chance_explains(len(items), expected):
        severity, remedy, text = "info", "", text + " Chance can explain them."
    whose = "all tasks" if one.of_other_tasks else "its kind"
    null = f"by chance {format_expected(expected)} rows, as often as train rows of {whose} have so near a neighbour"
    evidence = _evidence(one, reader, items, views)
    return Observation("reworded", one.task, severity, len(items), len(one.numbers), text, remedy, null, evidence)


def _evidence(one: Likenesses, reader: Reader, items: np.ndarray, views: np.ndarray) -> tuple[dict[str, Any], ...]:
    """Return the pairs, each with the reason."""
    items = items[: reader.max_evidence]
    partners = one.partner[views[items], items]
    pairs = list(zip(one.numbers[items].tolist(), partners.tolist(), strict=True))
    texts = {row.number: visible(row.prompt) for row in reader.rows(np.unique(np.array(pairs, np.int64)))}
    return tuple(
        pair
        | {
            "why": WHY[view],
            "likeness": round(float(one.likeness[view, item]), 1),
            "told from": round(one.threshold(view), 1),
            "shared": shared_words(*(texts[number] for number in numbers)),
        }
        for pair, numbers, item, view in zip(
            reader.pair_evidence(pairs, "eval_", "train_", near=True),
            pairs,
            items.tolist(),
            views[items].tolist(),
            strict=True,
        )
    )


def shared_words(first: str, second: str) -> str:
    """Return some words of both: numbers and capitals first, then long ones.

    Examples:
        >>> shared_words("Mia sold 48 clips in April.", "In April 48 clips were sold by Mia.")
        '48 April Mia clips sold'
    """
    both = set(_WORD.findall(first)) & set(_WORD.findall(second))
    order = sorted(both, key=lambda word: (not word[0].isdigit(), not word[0].isupper(), -len(word), word))
    return " ".join([word for word in order if len(word) > 2 or word[0].isdigit()][:SHARED_WORDS_SHOWN])


def _observe_rest(found: list[Likenesses]) -> list[Observation]:
    """Report the tasks without a finding, and those with too few rows."""
    observations = []
    clean, few = [one for one in found if one.can_tell], [one for one in found if not one.can_tell]
    if clean:
        total = sum(len(one.numbers) for one in clean)
        text = f"No held-out item of {len(clean)} task{'s' if len(clean) > 1 else ''} was found in train in other words, "
        text += f"nor its template beyond what is normal there: {total} were compared."
        observations.append(Observation("reworded", None, "info", 0, total, text, ""))
    if few:
        text = (
            f"Reworded copies were not checked, because fewer than {LEAST_COMPARED_ROWS} rows of train show what is normal."
        )
        observations.append(Observation("reworded", None, "info", 0, 0, text, ""))
    return observations
