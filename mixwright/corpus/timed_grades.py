"""Grades of a corpus under a time limit per answer: a grader that hangs is named, and counted or stopped at."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable
from typing import Literal

from mixwright.corpus.rows import GradedRows
from mixwright.errors import InputError
from mixwright.records import Example
from mixwright.time_limit import NAMED_AFTER_SECONDS, TooSlow, call_with_timeout

SECONDS_PER_GRADE = 10.0
"""For one answer, where nobody says otherwise."""
KeptGrades = dict[tuple[str, str, bool], float]
"""Item, answer and whether it was cut -> its score, 0..1."""

_log = logging.getLogger("mixwright")


class TimedGrades:
    """Grades answers by the corpus's graders.

    Args:
        corpus: whose graders judge.
        seconds: for one answer; 0 sets no limit.
        on_timeout: what an answer is that took longer: wrong (0.0), or the end (`InputError`).
        kept: what is there is not graded again, and what is graded in time is added; None keeps nothing.
    """

    def __init__(
        self, corpus: GradedRows, seconds: float, on_timeout: Literal["wrong", "stop"], kept: KeptGrades | None = None
    ) -> None:
        self.corpus, self.seconds, self.on_timeout, self.kept = corpus, seconds, on_timeout, kept
        self.tell: Callable[[str], None] = _log.warning
        """Given a sentence for each grader and example that took too long."""
        self.late: Counter[str] = Counter()
        """Answers that took too long, per task."""
        self._named: set[str] = set()

    def grade(self, example: Example, completion: str, *, cut: bool = False) -> float:
        """Score of a completion, 0..1; of one that ran into the limit of tokens with `cut`.

        Raises:
            InputError: the example has no answer, the grader fails, or it takes too long and `on_timeout` is stop.
        """
        task, key = example.task, (example.id, completion, cut)
        if self.kept is not None and key in self.kept:
            return self.kept[key]
        grading_text = f"grader {self.corpus.tasks[task].grader}, example {example.id!r}, task {task}"
        try:
            still_text = f"Still grading: {grading_text}, for over {min(self.seconds, NAMED_AFTER_SECONDS):g} s."
            grade = functools.partial(self.corpus.grade, example, completion, cut=cut)
            score = call_with_timeout(self.seconds, grade, lambda: self._warn_once(example.id, still_text))
            if self.kept is not None:
                self.kept[key] = score
            return score
        except TooSlow:
            if self.on_timeout == "stop":
                remedy = "Correct the grader, or raise measure.grader_seconds (0 sets no limit)."
                raise InputError(f"a score within {self.seconds:g} s", f"none ({grading_text})", remedy) from None
        self.late[task] += 1
        self._warn_once(example.id, f"No score within {self.seconds:g} s: {grading_text}. These answers count as wrong.")
        return 0.0

    def _warn_once(self, example: str, sentence: str) -> None:
        if example not in self._named:
            self._named.add(example)
            self.tell(sentence)
