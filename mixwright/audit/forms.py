"""Forms of answers, without their content, and how often each stands in the rows of a task."""

from __future__ import annotations

import re
from collections import Counter

from mixwright.skeleton import skeleton

FEW_FORMS, COVERED_SHARE = 5, 0.9
"""Forms are a choice of formats where so many of them cover that share of a task's rows."""
MAX_FORMS_KEPT = 256
LONG_ANSWER_CHARACTERS = 200
_NUMBER = re.compile(r"[+-]?9(?:[.,]9)*")
_RUN = re.compile(r"[9a]*9[9a]*")


class FormCounts:
    """Rows per form in bounded memory: above `MAX_FORMS_KEPT` forms the rarer half is let go and counted together.

    Counts of kept forms are then lower bounds, short by at most `spilled`.
    """

    def __init__(self) -> None:
        self.rows_by_form: Counter[str] = Counter()
        self.total = 0
        self.spilled = 0

    def add(self, form: str) -> None:
        """Count one row."""
        self.total += 1
        self.rows_by_form[form] += 1
        if len(self.rows_by_form) > MAX_FORMS_KEPT:
            common = Counter(dict(self.rows_by_form.most_common(MAX_FORMS_KEPT // 2)))
            self.spilled += self.rows_by_form.total() - common.total()
            self.rows_by_form = common

    def are_formats(self) -> bool:
        """Whether forms are a choice of formats: a few cover most rows; else they are content."""
        covered = sum(count for _, count in self.rows_by_form.most_common(FEW_FORMS))
        return covered >= COVERED_SHARE * self.total


def coarse_form(answer: str) -> str:
    """The skeleton of an answer without what is content: signs and decimals of numbers, how many words."""
    text = answer.strip()
    if len(text) > LONG_ANSWER_CHARACTERS:
        text = text.splitlines()[-1]
    form = skeleton(text).replace("…", "").replace("a+", "a")
    return _RUN.sub("9", _NUMBER.sub("9", form))
