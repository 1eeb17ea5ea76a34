"""Change of the probability of the gold answer, where both sides were read: a fact beside success that decides nothing."""

from __future__ import annotations

from collections.abc import Collection

from mixwright.errors import join_some
from mixwright.estimates.outcome import Change, estimate_change, keep_probe_columns
from mixwright.estimates.readings import READINGS
from mixwright.verdict.blocks import Fact
from mixwright.verdict.evidence import Sides
from mixwright.verdict.text import count, format_interval, points

GOLD_COLUMN = READINGS["gold"].column


def read_tasks(sides: Sides) -> list[str]:
    """Tasks of which it was read; empty where one of the checkpoints was not read."""
    if not all(scores.scores.get(GOLD_COLUMN) for side in sides for scores in side):
        return []
    return sorted({item[0] for item in sides[0][0].scores[GOLD_COLUMN]})


def gold_change(sides: Sides, tasks: Collection[str]) -> Change | None:
    """After minus before over what was read of these tasks, each item counted once; None where nothing was."""
    before, after = ([keep_probe_columns(scores, "gold") for scores in side] for side in sides)
    return estimate_change(before, after, decoding="gold", weigh="items", only=lambda item: item[0] in tasks)


def gold_fact(sides: Sides) -> list[Fact]:
    """The same of all tasks that were read, in one line; empty where none was."""
    tasks = read_tasks(sides)
    moved = gold_change(sides, tasks) if tasks else None
    if moved is None:
        return []
    found = moved.success.interval
    note = f"{format_interval(found)}; {count(len(moved.items), 'item')} of {join_some(tasks)}, read and not judged"
    return [Fact("change of the gold answer's probability", f"{points(found.value)} points", note)]
