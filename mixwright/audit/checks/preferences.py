"""Check of preference pairs: what the preferred side does more or less often, and rejected answers that are not real.

Source: Shaikh et al. 2024 (arXiv 2311.09144): preferred answers ask less, and models trained on them do; lists are ours.
Unit: pairs of a task in which one side alone shows a behaviour; the odds that it is the preferred one.
Cost: one pass over at most 40,000 training rows, all where files are written.
Blind spot: English words; whether a question or a refusal was called for; behaviours in one side's meaning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from mixwright.audit.pairs import Pair, read_pairs
from mixwright.audit.rows import EXCERPT_CHARACTERS, Listing, sample_training_rows
from mixwright.behaviours import BEHAVIOURS, IN_WORDS
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import sign_test
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
TRIVIAL_SHARE = 0.03
"""Share of rejected answers that are none, from which on it is a warning."""
WORSE_SHARE = 0.03
"""Share of pairs whose preferred answer has the lower score, from which on it is a warning."""
REMEDY = "Add pairs of the rarer kind, or remove some of the others."
LENGTH = "length"
"""Name of the longer side beside those of behaviours."""


@dataclass
class Sides:
    """Pairs of one task."""

    pairs: int = 0
    """How many."""
    only: dict[str, Listing] = field(default_factory=lambda: defaultdict(Listing))
    """Behaviour -> pairs in which one side alone shows it, with which."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(behaviour, side that alone shows it) -> pairs."""
    longer: Counter[str] = field(default_factory=Counter)
    """Side that is longer -> pairs."""
    trivial: Listing = field(default_factory=Listing)
    """Pairs whose rejected answer is none."""
    worse: Listing = field(default_factory=Listing)
    """Pairs whose preferred answer has the lower score."""
    score: str = ""
    """Column of the score."""
    preferred: set[int] = field(default_factory=set, repr=False)
    """Hashes of prompt and sides of the pairs so far."""
    reversed: Listing = field(default_factory=Listing)
    """Pairs of which another one prefers the other side."""

    def add(self, pair: Pair) -> None:
        """Count a pair."""
        self.pairs += 1
        if pair.longer:
            self.longer[pair.longer] += 1
        excerpt = {
            "prompt": pair.prompt[-EXCERPT_CHARACTERS:],
            "chosen": pair.chosen[:EXCERPT_CHARACTERS],
            "rejected": pair.rejected[:EXCERPT_CHARACTERS],
        }
        place = {"id": pair.id, "source": pair.source}
        if pair.scores is not None and pair.scores[1] < pair.scores[2]:
            self.score = pair.scores[0]
            self.worse.add(place | excerpt)
        if hash((pair.prompt, pair.rejected, pair.chosen)) in self.preferred:
            self.reversed.add(place | excerpt)
        self.preferred.add(hash((pair.prompt, pair.chosen, pair.rejected)))
        if pair.has_no_answer:
            self.trivial.add(place | excerpt)
            return
        for name, side in pair.differing:
            self.counts[name, side] += 1
            self.only[name].add(place | {"side": side} | excerpt)

    def shown_by_one(self, name: str) -> tuple[int, int]:
        """Pairs in which the preferred side alone shows a behaviour, and in which the rejected one does."""
        return self.counts[name, "chosen"], self.counts[name, "rejected"]

    def is_one_sided(self, name: str) -> bool:
        """Whether one side shows a behaviour more often than the other by more than chance."""
        own, other = self.shown_by_one(name)
        if own + other < MIN_PAIRS or TESTS * _two_sided(own, other) >= ALPHA:
            return False
        odds = (own + 0.5) / (other + 0.5)
        return max(odds, 1 / odds) >= LEAST_ODDS

    @property
    def is_longer_on_one_side(self) -> bool:
        """Whether the same side is the longer one more often than by chance."""
        longer, shorter = self.longer["chosen"], self.longer["rejected"]
        if longer + shorter < MIN_PAIRS or max(longer, shorter) / (longer + shorter) < LEAST_LONGER:
            return False
        return TESTS * _two_sided(longer, shorter) < ALPHA


