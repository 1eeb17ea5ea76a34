"""Lost answers asked once more: how many return when the first word of the earlier answer is given.

An item that was right before and is wrong after is asked of the later checkpoint again, greedily, with a completion that
begins with the first word of the answer before. The null gives the first word of another item's answer of the same task: it
has the form of an answer and knows nothing of the item, so that what the words themselves may have told is at most the
difference.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.measure.passes import Passes
from mixwright.records import Example
from mixwright.run.folder import RunFolder

MIN_LOST_ANSWERS, MOST_ASKED = 5, 200
"""Lost answers below which nothing is asked, and how many are asked at most."""
Rows = Sequence[Mapping[str, Any]]
"""Completions as a measuring writes them: example, task, answer, completion, score."""
FIRST_WORD = re.compile(r"\s*\S{1,200}")


@dataclass(frozen=True, slots=True)
class Returned:
    """How many lost answers return. Nothing is said of what a model knows."""

    lost: int
    """Items that were right before and are wrong after."""
    asked: int
    """Those that were asked again; fewer where there are many, or where the word gives the answer away."""
    returned: int
    """Those of them that are right then."""
    not_askable: int
    """Items not asked, because the first word has the answer in it, or leaves no room for more."""
    other_asked: int
    """Items asked with the first word of another item's answer of the same task: the null."""
    other_returned: int
    """Those of them that are right then."""


def returned_file(run: RunFolder) -> Path:
    """Where it is kept."""
    return run.path / "returned.json"


def lost_answers(before: Rows, after: Rows) -> list[str]:
    """Ids of the items that were right before and are wrong after, in an order that no result decides."""
    right = {row["example"] for row in before if row["score"] >= RIGHT_FROM_SCORE}
    lost = [row["example"] for row in after if row["example"] in right and row["score"] < RIGHT_FROM_SCORE]
    return sorted(lost, key=lambda example: hashlib.sha256(f"returned {example}".encode()).digest())


def returned(passes: Passes, before: Rows, after: Rows) -> Returned | None:
    """Ask the lost answers again; None for fewer than `MIN_LOST_ANSWERS`.

    Args:
        passes: the later checkpoint, its items and graders; nothing that it has made is used.
        before: greedy completions of the earlier one.
        after: greedy completions of the later one.
    """
    lost = lost_answers(before, after)
    if len(lost) < MIN_LOST_ANSWERS:
        return None
    words = {row["example"]: first_word(str(row["completion"])) for row in before if row["score"] >= RIGHT_FROM_SCORE}
    items = {item.id: item for item in passes.items}
    known: dict[str, list[str]] = defaultdict(list)
    for example in sorted(words):
        if example in items:
            known[items[example].task].append(example)
    chosen = [items[example] for example in lost[:MOST_ASKED] if example in items]
    own_words = [(item, word) for item in chosen if _fits(passes, item, word := words[item.id])]
    other_words = [
        (item, word) for item, _ in own_words if (word := _another(passes, item, known[item.task], words)) is not None
    ]
    right = [_right(passes, pairs) for pairs in (own_words, other_words)]
    return Returned(len(lost), len(own_words), right[0], len(chosen) - len(own_words), len(other_words), right[1])


def first_word(text: str) -> str:
    """The first word with the spaces before it; empty where there is none."""
    found = FIRST_WORD.match(text[:1000])
    return found.group() if found else ""


def _fits(passes: Passes, item: Example, word: str) -> bool:
    """Whether the word says something, leaves room, and neither has the answer in it nor is one."""
    gold = "".join((item.answer or "").split()).casefold()
    if not word.strip() or (gold and gold in "".join(word.split()).casefold()):
        return False
    if len(_tokens(passes, word)) >= passes.config.longest_completion:
        return False
    return passes.grades.grade(item, word, cut=False) < RIGHT_FROM_SCORE


def _another(passes: Passes, item: Example, known: Sequence[str], words: Mapping[str, str]) -> str | None:
    """The first word of the next item's answer of the same task that fits this item."""
    place = known.index(item.id)
    turned = [*known[place + 1 :], *known[:place]]
    return next((words[example] for example in turned if _fits(passes, item, words[example])), None)


def _right(passes: Passes, pairs: Sequence[tuple[Example, str]]) -> int:
    """How many are right when their completions begin with these words."""
    if not pairs:
        return 0
    prompts, words = [item.prompt for item, _ in pairs], [_tokens(passes, word) for _, word in pairs]
    sample_arguments = {"max_new_tokens": passes.config.longest_completion, "seed": passes.seed, "prefixes": words}
    made = passes.learner.sample(prompts, count=1, temperature=0, **sample_arguments)
    judged = [(item, best) for (item, _), (best,) in zip(pairs, made, strict=True)]
    return sum(passes.grades.grade(item, best.text, cut=not best.finished) >= RIGHT_FROM_SCORE for item, best in judged)


def _tokens(passes: Passes, word: str) -> list[int]:
    return list(passes.learner.tokenizer(word, add_special_tokens=False, verbose=False)["input_ids"])
