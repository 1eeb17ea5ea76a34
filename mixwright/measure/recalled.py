"""What the later model still knows behind its former words: lost answers, begun as the earlier model began them.

An answer that was right before and is wrong now is cut just before the right answer in it. The later model reads that
beginning with the right answer behind it, and with right answers to other questions of the task. Where it goes on rightly,
the answer is covered by another form; where it does not, it is gone.

Source: forced prefixes; no hand-written sentence, the beginning is the earlier model's own.
Unit: `completed`, 1 where every token of the right answer is the likeliest; `recalled`, share of the others that it beats.
Cost: a forward pass per answer and other answer, `MAX_ITEMS` times `RIVALS + 1` short ones.
Blind spot: answers that begin with the right answer; a beginning that gives it away; longer answers are less probable.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixwright.answers.table import Answers
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.intervals import sign_test
from mixwright.graders.follows import are_rules
from mixwright.measure.passes import interleave
from mixwright.records import Text

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

MAX_ITEMS, RIVALS, MIN_BEGINNING = 48, 3, 2
"""Lost answers that are read, over all tasks in turn; other answers to each; tokens before the right answer, at least."""
ALPHA = 0.05
"""Probability of so many lost answers beside gained ones by chance, below which a task fell and is read."""


class _Lost(NamedTuple):
    """A lost answer to read."""

    item: str
    beginning: list[int]
    """Tokens of the earlier answer up to the right answer in it."""
    endings: list[list[int]]
    """Tokens of the right answer, and of others."""


def read_recalled(learner: Learner, prompts: Mapping[str, Text], before: Answers, after: Answers) -> Answers:
    """Return the later answers with what its model still knows of lost ones, in `recalled` and `completed`.

    Args:
        learner: the later model, which reads the same tokens as the earlier one.
        prompts: by item.
        before: the earlier model's, with their tokens.
        after: its own.
    """
    former = before.first_rows()
    lost = _choose_lost(former, after.first_rows())
    golds: dict[str, list[str]] = defaultdict(list)
    for row in former:
        if row["answer"] and not are_rules(row["answer"]) and row["answer"] not in golds[row["task"]]:
            golds[row["task"]].append(row["answer"])
    read = []
    for row in lost:
        if row["example"] in prompts and (cut := _cut_before_gold(learner, row)) is not None:
            beginning, space = cut
            others = [gold for gold in golds[row["task"]] if gold.casefold() != row["answer"].casefold()]
            others = sorted(others, key=lambda gold: _order(gold + row["example"]))[:RIVALS]
            endings = [_encode(learner, space + gold) for gold in (row["answer"], *others)]
            read.append(_Lost(row["example"], beginning, endings))
    if not read:
        return after
    completed, recalled = (np.full(len(after.table), np.nan) for _ in range(2))
    first_row = {item: row for row, item in reversed(list(enumerate(after.table["item"].to_pylist())))}
    rows = [first_row[one.item] for one in read]
    completed[rows], recalled[rows] = _complete(learner, prompts, read), _beat(learner, prompts, read)
    return after.with_columns(after.header, completed=completed, recalled=recalled)


def _choose_lost(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Former answers that were right, whose later ones are wrong, of tasks that fell; in an order that no result decides."""
    later = {row["example"]: (row["score"] or 0.0) >= RIGHT_FROM_SCORE for row in after}
    lost, gained = defaultdict[str, list[Mapping[str, Any]]](list), Counter[str]()
    for row in sorted(before, key=lambda row: _order(row["example"])):
        was_right, is_right = (row["score"] or 0.0) >= RIGHT_FROM_SCORE, later.get(row["example"])
        gained[row["task"]] += int(is_right is True and not was_right)
        if was_right and is_right is False and row["tokens"] and row["answer"] and not are_rules(row["answer"]):
            lost[row["task"]].append(row)
    fell = [rows for task, rows in lost.items() if sign_test(len(rows), gained[task]) < ALPHA]
    return interleave(fell)[:MAX_ITEMS]


def _order(text: str) -> bytes:
    return hashlib.sha256(f"recalled {text}".encode()).digest()


def _cut_before_gold(learner: Learner, row: Mapping[str, Any]) -> tuple[list[int], str] | None:
    """Tokens of an answer up to the right answer where it stands last, and the space between; None without a beginning."""
    tokens, place = list(row["tokens"]), row["completion"].lower().rfind(row["answer"].lower())
    if place < 0:
        return None
    whole = learner.tokenizer.decode(tokens, skip_special_tokens=True)
    place -= len(row["completion"]) - len(whole)  # a tag of the prompt's stands before it
    written = [len(learner.tokenizer.decode(tokens[:count], skip_special_tokens=True)) for count in range(len(tokens) + 1)]
    count = max(count for count, length in enumerate(written) if length <= place)
    return (tokens[:count], whole[written[count] : place]) if count >= MIN_BEGINNING else None


def _encode(learner: Learner, text: str) -> list[int]:
    return list(learner.tokenizer(text, add_special_tokens=False)["input_ids"])


def _complete(learner: Learner, prompts: Mapping[str, Text], read: Sequence[_Lost]) -> list[bool]:
    """Whether the model, writing greedily behind each beginning, writes the right answer."""
    found = [False] * len(read)
    texts = [one.beginning + one.endings[0] for one in read]
    for place, table in learner.distributions([prompts[one.item] for one in read], texts):
        likeliest = table[len(read[place].beginning) :].argmax(dim=-1).tolist()
        found[place] = likeliest == read[place].endings[0]
    return found


def _beat(learner: Learner, prompts: Mapping[str, Text], read: Sequence[_Lost]) -> list[float]:
    """Share of the other answers that are less probable behind each beginning than the right one; NaN without any."""
    jobs = [(place, one, ending) for place, one in enumerate(read) for ending in one.endings]
    logprobs = learner.logprobs(
        [prompts[one.item] for _, one, _ in jobs], [one.beginning + ending for _, one, ending in jobs]
    )
    sums: list[list[float]] = [[] for _ in read]
    for (place, one, _), own in zip(jobs, logprobs, strict=True):
        sums[place].append(sum(own[len(one.beginning) :]))
    return [float(np.mean([own > other for other in others])) if others else float("nan") for own, *others in sums]