class Preferences(Check):
    """Looks at training rows with a preferred and a rejected answer."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each behaviour that one side shows more often, for length, and for empty rejected answers.

        Pairs without any of these get a note.
        """
        by_task: dict[str, Sides] = defaultdict(Sides)
        sample = sample_training_rows(corpus, whole=self.whole)
        for pair in read_pairs(sample.rows):
            by_task[pair.task].add(pair)
        observations = [one for task, sides in sorted(by_task.items()) for one in _observe_task(task, sides)]
        if by_task and not observations:
            total = sum(sides.pairs for sides in by_task.values())
            text = "No behaviour separates the preferred from the rejected answers, and length does not either."
            observations.append(Observation("preferences", None, "info", 0, total, text, "", "sides exchanged at random"))
        return sample.describe(observations)


def _observe_task(task: str, sides: Sides) -> list[Observation]:
    observations = _observe_contradictions(task, sides)
    observations += [one for name in BEHAVIOURS if (one := _observe_behaviour(task, name, sides)) is not None]
    longer, shorter = sides.longer["chosen"], sides.longer["rejected"]
    total = longer + shorter
    if sides.is_longer_on_one_side:
        side, count = "preferred" if longer > shorter else "rejected", max(longer, shorter)
        text = (
            f"The {side} answer is the longer one in {count / total:.0%} of {total} pairs of unequal length, so length is "
        )
        text += "what they teach first."
        null = "sides exchanged at random: 50 %"
        remedy = "Match lengths, or use a loss that is normalized by length."
        observations.append(Observation("preferences", task, "warning", count, total, text, remedy, null))
    if sides.trivial.count >= max(TRIVIAL_SHARE * sides.pairs, 3):
        count = sides.trivial.count
        text = (
            f"{count} of {sides.pairs} rejected answers are not real answers: nearly empty, one sentence repeated, or the "
        )
        text += "prompt. They teach little."
        remedy = "Replace them with answers that are nearly right."
        evidence = tuple(sides.trivial.rows)
        observations.append(Observation("preferences", task, "warning", count, sides.pairs, text, remedy, "none", evidence))
    return observations


def _observe_contradictions(task: str, sides: Sides) -> list[Observation]:
    """Return warnings of pairs that their scores, or another pair, contradict."""
    observations, worse, turned = list[Observation](), sides.worse, sides.reversed
    if worse.count >= max(WORSE_SHARE * sides.pairs, 3):
        text = f"In {worse.count} of {sides.pairs} pairs {sides.score} is below {sides.score.replace('chosen', 'rejected')}."
        remedy = "Exchange the sides, or the scores; leave out pairs that the scores contradict."
        observations.append(
            Observation("preferences", task, "warning", worse.count, sides.pairs, text, remedy, "none", tuple(worse.rows))
        )
    if turned.count:
        text = f"{turned.count} of {sides.pairs} pairs prefer the answer that another pair of the same prompt rejects."
        remedy = "Keep one of each two, or none."
        observations.append(
            Observation("preferences", task, "warning", turned.count, sides.pairs, text, remedy, "none", tuple(turned.rows))
        )
    return observations


def _observe_behaviour(task: str, name: str, sides: Sides) -> Observation | None:
    """Return a warning if one side alone shows a behaviour more often than the other."""
    if not sides.is_one_sided(name):
        return None
    own, other = sides.shown_by_one(name)
    does, less, more = IN_WORDS[name]
    text = f"Only the preferred answer {does} in {own} pairs, only the rejected one in {other}. "
    text += f"Such pairs teach to {less if own < other else more}."
    evidence = tuple(sides.only[name].rows)
    null = "sides exchanged at random: odds 1"
    return Observation("preferences", task, "warning", max(own, other), sides.pairs, text, REMEDY, null, evidence)


def _two_sided(own: int, other: int) -> float:
    """Return the exact probability of so uneven a split if the sides were exchanged at random."""
    return min(1.0, 2 * sign_test(max(own, other), min(own, other)))
