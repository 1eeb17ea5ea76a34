"""Pairs of the items of two logs: by what was asked, then by id; what has no partner is named and set apart.

Source: answers of two logs (`entries.py`). Items pair where their prompts are the same text; several items of one prompt by
    their ids among each other; where a log has no prompts, or blank ones, by id alone.
Unit: items; several answers to one item are samples of it.
Cost: one pass over both logs.
Blind spot: where a log has no prompts, another prompt under the same id goes unseen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mixwright.logs.entries import EvaluationLog, LoggedAnswer

Reason = Literal["another prompt", "another right answer", "another level", "the same prompt several times", "no such item"]
"""Why an item has no partner."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item, with the answers to it in one log or in two."""

    id: str
    """In its task and its log; of two logs that in BEFORE."""
    task: str
    """Name of the task."""
    level: float | None
    """Difficulty."""
    prompt: str | None
    """What was asked; None for a blank text, too."""
    gold: str | None
    """The right answer."""
    answers: tuple[tuple[LoggedAnswer, ...], ...]
    """Of each log, in the order of the logs: samples, by name."""

    @property
    def options(self) -> tuple[str, ...]:
        """Texts of the options, where there are any."""
        return next((answer.options for own in self.answers for answer in own if answer.options), ())


@dataclass(frozen=True, slots=True)
class PairedTask:
    """One task of two logs."""

    pairs: tuple[Item, ...]
    """Items that both models answered, sorted by id."""
    before_alone: Mapping[str, Reason]
    """Id of an item of BEFORE that has no partner -> why."""
    after_alone: Mapping[str, Reason]
    """The same of AFTER."""
    by_id: int
    """Pairs that were found by id alone, since they have no prompts of their own."""


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
    first = ordered[0]
    prompt = first.prompt if first.prompt and first.prompt.strip() else None
    return Item(name, first.task, first.level, prompt, first.gold, (ordered,))


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
        name: pair_task(collect_items(old[name]), collect_items(new[name]))
        for name in sorted(old.keys() & new.keys())
        if old[name] and new[name]
    }


def pair_task(before: Mapping[str, Item], after: Mapping[str, Item]) -> PairedTask:
    """The items of one task, paired. The order of items does not matter."""
    partners: dict[str, tuple[str, bool]] = {}  # id before -> id after, and whether it was found by id
    alone: tuple[dict[str, Reason], dict[str, Reason]] = ({}, {})
    old_ids, new_ids = map(_group_by_prompt, (before, after))
    for prompt in old_ids.keys() & new_ids.keys():
        old, new = old_ids[prompt], new_ids[prompt]
        is_several = max(len(old), len(new)) > 1
        found = {key: key for key in {*old} & {*new}} if is_several else {old[0]: new[0]}
        partners |= {one: (other, is_several) for one, other in found.items()}
        alone[0].update(dict.fromkeys({*old} - {*found}, "the same prompt several times"))
        alone[1].update(dict.fromkeys({*new} - {*found.values()}, "the same prompt several times"))
    taken = {other for other, _ in partners.values()}
    for key in (before.keys() & after.keys()) - partners.keys() - taken:
        if before[key].prompt is None or after[key].prompt is None:
            partners[key] = (key, True)
        else:
            for reasons in alone:
                reasons.setdefault(key, "another prompt")
    paired: list[tuple[str, str]] = []
    for one, (other, _) in partners.items():
        if reason := _find_contradiction(before[one], after[other]):
            alone[0][one] = alone[1][other] = reason
        else:
            paired.append((one, other))
    pairs = tuple(_join(before[one], after[other]) for one, other in sorted(paired))
    by_id = sum(partners[one][1] for one, _ in paired)
    before_alone = _name_alone(before, {one for one, _ in paired}, alone[0])
    after_alone = _name_alone(after, {other for _, other in paired}, alone[1])
    return PairedTask(pairs, before_alone, after_alone, by_id)


def _join(before: Item, after: Item) -> Item:
    """One item with the answers of both logs."""
    prompt = after.prompt if before.prompt is None else before.prompt
    gold = after.gold if before.gold is None else before.gold
    return replace(before, prompt=prompt, gold=gold, answers=(*before.answers, *after.answers))


def _group_by_prompt(items: Mapping[str, Item]) -> dict[str, list[str]]:
    """Prompt -> ids of the items that it was asked for."""
    ids: dict[str, list[str]] = defaultdict(list)
    for item in items.values():
        if item.prompt is not None:
            ids[item.prompt].append(item.id)
    return ids


def _name_alone(items: Mapping[str, Item], paired: set[str], reasons: Mapping[str, Reason]) -> dict[str, Reason]:
    return {key: reasons.get(key, "no such item") for key in sorted(items.keys() - paired)}


def _find_contradiction(before: Item, after: Item) -> Reason | None:
    """What forbids a pair: the same question with another right answer, or of another level."""
    if before.gold is not None and after.gold is not None and before.gold != after.gold:
        return "another right answer"
    return "another level" if before.level != after.level else None
