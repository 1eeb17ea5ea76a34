"""Preference pairs of training rows, and what one side of a pair does that the other does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from mixwright.audit.text import count_tokens, normal_form
from mixwright.behaviours import BEHAVIOURS, read_behaviours
from mixwright.corpus import Corpus, texts

Side = Literal["chosen", "rejected"]
FEW_TOKENS, MANY_TOKENS = 4, 12
"""Tokens of an answer that says nothing, where the other side has so many."""
MIN_REPEATS, MOST_DIFFERENT_SHARE = 3, 0.5
"""Sentences from which on an answer repeats itself, where so small a share of them differ."""
MIN_LETTERS_SHARE, MIN_CHARACTERS = 0.6, 12
"""Share of letters and spaces below which a text of so many characters is no prose, where the other side is."""
_SENTENCE = re.compile(r"[^.!?\n]+")


@dataclass(frozen=True)
class Pair:
    """One training row with a preferred and a rejected answer; what takes time to read is read once."""

    task: str
    """Its task."""
    id: str
    """Id of the row."""
    source: str
    """Where the row stands."""
    prompt: str
    """What both answer; empty where the row has none."""
    chosen: str
    """The preferred answer, without what both begin with."""
    rejected: str
    """The other one, likewise."""
    scores: tuple[str, float, float] | None = None
    """Column with the preferred answer's score, this score, and that of the other one; None without two such columns."""

    @cached_property
    def has_no_answer(self) -> bool:
        """Whether the rejected answer is none: nearly empty, one sentence again and again, the prompt, or no prose."""
        return is_trivial(self.rejected, self.chosen, self.prompt)

    @cached_property
    def longer(self) -> Side | None:
        """The longer side; None where they are equal."""
        own, other = count_tokens(self.chosen), count_tokens(self.rejected)
        return None if own == other else "chosen" if own > other else "rejected"

    @cached_property
    def differing(self) -> list[tuple[str, Side]]:
        """Behaviours that one side alone shows, and which."""
        read = zip(BEHAVIOURS, read_behaviours(self.chosen), read_behaviours(self.rejected), strict=True)
        return [(name, "chosen" if own else "rejected") for name, own, other in read if own != other]


def read_pairs(corpus: Corpus) -> Iterator[Pair]:
    """The pairs of all rows that are not held out, in their order."""
    for batch in corpus.batches():
        has_pair = [
            one is not None and other is not None
            for one, other in zip(batch.column("chosen").to_pylist(), batch.column("rejected").to_pylist(), strict=True)
        ]
        plain = (batch.column(name).to_pylist() for name in ("task", "id", "source", "split", "extra"))
        sides = (texts(batch, name) for name in ("prompt", "chosen", "rejected"))
        for is_pair, task, row_id, source, split, extra, prompt, chosen, rejected in zip(
            has_pair, *plain, *sides, strict=True
        ):
            if is_pair and split != "eval":
                own, other = without_common_start(chosen or "", rejected or "")
                yield Pair(task, row_id, source, prompt or "", own, other, read_scores(json.loads(extra or "{}")))


def read_scores(columns: Mapping[str, Any]) -> tuple[str, float, float] | None:
    """Find two columns of numbers whose names differ in `chosen` and `rejected` alone, such as `score_chosen`."""
    for name, value in columns.items():
        other = columns.get(name.replace("chosen", "rejected"))
        if "chosen" in name and isinstance(value, int | float) and isinstance(other, int | float):
            return name, value, other
    return None


def without_common_start(first: str, second: str) -> tuple[str, str]:
    """Two texts without what both begin with, up to the last line that they share: the dialogue that led to two answers."""
    first_lines, second_lines = first.split("\n"), second.split("\n")
    shared = 0
    for one, other in zip(first_lines[:-1], second_lines[:-1], strict=False):
        if one != other:
            break
        shared += 1
    return "\n".join(first_lines[shared:]), "\n".join(second_lines[shared:])


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
