"""Pairs of the items of two logs: by what was asked, then by id; what has no partner is named and set apart.

Source: answers of two logs (`entries.py`). Items pair where their prompts are the same text; several items of one prompt by
    their ids among each other; where a log has no prompts, or blank ones, by id alone.
Unit: items; several answers to one item are samples of it.
Cost: one pass over both logs, a hash per prompt.
Blind spot: where a log has no prompts, another prompt under the same id goes unseen.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask

Reason = Literal["another prompt", "another right answer", "another level", "the same prompt several times", "no such item"]
"""Why an item has no partner."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of one log, with all answers to it."""

    id: str
    """In its task and its log."""
    answers: tuple[LoggedAnswer, ...]
    """Samples of it, by name."""
    prompt: str | None
    """What was asked."""
    gold: str | None
    """The right answer."""
    level: float | None
    """Difficulty."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An item that both models answered."""

    id: str
    """Id in both logs; both ids where they differ."""
    before: Item
    """As BEFORE answered it."""
    after: Item
    """As AFTER answered it."""
    by_id: bool
    """Whether it was found by id, since the items have no prompts of their own."""


@dataclass(frozen=True, slots=True)
class PairedTask:
    """One task of two logs."""

    name: str
    """Of the task."""
    pairs: tuple[Pair, ...]
    """Sorted by id."""
    before_alone: Mapping[str, Reason]
    """Id of an item of BEFORE that has no partner -> why."""
    after_alone: Mapping[str, Reason]
    """The same of AFTER."""
    by_id: int
    """Pairs that were found by id alone, since they have no prompts of their own."""
    differences: tuple[str, ...]
    """What else differs between the logs, so that nothing of the task can be compared; in words."""


def collect_items(answers: Iterable[LoggedAnswer]) -> dict[str, Item]:
    """The items of one task of one log, by id, sorted.

    Raises:
        InputError: one sample twice, or samples of one item that were asked different things.
    """
    answers_by_item: dict[str, dict[str, LoggedAnswer]] = defaultdict(dict)
    for answer in answers:
        samples = answers_by_item[answer.item]
        if answer.sample in samples:
            name = f" ({answer.sample})" if answer.sample else ""
            got = f"item {answer.item!r} of task {answer.task!r}{name} twice, first at {samples[answer.sample].location}"
            remedy = "Remove one of them, or tell samples apart by `sample` or `seed`."
            raise answer.location.error("each answer once", got[:300], remedy)
        samples[answer.sample] = answer
    return {name: _make_item(name, answers_by_item[name].values()) for name in sorted(answers_by_item)}


def _make_item(name: str, answers: Iterable[LoggedAnswer]) -> Item:
    ordered = tuple(sorted(answers, key=lambda answer: (len(answer.sample), answer.sample)))
    for field in ("prompt", "gold", "level"):
        values = {getattr(answer, field): answer for answer in ordered}
        if len(values) > 1:
            last = list(values.values())[-1]
            got = f"more than one of item {name!r} of task {last.task!r}"
            raise last.location.error(f"one {field} for all answers to an item", got[:200], "Give each item its own id.")
    prompt = ordered[0].prompt
    return Item(name, ordered, prompt if prompt and prompt.strip() else None, ordered[0].gold, ordered[0].level)


def group_answers(log: EvaluationLog) -> dict[str, list[LoggedAnswer]]:
    """The answers to each task, in the order of the log; of a task without answers none."""
    found: dict[str, list[LoggedAnswer]] = {name: [] for name in log.tasks}
    for answer in log.answers:
        found[answer.task].append(answer)
    return found


def pair_logs(before: EvaluationLog, after: EvaluationLog) -> dict[str, PairedTask]:
    """Every task that both logs have, by name, sorted. Raises InputError as `collect_items` does."""
    old, new = group_answers(before), group_answers(after)
    return {
        name: pair_task(
            name, collect_items(old[name]), collect_items(new[name]), find_differences(before.tasks[name], after.tasks[name])
        )
        for name in sorted(old.keys() & new.keys())
        if old[name] and new[name]
    }


