"""Tables of measurements that two logs, or one, are judged from: the same that a model's measuring writes.

Source: judged tasks (`judged.py`), with S and chance levels where they are known (`swaps.py`).
Unit: shares.
Cost: linear in the answers.
Blind spot: where S is not known, no change of it is seen, and no gain is called an improvement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.estimates.dependence import Dependence, dependence_of_items
from mixwright.estimates.intervals import clustered_share, share_interval
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, LOG_PROBE, MEASUREMENT_BY_DECODING, SWAPPED_SUFFIX
from mixwright.estimates.readings import READINGS
from mixwright.logs.judged import JudgedItem, JudgedTask
from mixwright.logs.swaps import LoggedSwaps, to_example
from mixwright.measure.passes import Group
from mixwright.measure.targets import cell_measurements, item_measurements
from mixwright.records import Interval, Measurement

PROBE, GOLD = READINGS["greedy"].probe, READINGS["gold"]


def measure_task(task: JudgedTask, side: int, name: str, swaps: LoggedSwaps | None) -> list[Measurement]:
    """Success of each item, cell and task in one log, with S, D and the chance level where they are known.

    Args:
        task: what is judged.
        side: which of the logs.
        name: of the measurement of success, `greedy` or `pass@1`.
        swaps: of that log; None where no grader repeats its scores.
    """
    cells: dict[Group, list[JudgedItem]] = defaultdict(list)
    for item in task.items:
        cells[task.name, item.level].append(item)
    # where some items have no level, their cell bears the name of the whole task, which is what a reader takes it for
    groups: dict[Group, list[JudgedItem]] = cells | {(task.name, None): list(task.items)}
    counts = {len(item.answers[side]) for item in task.items}
    samples = counts.pop() if len(counts) == 1 else 1
    pseudo_values: dict[str, float] = {}
    hits: dict[str, float] = {}
    if swaps is not None:
        for group, items in cells.items():
            pseudo_values |= {item.id: swaps.swaps[group].pseudo_values[name][item.id] for item in items}
            chance_hits = swaps.chances[group].hits.tolist()
            hits |= {item.id: hit for item, hit in zip(items, chance_hits, strict=True)}
    answered = sum(len(item.answers[side]) for item in task.items)
    rows = [Measurement(LOG_PROBE, task.name, "answers", answered, answered, answered, len(task.items), "answers")]
    for group, items in groups.items():
        success = np.array([sum(scores) / len(scores) for scores in (task.scores(item, side) for item in items)])
        is_cell = cells.get(group) == items
        chance = _find_chance(group, items, swaps, hits, is_cell=is_cell)
        null = None if chance is None else chance.value
        rows.append(_row(group, name, clustered_share(success, samples), null))
        if chance is not None:
            rows.append(_row(group, CHANCE_MEASUREMENT, chance, None))
        if swaps is not None:
            rows += _dependence_rows(group, name, items, success, swaps, pseudo_values, is_cell=is_cell)
    for item in task.items:
        rows += _item_rows(task, item, side, name, pseudo_values, hits)
    return [*rows, *_gold_rows(task, side)]


def _gold_rows(task: JudgedTask, side: int) -> list[Measurement]:
    """How likely the right answers are, where both logs say so of every item; options are likely for other reasons."""
    answers = [answer for item in task.items for of_side in item.answers for answer in of_side]
    if any(answer.gold_logprob is None or answer.options for answer in answers):
        return []
    items = [to_example(item) for item in task.items]
    values = {
        item.id: float(np.mean([math.exp(answer.gold_logprob or 0.0) for answer in item.answers[side]]))
        for item in task.items
    }
    found = cell_measurements(GOLD.probe, GOLD.column, GOLD.unit, items, values)
    return [*found, *item_measurements(GOLD.probe, GOLD.column, GOLD.unit, items, values)]


def _find_chance(
    group: Group, items: Sequence[JudgedItem], swaps: LoggedSwaps | None, hits: Mapping[str, float], *, is_cell: bool
) -> Interval | None:
    if swaps is None:
        return None
    return swaps.chances[group].interval if is_cell else clustered_share(np.array([hits[item.id] for item in items]), 1)


def _dependence_rows(
    group: Group,
    name: str,
    items: Sequence[JudgedItem],
    success: np.ndarray,
    swaps: LoggedSwaps,
    pseudo_values: Mapping[str, float],
    *,
    is_cell: bool,
) -> list[Measurement]:
    """S, D, kappa and the permutation test of one cell or task; nothing of fewer than three items."""
    found: Dependence | None = None
    p: float | None = None
    if is_cell:
        found, p = swaps.swaps[group].dependence_by_name.get(name), swaps.swaps[group].p_by_name.get(name)
    elif len(items) > 2:
        found = dependence_of_items(success, np.array([pseudo_values[item.id] for item in items]))
    if found is None:
        return []
    rows = [
        _row(group, name + SWAPPED_SUFFIX, found.swapped, None),
        _row(group, f"{name}.dependence", found.dependence, 0.0),
        _row(group, f"{name}.kappa", found.kappa, 0.0),
    ]
    if p is not None:
        rows.append(_row(group, f"{name}.permutation", Interval(p, p, p, len(found.items)), None, unit="p value"))
    return rows


def _row(group: Group, name: str, found: Interval, null: float | None, unit: str = "share") -> Measurement:
    task, level = group
    ends = (found.value, found.low, found.high, found.n)
    return Measurement(PROBE, task, name, *ends, unit, level, None, null, CHANCE_MEASUREMENT if null else "")


def _item_rows(
    task: JudgedTask,
    item: JudgedItem,
    side: int,
    name: str,
    pseudo_values: Mapping[str, float],
    hits: Mapping[str, float],
) -> list[Measurement]:
    scores, chance = task.scores(item, side), hits.get(item.id)
    success = share_interval(float(sum(scores)), len(scores))
    values = {name: (success.value, success.low, success.high)}
    if item.id in pseudo_values:
        swapped = pseudo_values[item.id]
        values[name + SWAPPED_SUFFIX] = (swapped, swapped, swapped)
    place = ("share", item.level, item.id)
    null = (chance, CHANCE_MEASUREMENT) if chance is not None else (None, "")
    rows = [Measurement(PROBE, task.name, row, *ends, len(scores), *place, *null) for row, ends in values.items()]
    if chance is not None:
        known = share_interval(chance, 1)
        rows.append(Measurement(PROBE, task.name, CHANCE_MEASUREMENT, known.value, known.low, known.high, 1, *place))
    return rows


def list_completions(task: JudgedTask, side: int) -> list[dict[str, Any]]:
    """The first written answer to each item, as the page shows it; none of tasks where nothing is known to be written."""
    return [
        {
            "example": item.id,
            "task": task.name,
            "level": item.level,
            "prompt": item.prompt or "",
            "answer": item.gold,
            "completion": first.completion,
            "score": task.scores(item, side)[0],
            "cut": first.cut,
        }
        for item in task.items
        for first in item.answers[side][:1]
        if first.completion is not None
    ]


def name_of_success(*, sampled: bool) -> str:
    """Name of the measurement of success."""
    return MEASUREMENT_BY_DECODING["sampled" if sampled else "greedy"]
