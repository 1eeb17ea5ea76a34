"""Class `Grader`, the contract of every way to judge an answer; `mixwright.contracts` offers it beside the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from mixwright.records import Example


class Grader(ABC):
    """Judges an answer. The gold answer earns 1.0; text that merely contains it earns nothing."""

    reads_thoughts: bool = False
    """Whether it is handed what a model thinks before its answer, too (`mixwright.thoughts`)."""

    @abstractmethod
    def grade(self, example: Example, completion: str) -> float:
        """Score of `completion` for `example`, 0..1. Must not raise on hostile text and must not evaluate it."""

    def grade_cut(self, example: Example, completion: str) -> float:
        """Score of a completion that was cut at the limit of tokens, 0..1; another where an answer is read out of it."""
        return self.grade(example, completion)

    def parts(self, example: Example, completion: str) -> Mapping[str, bool]:
        """Parts of the answer that are judged one by one, such as the fields of JSON; empty where it has none."""
        return {}

    def luck(self, examples: Sequence[Example]) -> float | None:
        """Success of blind choice over these examples of one cell, 0..1; None when it is not known from the form alone."""
        return None

    def reading(self, answer: str) -> str:
        """What of a gold answer is compared, in one way of writing it, which earns 1.0 itself, too."""
        return answer
