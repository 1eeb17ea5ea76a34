"""Check of values that completions state for Python code: in sessions, comments, printed output and backticks.

Source: as the check `traces`, whose rules for wrong values these are (arXiv 2502.07374). 98 values of public docstrings
    were read by hand.
Unit: values of code, by operation.
Cost: one pass over at most 40,000 training rows, all where files are written; some 2 us per character.
Blind spot: loops, and functions that the text defines; what may be words, or another language.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from mixwright.extend import (
    Check,
    Corpus,
    Observation,
    Values,
    is_masked,
    observe_values,
    read_mask,
    sample_training_rows,
    texts,
)
from mixwright_extras.code.values import read_code_values

NOUN = "values of code"


class CodeComments(Check):
    """Works the values out, and compares."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Warnings by task and operation; one info where values were read and nothing was wrong."""
        values_by_task: dict[str, Values] = defaultdict(lambda: Values(NOUN))
        sample = sample_training_rows(corpus, whole=self.whole)
        for batch in sample.rows.batches():
            names = ("id", "task", "source", "split", "extra")
            columns = (batch.column(name).to_pylist() for name in names)
            for name, task, source, split, extra, target in zip(*columns, texts(batch, "target"), strict=True):
                if split == "eval" or not target:
                    continue
                mask = read_mask(extra)
                for step in read_code_values(target):
                    if not is_masked(step.span, mask):
                        values_by_task[task].add(step, {"id": name, "source": source})
        found = [one for task, values in sorted(values_by_task.items()) for one in observe_values(task, values)]
        total, wrong = (sum(values.count()[at] for values in values_by_task.values()) for at in (0, 1))
        if not found and total:
            message = f"{total} {NOUN} were checked, {wrong} of them are wrong, without a pattern."
            found = [Observation("", None, "info", wrong, total, message, "")]
        return [replace(one, check="code_comments") for one in sample.describe(found)]
