"""Null of every overlap: the number of prompts that two samples of a task share by chance.

A task's prompts are a template (words most of them have) with slots. Prompts agree by chance when their shapes agree
and each slot happens to hold the same word or number. How often a slot repeats itself is estimated from the data, per
class of slot (numbers of n digits, words, signs), as an unbiased estimate of the sum of squared probabilities; 1 is added
to the pairs seen, so that a class never seen to repeat is not taken for infinite. Assumes that slots are independent:
related slots collide more often than this says.

Prompts without any slot have words of the template alone and differ in their order (boolean expressions). There the next
word takes the place of a slot: how often two prompts of as many words go on alike after the same word at the same place.
What it depends on beside these makes prompts agree more often, so that `ORDER_MARGIN` is allowed for.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mixwright.audit.text import normal_words

PROMPT_CHARACTERS_READ = 4000
"""Characters of a prompt that are read."""
TEMPLATE_WORD_MIN_SHARE = 0.2
"""A word in this share of a task's prompts belongs to its template: several phrasings of one task are still templates."""

ORDER_MARGIN = 2.0
"""By how much prompts without slots may agree more often than the order of their words says. In grammars that were tried
true repeats were up to 1.3 times those expected without it.
"""
NEGLIGIBLE = 1e-6
"""Rows expected by chance below which one held-out row is not looked at further."""
ROWS_OF_A_FIXED_PROMPT = 10
"""Rows of each prompt without slots from which on a task is taken to have only these."""


@functools.lru_cache(maxsize=2**13)
def tokens(text: str) -> tuple[str, ...]:
    """Words, numbers and single signs of the normal form of `text`."""
    return tuple(normal_words(text[:PROMPT_CHARACTERS_READ]))


def slot_class(token: str) -> str:
    """The class of a slot's filling: digits by length, words, signs."""
    if token[0].isdigit():
        return f"number of {len(token)}"
    return "word" if token[0].isalpha() else "sign"


@dataclass(frozen=True)
class Template:
    """What the prompts of one task have in common, learnt from a sample of them."""

    words: frozenset[str]
    """Words and signs of the template; never numbers."""
    agreement_by_slot_class: dict[str, float]
    """Class of slot -> probability that two fillings agree."""

    @classmethod
    def learn(cls, *samples: Sequence[str]) -> Template:
        """Learn from samples of one task's prompts, one per split.

        How often slots repeat is learnt within the largest sample, each prompt once: copies would look like chance.
        """
        splits = [sorted(set(map(tokens, prompts))) for prompts in samples]
        prompts_by_token = Counter(token for split in splits for prompt_tokens in split for token in set(prompt_tokens))
        min_prompts = max(TEMPLATE_WORD_MIN_SHARE * sum(map(len, splits)), 3)
        words = frozenset(token for token, n in prompts_by_token.items() if n >= min_prompts and not token[0].isdigit())
        fillings: dict[str, Counter[str]] = defaultdict(Counter)
        for token in (token for prompt_tokens in max(splits, key=len) for token in prompt_tokens if token not in words):
            fillings[slot_class(token)][token] += 1
        return cls(words, {name: _estimate_agreement(values) for name, values in fillings.items()})

    def with_slot_classes(self, prompt: str) -> tuple[str, ...]:
        """The prompt with each slot's filling replaced by its class (in angle brackets)."""
        return tuple(token if token in self.words else f"<{slot_class(token)}>" for token in tokens(prompt))

    def chance_of_same_filling(self, shape: tuple[str, ...]) -> float:
        """Probability that two prompts of this shape are the same prompt."""
        return math.prod(self.agreement_by_slot_class.get(slot[1:-1], 1.0) for slot in shape if _is_slot(slot))

    def expected_holding(self, inner: Sequence[Sequence[str]], outer: Sequence[str], outer_rows: int) -> float:
        """Return how many of `inner` (each as its words) stand by chance inside `outer_rows` prompts; `outer` is a sample.

        A place of the same shape holds just these words with the probability that its slots agree; a word that comes twice
        is evidence once. 1 is added to the places seen, as for a shape that the sample happens to lack.
        """
        outer_shapes = "\n".join(self._join_shape(tokens(prompt)) for prompt in outer)
        rows_per_sample, expected = outer_rows / max(len(outer), 1), 0.0
        for words in inner:
            chance = math.prod(self.agreement_by_slot_class.get(slot_class(word), 1.0) for word in set(words) - self.words)
            if chance * len(outer_shapes) * rows_per_sample > NEGLIGIBLE:  # else counting, which is slow, changes nothing
                places = outer_shapes.count(self._join_shape(words)) + 1
                expected -= math.expm1(-chance * places * rows_per_sample)
        return expected

    def _join_shape(self, words: Sequence[str]) -> str:
        """Return a shape as a text in which `count` finds whole words, in neighbouring places too."""
        return "".join(f" {word} " if word in self.words else f" <{slot_class(word)}> " for word in words)

    def expected_shared(self, train: Sequence[str], held_out: Sequence[str], train_rows: int, held_out_rows: int) -> float:
        """Eval rows (of `held_out_rows`) expected to stand among `train_rows` by chance; the texts are samples of both."""
        rows_per_train_sample = train_rows / max(len(train), 1)
        rows_per_held_out_sample = held_out_rows / max(len(held_out), 1)
        rivals = _Rivals(self, Counter(map(self.with_slot_classes, train)))
        return sum(
            n * rows_per_held_out_sample * -math.expm1(-rivals.chance(shape) * rivals.count(shape) * rows_per_train_sample)
            for shape, n in Counter(map(self.with_slot_classes, held_out)).items()
        )

    def expected_repeats(self, prompts: Sequence[str], total: int) -> float:
        """Rows of `total` expected to repeat an earlier row by chance; `prompts` is a sample of them."""
        shapes = Counter(map(self.with_slot_classes, prompts))
        rivals, repeats = _Rivals(self, shapes), 0.0
        for shape, n in shapes.items():
            rows, chance = max(1.0, rivals.count(shape) * total / len(prompts)), rivals.chance(shape)
            if rows * chance < 1e-4:  # the exact form loses its digits here
                of_rivals = rows * (rows - 1) * chance / 2
            else:  # rows less those of the 1 / chance fillings that come up
                of_rivals = rows - (1 - max(0.0, 1 - chance) ** rows) / chance
            repeats += of_rivals * n / rivals.count(shape)
        return repeats


