"""Check of thoughts before answers: a task in which some answers begin with thoughts and others do not.

Source: own.
Unit: training rows of a task.
Cost: one pass.
Blind spot: a prompt that says when to think; thoughts without tags.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from mixwright.audit.rows import rows
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation
from mixwright.thoughts import split_thoughts

NOISE_SHARE = 0.02
"""Share of a task's rows below which answers of the rarer kind are not reported."""
REMEDY = "Keep one kind, or let the prompt or the template say which: the model cannot know when to think."


class Formats(Check):
    """Reads how the answers of the train split begin."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each task with both kinds of answers, or one info."""
        kinds_by_task: dict[str, Counter[str]] = defaultdict(Counter)
        for row in rows(corpus.batches()):
            if row.split != "eval" and row.written:
                kinds_by_task[row.task][split_thoughts(row.written)[0]] += 1
        observations = []
        for name, kinds in sorted(kinds_by_task.items()):
            total, thinking = kinds.total(), kinds["closed"] + kinds["open"]
            rarer = min(thinking, total - thinking)
            if rarer >= max(NOISE_SHARE * total, 1):
                text = f"{thinking} of {total} answers begin with thoughts, {kinds['empty']} with empty ones, "
                text += f"{kinds['none']} without."
                observations.append(Observation("formats", name, "warning", rarer, total, text, REMEDY))
        total = sum(kinds.total() for kinds in kinds_by_task.values())
        text = "The answers of each task begin in one way."
        return observations or [Observation("formats", None, "info", 0, total, text, "")]
