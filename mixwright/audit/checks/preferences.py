"""Check of preference pairs: what the preferred side does more or less often, and rejected answers that are not real.

Source: Shaikh et al. 2024 (arXiv 2311.09144): preferred answers ask less, and models trained on them do; lists are ours.
Unit: pairs of a task in which one side alone shows a behaviour; the odds that it is the preferred one.
Cost: one pass over at most 40,000 training rows, all where files are written.
Blind spot: English words; whether a question or a refusal was called for; behaviours in one side's meaning.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mixwright.audit.rows import EXCERPT_CHARACTERS, Listing, sample_training_rows
from mixwright.audit.text import common_length, count_tokens, normal_form
from mixwright.behaviours import BEHAVIOURS, IN_WORDS, read_behaviours
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import sign_test
from mixwright.records import Example, Observation, plain

MIN_PAIRS = 10
"""Pairs in which one side alone shows a behaviour, below which nothing is said."""
ALPHA = 0.01
"""Probability of as large a difference were the sides exchanged at random, for one task: all behaviours and length."""
TESTS = len(BEHAVIOURS) + 1
LEAST_ODDS = 1.5
"""Odds, or their inverse, from which on a difference is a warning."""
LEAST_LONGER = 0.6
"""Share of pairs in which the same side is longer, from which on it is a warning."""
TRIVIAL_SHARE = 0.03
"""Share of rejected answers that are none, from which on it is a warning."""
WORSE_SHARE = 0.03
"""Share of pairs whose preferred answer has the lower score, from which on it is a warning."""
REMEDY = "Add pairs of the rarer kind, or remove some of the others."
LENGTH = "length"
"""Name of the longer side beside those of behaviours."""
TRIVIAL, WORSE, TURNED = "trivial", "worse", "turned"
"""Pairs whose rejected answer is none, that their scores contradict, and that another pair contradicts."""
AT_RANDOM = "sides exchanged at random"
FEW_TOKENS, MANY_TOKENS = 4, 12
"""Tokens of an answer that says nothing, where the other side has so many."""
MIN_REPEATS, MOST_DIFFERENT_SHARE = 3, 0.5
"""Sentences from which on an answer repeats itself, where so small a share of them differ."""
MIN_LETTERS_SHARE, MIN_CHARACTERS = 0.6, 12
"""Share of letters and spaces below which a text of so many characters is no prose, where the other side is."""
_SENTENCE = re.compile(r"[^.!?\n]+")


@dataclass
class Sides:
    """Pairs of one task."""

    pairs: int = 0
    """How many."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(behaviour, side that alone shows it) -> pairs; of `LENGTH` the side that is longer."""
    listed: dict[str, Listing] = field(default_factory=lambda: defaultdict(Listing))
    """Behaviour -> pairs in which one side alone shows it, with which; fault -> pairs that have it."""
    score: str = ""
    """Column of the score."""
    preferred: set[int] = field(default_factory=set, repr=False)
    """Hashes of prompt and sides of the pairs so far."""

    def add(self, pair: Example) -> None:
        """Count a row with a preferred and a rejected answer."""
        self.pairs += 1
        prompt, (chosen, rejected) = plain(pair.prompt), without_common_start(plain(pair.chosen), plain(pair.rejected))
        row = {
            "id": pair.id,
            "source": pair.source,
            "prompt": prompt[-EXCERPT_CHARACTERS:],
            "chosen": chosen[:EXCERPT_CHARACTERS],
            "rejected": rejected[:EXCERPT_CHARACTERS],
        }
        own, other = count_tokens(chosen), count_tokens(rejected)
        if own != other:
            self.counts[LENGTH, "chosen" if own > other else "rejected"] += 1
        if (scores := read_scores(pair.extra)) is not None and scores[1] < scores[2]:
            self.score = scores[0]
            self.listed[WORSE].add(row)
        if hash((prompt, rejected, chosen)) in self.preferred:
            self.listed[TURNED].add(row)
        self.preferred.add(hash((prompt, chosen, rejected)))
        if is_trivial(rejected, chosen, prompt):
            self.listed[TRIVIAL].add(row)
            return
        for name, is_own, is_other in zip(BEHAVIOURS, read_behaviours(chosen), read_behaviours(rejected), strict=True):
            if is_own != is_other:
                side = "chosen" if is_own else "rejected"
                self.counts[name, side] += 1
                self.listed[name].add(row | {"side": side})

    def shown_by_one(self, name: str) -> tuple[int, int]:
        """Pairs in which the preferred side alone shows a behaviour, or is longer, and in which the rejected one does."""
        return self.counts[name, "chosen"], self.counts[name, "rejected"]

    def is_one_sided(self, name: str) -> bool:
        """Whether one side shows a behaviour, or is longer, more often than the other by more than chance."""
        own, other = self.shown_by_one(name)
        chance = min(1.0, 2 * sign_test(max(own, other), min(own, other)))  # of so uneven a split
        if own + other < MIN_PAIRS or TESTS * chance >= ALPHA:
            return False
        if name == LENGTH:
            return max(own, other) >= LEAST_LONGER * (own + other)
        odds = (own + 0.5) / (other + 0.5)
        return max(odds, 1 / odds) >= LEAST_ODDS