class _Rivals:
    """Prompts that may be the same by chance: those of one shape; without slots all that have none and are as long.

    Where a task has few prompts without slots, again and again, each is its own shape.
    """

    def __init__(self, template: Template, shapes: Counter[tuple[str, ...]]) -> None:
        self._template, self._shapes = template, shapes
        slotless = [(shape, n) for shape, n in shapes.items() if not any(map(_is_slot, shape))]
        self._rows_by_length, followers = Counter[int](), defaultdict[tuple[int, int, str], Counter[str]](Counter)
        for shape, n in slotless:
            self._rows_by_length[len(shape)] += n
            for place, word in zip(_places(shape), shape, strict=True):
                followers[place][word] += 1  # each prompt once, as for slots
        self._are_few = self._rows_by_length.total() >= ROWS_OF_A_FIXED_PROMPT * len(slotless)
        self._agreement = {place: _estimate_agreement(words) for place, words in followers.items()}

    def count(self, shape: tuple[str, ...]) -> int:
        """Rows of the sample that may be the same as one of this shape."""
        return self._shapes[shape] if self._is_apart(shape) else self._rows_by_length[len(shape)]

    def chance(self, shape: tuple[str, ...]) -> float:
        """Probability that such a row and one of this shape are the same."""
        if self._is_apart(shape):
            return self._template.chance_of_same_filling(shape)
        return min(1.0, ORDER_MARGIN * math.prod(self._agreement.get(place, 1.0) for place in _places(shape)))

    def _is_apart(self, shape: tuple[str, ...]) -> bool:
        return self._are_few or any(map(_is_slot, shape))


def _places(shape: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    """For each word of a prompt without slots what the next one depends on: words in all, words before, and the last one."""
    return ((len(shape), count, word) for count, word in enumerate(("", *shape[:-1])))


def _is_slot(token: str) -> bool:
    return token[0] == "<" and len(token) > 1


def format_expected(expected: float) -> str:
    """How many rows chance gives, as it is written: `3.2`, `1,200`, `fewer than 0.01`, `more than a million`."""
    if not 0.01 <= expected <= 1e6:
        return "fewer than 0.01" if expected < 0.01 else "more than a million"
    return f"{expected:.3g}" if expected < 1000 else f"{expected:,.0f}"


def chance_explains(count: int, expected: float) -> bool:
    """Whether so many, where chance gives `expected`, happen more often than once in 1000 times."""
    return poisson_tail(count, expected) >= 0.001


def poisson_tail(at_least: int, mean: float) -> float:
    """P(X >= at_least) for a Poisson count of that mean."""
    if at_least <= 0:
        return 1.0
    if mean <= 0 or at_least > mean + 40 * math.sqrt(mean) + 40:
        return 0.0
    below = (math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(at_least))
    return max(0.0, 1.0 - math.fsum(below))


def _estimate_agreement(values: Counter[str]) -> float:
    total = sum(values.values())
    agreeing_pairs = sum(count * (count - 1) for count in values.values()) / 2
    return min(1.0, (agreeing_pairs + 1) / (total * (total - 1) / 2 + 1))
