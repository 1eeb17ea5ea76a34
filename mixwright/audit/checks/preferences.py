"""Check of preference pairs: what the preferred side does more or less often, and rejected answers that are none.

Source: Shaikh et al. 2024 (arXiv 2311.09144): preferred answers ask less, and models trained on them do; lists are ours.
Unit: pairs of a task in which one side alone shows a behaviour; the odds that it is the preferred one.
Cost: one pass over rows with pairs.
Blind spot: English words; whether a question or a refusal was called for; behaviours in one side's meaning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from mixwright.audit.behaviours import BEHAVIOURS, is_trivial, read_behaviours, without_common_start
from mixwright.audit.rows import EXCERPT_CHARACTERS, max_pairs_listed, note_unlisted
from mixwright.audit.text import count_tokens
from mixwright.contracts import Check
from mixwright.corpus import Corpus, texts
from mixwright.estimates.intervals import sign_test, wilson
from mixwright.records import Observation

MIN_PAIRS = 10
"""Pairs in which one side alone shows a behaviour, below which nothing is said."""
ALPHA = 0.01
"""Probability of as large a difference were the sides exchanged at random, for one task: all behaviours and length."""
TESTS = len(BEHAVIOURS) + 1
LEAST_ODDS = 1.5
"""Odds, or their inverse, from which on a difference is a warning."""
LEAST_LONGER = 0.6
"""Share of pairs in which the same side is longer, from which on it is a warning."""
ALIKE_LENGTH = 1.25
"""Ratio of lengths up to which two sides are alike in length."""
TRIVIAL_SHARE = 0.03
"""Share of rejected answers that are none, from which on it is a warning."""
IN_WORDS = {
    "question": ("asks", "ask less", "ask more"),
    "acknowledgement": ("acknowledges what was said", "acknowledge less", "acknowledge more"),
    "hedge": ("hedges", "hedge less", "hedge more"),
    "refusal": ("refuses", "refuse less", "refuse more"),
    "form": ("has a list, bold letters, a heading or code", "format less", "format more"),
}
"""Behaviour -> what a side does, and what is taught where the preferred side does it less, or more."""
REMEDY = "Balance the pairs (drop some of the commoner kind, or add the other), or train with it and watch the behaviour."


@dataclass
class Sides:
    """Pairs of one task."""

    pairs: int = 0
    """How many."""
    only: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    """Behaviour -> pairs in which one side alone shows it, with which."""
    counts: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """(behaviour, side that alone shows it, alike in length) -> pairs."""
    longer: Counter[str] = field(default_factory=Counter)
    """Side that is longer -> pairs."""
    trivial: list[dict[str, Any]] = field(default_factory=list)
    """Pairs whose rejected answer is none."""
    trivial_count: int = 0
    """How many."""
    single: Counter[str] = field(default_factory=Counter)
    """Behaviour -> pairs alike in length that differ in it alone."""


class Preferences(Check):
    """Looks at training rows with a preferred and a rejected answer."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """A warning for each behaviour that one side shows more often, for length, and for rejected answers that are none.

        One info where there are pairs and nothing of this.
        """
        by_task: dict[str, Sides] = defaultdict(Sides)
        for batch in corpus.batches():
            has_pair = [
                one is not None and other is not None
                for one, other in zip(batch.column("chosen").to_pylist(), batch.column("rejected").to_pylist(), strict=True)
            ]
            plain = (batch.column(name).to_pylist() for name in ("id", "task", "source", "split"))
            sides = (texts(batch, name) for name in ("prompt", "chosen", "rejected"))
            for paired, name, task, source, split, prompt, chosen, rejected in zip(has_pair, *plain, *sides, strict=True):
                if paired and split != "eval":
                    _add(by_task[task], {"id": name, "source": source}, prompt or "", chosen or "", rejected or "")
        observations = [one for task, sides in sorted(by_task.items()) for one in _observe_task(task, sides)]
        if by_task and not observations:
            total = sum(sides.pairs for sides in by_task.values())
            text = "No behaviour tells the preferred from the rejected answers, and neither does length."
            observations.append(Observation("preferences", None, "info", 0, total, text, "", "sides exchanged at random"))
        return observations


def _add(sides: Sides, place: dict[str, Any], prompt: str, chosen: str, rejected: str) -> None:
    own, other = without_common_start(chosen, rejected)
    sides.pairs += 1
    lengths = count_tokens(own), count_tokens(other)
    alike = max(lengths) <= ALIKE_LENGTH * min(lengths)
    if lengths[0] != lengths[1]:
        sides.longer["chosen" if lengths[0] > lengths[1] else "rejected"] += 1
    excerpt = {
        "prompt": prompt[-EXCERPT_CHARACTERS:],
        "chosen": own[:EXCERPT_CHARACTERS],
        "rejected": other[:EXCERPT_CHARACTERS],
    }
    if is_trivial(other, own, prompt):
        sides.trivial_count += 1
        if len(sides.trivial) < max_pairs_listed():
            sides.trivial.append(place | excerpt)
        return
    differing = [
        (name, "chosen" if first else "rejected")
        for name, first, second in zip(BEHAVIOURS, read_behaviours(own), read_behaviours(other), strict=True)
        if first != second
    ]
    for name, side in differing:
        sides.counts[name, side, alike] += 1
        if len(sides.only[name]) < max_pairs_listed():
            sides.only[name].append(place | {"side": side} | excerpt)
    if alike and len(differing) == 1:
        sides.single[differing[0][0]] += 1


def _observe_task(task: str, sides: Sides) -> list[Observation]:
    observations = [one for name in BEHAVIOURS if (one := _observe_behaviour(task, name, sides)) is not None]
    longer, shorter = sides.longer["chosen"], sides.longer["rejected"]
    total = longer + shorter
    if total >= MIN_PAIRS:
        share = max(longer, shorter) / total
        if share >= LEAST_LONGER and TESTS * _two_sided(longer, shorter) < ALPHA:
            side = "preferred" if longer > shorter else "rejected"
            text = f"The {side} answer is the longer one in {share:.0%} of {total} pairs of unequal length."
            text += " Length is what such pairs teach first."
            null = "sides exchanged at random: 50 %"
            remedy = "Match lengths, or use a loss that is normalised by length."
            count = max(longer, shorter)
            observations.append(Observation("preferences", task, "warning", count, total, text, remedy, null))
    if sides.trivial_count >= max(TRIVIAL_SHARE * sides.pairs, 3):
        count = sides.trivial_count
        text = (
            f"{count} of {sides.pairs} rejected answers are none: nearly empty, one sentence again and again, the prompt, "
        )
        text += f"or no prose. They teach little.{note_unlisted(count)}"
        remedy = "Replace them by answers that are nearly right."
        evidence = tuple(sides.trivial)
        observations.append(Observation("preferences", task, "warning", count, sides.pairs, text, remedy, "none", evidence))
    if observations and sides.single:
        parts = ", ".join(f"{name} {count}" for name, count in sides.single.most_common())
        count = sides.single.total()
        text = f"{count} of {sides.pairs} pairs are alike in length and differ in one behaviour alone: {parts}."
        observations.append(Observation("preferences", task, "info", count, sides.pairs, text, ""))
    return observations


def _observe_behaviour(task: str, name: str, sides: Sides) -> Observation | None:
    """A warning where one side alone shows a behaviour more often than the other side does."""
    own, other = (sum(sides.counts[name, side, alike] for alike in (True, False)) for side in ("chosen", "rejected"))
    total = own + other
    if total < MIN_PAIRS or TESTS * _two_sided(own, other) >= ALPHA:
        return None
    odds = (own + 0.5) / (other + 0.5)
    if max(odds, 1 / odds) < LEAST_ODDS:
        return None
    does, less, more = IN_WORDS[name]
    low, high = (float(end) for end in wilson(own, total))
    ends = f"{low / (1 - low):.2g} to {high / (1 - high):.2g}" if high < 1 else f"{low / (1 - low):.2g} or more"
    text = f"The preferred side alone {does} in {own} pairs, the rejected side alone in {other}: odds {odds:.2g} ({ends})"
    same_own, same_other = sides.counts[name, "chosen", True], sides.counts[name, "rejected", True]
    if same_own + same_other >= MIN_PAIRS:
        same = (same_own + 0.5) / (same_other + 0.5)
        text += f", in pairs of like length {same:.2g}"
    text += f". Such pairs teach to {less if odds < 1 else more}.{note_unlisted(total)}"
    evidence = tuple(sides.only[name])
    null = "sides exchanged at random: odds 1"
    return Observation("preferences", task, "warning", max(own, other), sides.pairs, text, REMEDY, null, evidence)


def _two_sided(own: int, other: int) -> float:
    """Exact probability of so uneven a split, were the sides exchanged at random."""
    return min(1.0, 2 * sign_test(max(own, other), min(own, other)))
