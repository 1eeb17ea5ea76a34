"""Changes of what answers do beside answering, item by item; no grader is asked.

Source: McNemar's exact test on pairs, the sign test where an item has a share; words and signs: `mixwright/behaviours.py`.
Unit: share of a task's answers, and its change with a 95 % interval over items.
Cost: linear in the answers.
Blind spot: English words; whether a behaviour was called for; a longer answer has more room to show one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixwright.answers.table import Answers
from mixwright.behaviours import BEHAVIOURS, LEAST_CHANGE, read_behaviours
from mixwright.estimates.crossed import estimate_crossed
from mixwright.estimates.intervals import holm, sign_test
from mixwright.records import BehaviourChange, GateOutcome
from mixwright.verdict.page.answers import ItemPairs

ALPHA = 0.02
"""Adjusted p value below which a change is shown."""
MIN_ITEMS = 10
"""Items of a task below which nothing is tested."""
LOSS_LIMIT = 0.2
"""Loss of a protected behaviour, as of a single task, that has to be excluded."""
DISTINCT, ANY_RIGHT = "distinct samples", "right in any sample"
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A behaviour of a task, item by item: shares, 0 or 1 where an item has one answer."""

    task: str
    behaviour: str
    before: Values
    after: Values


def compare_behaviours(
    pairs: ItemPairs, sampled: tuple[Answers, Answers] | None = None, protected: Collection[str] = ()
) -> list[BehaviourChange]:
    """What changed, task by task, the largest change first; nothing of behaviours that no answer shows.

    Args:
        pairs: first answers of both sides.
        sampled: tables of both sides, of which sampled answers are read as sets, too.
        protected: behaviours whose p values are corrected among themselves.
    """
    readings = [*_read_first(pairs), *(_read_samples(*sampled) if sampled else ())]
    families = ([one for one in readings if (one.behaviour in protected) is is_protected] for is_protected in (True, False))
    changes = [replace(one, protected=one.behaviour in protected) for family in families for one in _test(family)]
    return sorted(changes, key=lambda one: (not one.shown, -abs(one.change.value), one.task, one.behaviour))


def judge_behaviours(changes: Sequence[BehaviourChange], protected: Sequence[str]) -> GateOutcome:
    """Whether protected behaviours were kept. One that no answer showed before has nothing to lose, and passes nothing."""
    judged = [one for one in changes if one.behaviour in protected and one.before > 0]
    if any(one.shown and one.change.value < 0 for one in judged):
        return "damaged"
    is_unsure = any(one.change.low <= -min(LOSS_LIMIT, one.before) for one in judged)
    return "inconclusive" if is_unsure or {one.behaviour for one in judged} < {*protected} else "passed"


def _read_first(pairs: ItemPairs) -> list[_Reading]:
    texts: dict[str, list[list[tuple[bool, ...]]]] = defaultdict(list)
    for (task, _), pair in sorted(pairs.items()):
        texts[task].append([read_behaviours(text) for text in pair.texts])
    readings = []
    for task, items in texts.items():
        shown = np.array(items, dtype=float)  # items, sides, behaviours
        for place, name in enumerate(BEHAVIOURS):
            if len(items) >= MIN_ITEMS and shown[:, :, place].any():
                readings.append(_Reading(task, name, shown[:, 0, place], shown[:, 1, place]))
    return readings


def _read_samples(before: Answers, after: Answers) -> list[_Reading]:
    """Of items with several samples on both sides: how many of their texts differ, and whether any is right."""
    sides = [_samples_by_item(answers) for answers in (before, after)]
    shared = [item for item, (texts, _) in sides[0].items() if item in sides[1] and len(texts) == len(sides[1][item][0]) > 1]
    by_task: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for item in shared:
        by_task[item[0]].append(item)
    readings = []
    for task, items in sorted(by_task.items()):
        if len(items) < MIN_ITEMS:
            continue
        distinct = [np.array([len({*side[item][0]}) / len(side[item][0]) for item in items]) for side in sides]
        any_right = [np.array([float(side[item][1] > 0) for item in items]) for side in sides]
        readings += [_Reading(task, DISTINCT, *distinct), _Reading(task, ANY_RIGHT, *any_right)]
    return readings


def _samples_by_item(answers: Answers) -> dict[tuple[str, str], tuple[list[str], float]]:
    """(Task, item) -> its sampled texts, and the best of their scores; nothing of items with a text that is unknown."""
    rows = answers.table.take(answers.by_decoding["sampled"].rows).select(("task", "item", "text", "right")).to_pydict()
    found: dict[tuple[str, str], tuple[list[str], float]] = {}
    for task, item, text, right in zip(*rows.values(), strict=True):
        if text is not None:
            texts, best = found.get((task, item), ([], 0.0))
            found[task, item] = ([*texts, " ".join(text.split())], max(best, right or 0.0))
    return found


def _test(readings: Sequence[_Reading]) -> list[BehaviourChange]:
    """Changes with their p values, corrected over those that any item shows on one side alone."""
    p_values = [_two_sided(reading.after - reading.before) for reading in readings]
    moved = [place for place, reading in enumerate(readings) if (reading.after != reading.before).any()]
    adjusted = dict(zip(moved, holm([p_values[place] for place in moved]), strict=True))
    changes = []
    for place, reading in enumerate(readings):
        difference, items = reading.after - reading.before, len(reading.before)
        change = estimate_crossed(difference[None], np.zeros(items, dtype=np.int64)).interval
        change = replace(change, low=max(change.low, -1.0), high=min(change.high, 1.0))
        adjusted_p = adjusted.get(place, 1.0)
        is_shown = adjusted_p < ALPHA and abs(change.value) >= LEAST_CHANGE
        sides = float(reading.before.mean()), float(reading.after.mean())
        changes.append(BehaviourChange(reading.task, reading.behaviour, *sides, change, adjusted_p, is_shown))
    return changes


def _two_sided(difference: Values) -> float:
    """Exact probability of so uneven a split if sides were exchanged at random."""
    more, fewer = int((difference > 0).sum()), int((difference < 0).sum())
    return min(1.0, 2 * sign_test(max(more, fewer), min(more, fewer)))