def pair_task(
    name: str, before: Mapping[str, Item], after: Mapping[str, Item], differences: Sequence[str] = ()
) -> PairedTask:
    """The items of one task, paired. Which log is which does not matter, nor does the order of items."""
    found, alone = _pair_by_prompt(before, after)
    for key in sorted(before.keys() & after.keys()):
        if (0, key) in found or (1, key) in found:
            continue
        old, new = before[key], after[key]
        if old.prompt is None or new.prompt is None:
            found[0, key] = found[1, key] = Pair(key, old, new, by_id=True)
        else:
            alone.setdefault((0, key), "another prompt")
            alone.setdefault((1, key), "another prompt")
    pairs = []
    for pair in [pair for (side, _), pair in found.items() if side == 0]:
        reason = _find_contradiction(pair.before, pair.after)
        if reason is None:
            pairs.append(pair)
        else:
            alone[0, pair.before.id] = alone[1, pair.after.id] = reason
    paired = {(0, pair.before.id) for pair in pairs} | {(1, pair.after.id) for pair in pairs}
    unpaired: list[dict[str, Reason]] = [
        {key: alone.get((side, key), "no such item") for key in sorted(items) if (side, key) not in paired}
        for side, items in enumerate((before, after))
    ]
    by_id = sum(pair.by_id for pair in pairs)
    return PairedTask(name, _with_own_ids(pairs), unpaired[0], unpaired[1], by_id, tuple(differences))


def _with_own_ids(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs, sorted by id; where an item is called as two others are together (`x=y`), those get a mark."""
    found: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: (pair.before.id != pair.after.id, pair.id, pair.before.id)):
        name = pair.id
        while name in found:
            name += "'"
        found[name] = replace(pair, id=name)
    return tuple(found[name] for name in sorted(found))


Key = tuple[int, str]
"""Side (0 for before, 1 for after) and id of an item."""


def _pair_by_prompt(before: Mapping[str, Item], after: Mapping[str, Item]) -> tuple[dict[Key, Pair], dict[Key, Reason]]:
    """Pair of each item whose prompt stands in both logs; and why items of such prompts have none."""
    groups: tuple[dict[str, list[Item]], ...] = (defaultdict(list), defaultdict(list))
    for items, group in zip((before, after), groups, strict=True):
        for item in items.values():
            if item.prompt is not None:
                group[_digest(item.prompt)].append(item)
    found: dict[Key, Pair] = {}
    alone: dict[Key, Reason] = {}
    for digest in groups[0].keys() & groups[1].keys():
        old, new = groups[0][digest], groups[1][digest]
        if len(old) == len(new) == 1:
            partners = [(old[0], new[0])]
        else:
            new_by_id = {item.id: item for item in new}
            partners = [(item, new_by_id[item.id]) for item in old if item.id in new_by_id]
        for one, other in partners:
            name = one.id if one.id == other.id else f"{one.id}={other.id}"
            found[0, one.id] = found[1, other.id] = Pair(name, one, other, by_id=max(len(old), len(new)) > 1)
        for side, items in enumerate((old, new)):
            alone |= {(side, item.id): "the same prompt several times" for item in items if (side, item.id) not in found}
    return found, alone


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()


def _find_contradiction(before: Item, after: Item) -> Reason | None:
    """What forbids a pair: the same question with another right answer, or of another level."""
    if before.gold is not None and after.gold is not None and before.gold != after.gold:
        return "another right answer"
    return "another level" if before.level != after.level else None


def find_differences(before: LoggedTask, after: LoggedTask) -> list[str]:
    """What both logs say of a task, each something else: `few-shot examples: 5 before, 0 after`."""
    return [
        f"{name}: {before.settings[name]} before, {after.settings[name]} after"
        for name in sorted(before.settings.keys() & after.settings.keys())
        if before.settings[name] != after.settings[name]
    ]


def find_unknown_settings(before: LoggedTask, after: LoggedTask) -> list[str]:
    """Settings that only one of the logs names, so that nobody can compare them."""
    return sorted(before.settings.keys() ^ after.settings.keys())
