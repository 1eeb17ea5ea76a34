"""Section of the probability of the gold answer beside success, and of success adjusted by it.

Source: measurements before and after of the leading arm (probe gold); `estimates/adjusted.py`.
Unit: percent, changes in points, each with its own 95 % interval; items count the same.
Cost: reads the measurements.
Blind spot: the probability is at temperature 1 and of one way of writing, so it may rise where greedy answers stay; nothing
    is judged by either figure.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mixwright.contracts import Section
from mixwright.errors import join_some
from mixwright.estimates.adjusted import GOLD_MEASUREMENT, adjusted_change
from mixwright.estimates.outcome import Change, estimate_change, keep_probe_columns, mean_score, shared_items
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Fact, Paragraph, Table
from mixwright.verdict.page.text import format_change, format_count, format_interval, percent, points
from mixwright.verdict.rules.evidence import Sides, leading_sides, read_outcome

ABOUT = (
    "Where one string is right, its probability says what success says, without generating and with less noise. It was "
    "read on more items than were answered where there are more, and success is adjusted by what they show. Words and gate "
    "rest on plain success."
)


class GoldSection(Section):
    """A row per task with a grader that accepts one string alone, and one of all of them where they are several."""

    ORDER = 46
    TITLE = "Probability of the gold answer"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where it was not read on both sides."""
        sides = leading_sides(run)
        tasks = read_tasks(sides) if sides is not None else []
        if sides is None or not tasks:
            return []
        groups = [(task, [task]) for task in tasks] + ([("all of these", tasks)] if len(tasks) > 1 else [])
        rows = [
            row
            for name, group_tasks in groups
            if (row := _gold_row(name, group_tasks, sides, greedy=read_outcome(run) == "greedy"))
        ]
        unread_tasks = sorted({item[0] for item in shared_items(*sides)} - set(tasks))
        unread_text = (
            f" Not read of {join_some(unread_tasks)}: more than one string is right there, or a log does not have it."
            if unread_tasks
            else ""
        )
        columns = ("task", "items read", "before", "after", "change", "success, plain", "success, adjusted")
        table = Table("Probability of the gold answer", columns, rows, (1, 2, 3))
        return [Paragraph(ABOUT + unread_text), table] if rows else []


def _gold_row(name: str, tasks: list[str], sides: Sides, *, greedy: bool) -> tuple[str, ...] | None:
    probability_change = gold_change(sides, tasks)
    if probability_change is None:
        return None
    before, after = (
        float(np.mean([mean_score(scores, GOLD_MEASUREMENT, probability_change.items, by="items") for scores in side]))
        for side in sides
    )
    plain_change = (
        estimate_change(*sides, outcome="greedy", weigh="items", included=lambda item: item[0] in tasks) if greedy else None
    )
    adjusted = (
        adjusted_change(sides[0][0], sides[1][0], plain_change.items)
        if plain_change is not None and len(sides[0]) == 1
        else None
    )
    changes = (probability_change.estimate, plain_change.estimate if plain_change else None, adjusted)
    change_texts = (format_change(change.interval if change is not None else None) for change in changes)
    return name, f"{len(probability_change.items):,}", percent(before), percent(after), *change_texts


def read_tasks(sides: Sides) -> list[str]:
    """Tasks of which it was read; empty where one of the checkpoints was not read."""
    if not all(scores.scores.get(GOLD_MEASUREMENT) for side in sides for scores in side):
        return []
    return sorted({item[0] for item in sides[0][0].scores[GOLD_MEASUREMENT]})


def gold_change(sides: Sides, tasks: Collection[str]) -> Change | None:
    """After minus before over what was read of these tasks, each item counted once; None where nothing was."""
    before, after = ([keep_probe_columns(scores, "gold") for scores in side] for side in sides)
    return estimate_change(before, after, outcome="gold", weigh="items", included=lambda item: item[0] in tasks)


def gold_fact(sides: Sides) -> list[Fact]:
    """The same of all tasks that were read, in one line; empty where none was."""
    tasks = read_tasks(sides)
    probability_change = gold_change(sides, tasks) if tasks else None
    if probability_change is None:
        return []
    interval = probability_change.estimate.interval
    items_text = format_count(len(probability_change.items), "item")
    note = f"{format_interval(interval)}; {items_text} of {join_some(tasks)}, read and not judged"
    return [Fact("change of the gold answer's probability", f"{points(interval.value)} points", note)]
