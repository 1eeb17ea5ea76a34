"""Preference pairs of training rows, and what one side of a pair does that the other does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mixwright.audit.behaviours import BEHAVIOURS, is_trivial, read_behaviours, without_common_start
from mixwright.audit.text import count_tokens
from mixwright.corpus import Corpus, texts

Side = Literal["chosen", "rejected"]
ALIKE_LENGTH = 1.25
"""Ratio of lengths up to which two sides are alike in length."""


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

    @cached_property
    def has_no_answer(self) -> bool:
        """Whether the rejected answer is none: nearly empty, one sentence again and again, the prompt, or no prose."""
        return is_trivial(self.rejected, self.chosen, self.prompt)

    @cached_property
    def lengths(self) -> tuple[int, int]:
        """Tokens of both, the preferred one first."""
        return count_tokens(self.chosen), count_tokens(self.rejected)

    @property
    def longer(self) -> Side | None:
        """The longer side; None where they are equal."""
        own, other = self.lengths
        return None if own == other else "chosen" if own > other else "rejected"

    @property
    def is_alike_in_length(self) -> bool:
        """Whether one is at most `ALIKE_LENGTH` times as long as the other."""
        return max(self.lengths) <= ALIKE_LENGTH * min(self.lengths)

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
        plain = (batch.column(name).to_pylist() for name in ("task", "id", "source", "split"))
        sides = (texts(batch, name) for name in ("prompt", "chosen", "rejected"))
        for is_pair, task, row_id, source, split, prompt, chosen, rejected in zip(has_pair, *plain, *sides, strict=True):
            if is_pair and split != "eval":
                yield Pair(task, row_id, source, prompt or "", *without_common_start(chosen or "", rejected or ""))