class Preferences(Check):
    """Looks at training rows with a preferred and a rejected answer."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each behaviour that one side shows more often, for length, and for empty rejected answers.

        Pairs without any of these get a note.
        """
        by_task: dict[str, Sides] = defaultdict(Sides)
        sample = sample_training_rows(corpus, whole=self.whole)
        for row in sample.rows:
            if row.split != "eval" and row.chosen is not None and row.rejected is not None:
                by_task[row.task].add(row)
        observations = [one for task, sides in sorted(by_task.items()) for one in _observe_task(task, sides)]
        if by_task and not observations:
            total = sum(sides.pairs for sides in by_task.values())
            text = "No behaviour separates the preferred from the rejected answers, and length does not either."
            observations.append(Observation("preferences", None, "info", 0, total, text, "", AT_RANDOM))
        return sample.describe(observations)


def _observe_task(task: str, sides: Sides) -> Iterator[Observation]:
    """Yield the warnings of one task."""
    worse, turned, trivial = (sides.listed[fault].count for fault in (WORSE, TURNED, TRIVIAL))
    if worse >= max(WORSE_SHARE * sides.pairs, 3):
        text = f"In {worse} of {sides.pairs} pairs {sides.score} is below {sides.score.replace('chosen', 'rejected')}."
        remedy = "Exchange the sides, or the scores; leave out pairs that the scores contradict."
        yield _warn(task, sides, WORSE, worse, text, remedy, "none")
    if turned:
        text = f"{turned} of {sides.pairs} pairs prefer the answer that another pair of the same prompt rejects."
        yield _warn(task, sides, TURNED, turned, text, "Keep one of each two, or none.", "none")
    for name in filter(sides.is_one_sided, BEHAVIOURS):
        own, other = sides.shown_by_one(name)
        does, less, more = IN_WORDS[name]
        text = f"Only the preferred answer {does} in {own} pairs, only the rejected one in {other}. "
        text += f"Such pairs teach to {less if own < other else more}."
        yield _warn(task, sides, name, max(own, other), text, REMEDY, f"{AT_RANDOM}: odds 1")
    if sides.is_one_sided(LENGTH):
        own, other = sides.shown_by_one(LENGTH)
        count, total, side = max(own, other), own + other, "preferred" if own > other else "rejected"
        text = f"The {side} answer is the longer one in {count / total:.0%} of {total} pairs of unequal length, "
        text += "so length is what they teach first."
        remedy = "Match lengths, or use a loss that is normalized by length."
        yield Observation("preferences", task, "warning", count, total, text, remedy, f"{AT_RANDOM}: 50 %")
    if trivial >= max(TRIVIAL_SHARE * sides.pairs, 3):
        text = f"{trivial} of {sides.pairs} rejected answers are not real answers: nearly empty, one sentence repeated, "
        text += "or the prompt. They teach little."
        yield _warn(task, sides, TRIVIAL, trivial, text, "Replace them with answers that are nearly right.", "none")


def _warn(task: str, sides: Sides, listed: str, count: int, text: str, remedy: str, null: str) -> Observation:
    """Return a warning with the pairs that are listed under a name."""
    rows = tuple(sides.listed[listed].rows)
    return Observation("preferences", task, "warning", count, sides.pairs, text, remedy, null, rows)


def read_scores(columns: Mapping[str, Any]) -> tuple[str, float, float] | None:
    """Find two columns of numbers whose names differ in `chosen` and `rejected` alone, such as `score_chosen`."""
    for name, value in columns.items():
        other = columns.get(name.replace("chosen", "rejected"))
        if "chosen" in name and isinstance(value, int | float) and isinstance(other, int | float):
            return name, value, other
    return None


def without_common_start(first: str, second: str) -> tuple[str, str]:
    """Two texts without what both begin with, up to the last line that they share: the dialogue that led to two answers."""
    end = first.rfind("\n", 0, common_length(first, second)) + 1
    return first[end:], second[end:]


def is_trivial(answer: str, other: str, prompt: str) -> bool:
    """Whether an answer is none beside the other one: nearly empty, one sentence repeated, the prompt, or no prose."""
    if count_tokens(answer) < FEW_TOKENS and count_tokens(other) >= MANY_TOKENS:
        return True
    if prompt and normal_form(answer) == normal_form(prompt):
        return True
    sentences = [sentence.strip().casefold() for sentence in _SENTENCE.findall(answer) if sentence.strip()]
    if len(sentences) >= MIN_REPEATS and len({*sentences}) <= MOST_DIFFERENT_SHARE * len(sentences):
        return True
    return _letters_share(answer) < MIN_LETTERS_SHARE <= _letters_share(other) and len(answer) >= MIN_CHARACTERS


def _letters_share(text: str) -> float:
    return sum(character.isalpha() or character.isspace() for character in text) / max(len(text), 1)
