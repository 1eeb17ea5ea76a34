"""Room for a completion, in tokens: from the answers that are measured, the graders, the tokenizers and the context."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError, join_some
from mixwright.measure.passes import Passes
from mixwright.records import Example, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

LEAST_TOKENS, MOST_TOKENS = 16, 2048
"""Fewest and most tokens that are taken without being asked for."""
SOLUTION_TOKENS = 512
"""Tokens for a worked solution, where a grader reads a final answer out of it; GSM8K's own take at most 350 or so."""
PROMPTS_COUNTED = 2000
"""Prompts, the longest by characters, whose tokens are counted."""
HEADROOM = 1.25
"""Times the longest answer: a right answer may be said in more words."""


@dataclass(frozen=True, slots=True)
class Room:
    """How long completions may be."""

    tokens: int
    """Longest completion, its end token included."""
    why: str
    """What it was taken from, for people."""


def keep_fitting_corpus(
    learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig, asked_tokens: int | None = None
) -> tuple[Corpus, list[str]]:
    """The corpus without the rows to measure whose prompts leave no room for an answer, and a line that counts them.

    An answer needs as much as the longest one and its end, `LEAST_TOKENS` tokens at least; a quarter of the context at most.

    Args:
        learners: as for `room_for`.
        corpus: its held-out rows are looked at, all of them where there are none.
        config: how many items.
        asked_tokens: tokens of a completion that were asked for; they are needed, then.

    Raises:
        InputError: most rows have too long a prompt; or as `room_for`.
    """
    contexts = [one.context for one in learners if one.context]
    if not contexts:
        return corpus, []
    limit = min(contexts)
    needed = asked_tokens or min(max(LEAST_TOKENS, longest_answer(learners, corpus, config)[0] + 1), max(1, limit // 4))
    rows = corpus.measured()
    long = [
        (row, tokens)
        for row in rows
        if len(plain(row.prompt).encode()) > (limit - needed) // 2  # tokens are bytes at worst, beside the chat's own
        and (tokens := max(len(one.encode(row.prompt)) for one in learners)) + needed > limit
    ]
    if not long:
        return corpus, []
    (first, tokens), gone = long[0], Counter(row.task for row, _ in long)
    where = f"the first: {first.source or first.id} of task {first.task!r} with {tokens:,} tokens"
    lack = f"an answer of {needed:,} tokens in a context of {limit:,}"
    if 2 * len(long) > len(rows):
        remedy = "Shorten or leave out long prompts, take a model of a longer context, or fewer tokens: --max-new-tokens."
        raise InputError(f"prompts that leave room for {lack}", f"{len(long):,} of {len(rows):,} without; {where}", remedy)
    left = corpus.select(ids=[row.id for row in corpus if row.id not in {row.id for row, _ in long}])
    counts = join_some([f"{task} ({count:,})" for task, count in sorted(gone.items())])
    note = f"{len(long):,} of {len(rows):,} rows are left out, whose prompts leave no room for {lack}: {counts}; {where}"
    emptied_tasks = sorted(set(gone) - {row.task for row in left.select(split=None if rows is corpus else "eval")})
    return left, [note + (f"; nothing is left of {', '.join(emptied_tasks)}" if emptied_tasks else "")]


def room_for(learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig, *, for_training: bool = False) -> Room:
    """Longest completion that the items which are measured need.

    A grader that reads an answer out of a text (`final_answer`, `includes`, a function of the user's) gets room for a
    worked solution.

    Args:
        learners: the models that are measured, whose tokenizers count; all get the same room.
        corpus: items are picked from it as measuring does.
        config: how many items.
        for_training: completions are written to prompts of all rows, not only of those that are measured.

    Raises:
        InputError: nothing to grade, or chat prompts without a chat template.
    """
    longest, items = longest_answer(learners, corpus, config)
    tokens = max(LEAST_TOKENS, 8 * math.ceil((HEADROOM * longest + 1) / 8))
    why = f"the longest answer of {len(items):,} items has {longest:,} tokens"
    reading = sorted(filter(_finds_answer_in_text, {corpus.tasks[item.task].grader for item in items}))
    if reading and tokens < SOLUTION_TOKENS:
        tokens, why = SOLUTION_TOKENS, f"{', '.join(reading)} may read a final answer out of a worked solution; {why}"
    if tokens > MOST_TOKENS:
        tokens, why = MOST_TOKENS, f"{why}, and no more than {MOST_TOKENS:,} is taken unasked"
    rows = heapq.nlargest(PROMPTS_COUNTED, corpus if for_training else items, key=lambda row: len(plain(row.prompt)))
    ends = [(one.context, max(len(one.encode(row.prompt)) for row in rows), one) for one in learners if one.context]
    context, taken, tightest = min(ends, key=lambda end: end[0] - end[1], default=(0, 0, learners[0]))
    if context and context - taken < tokens:
        tokens = max(1, context - taken)
        short = ", less than the longest answer and its end" if tokens < longest + 1 else ""
        room = f"a context of {context:,} tokens, of which the longest prompt takes {taken:,}{short}"
        why = f"{tightest.name} has {room}; {why}"
    return Room(tokens, why)


def longest_answer(learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig) -> tuple[int, Sequence[Example]]:
    """Tokens of the longest answer or target of the items that are measured, and those items."""
    items = Passes(learners[0], None, config, corpus).items
    texts = list({text for item in items for text in (item.answer or "", plain(item.target)) if text})
    return max(len(ids) for one in learners for ids in one.tokenizer(texts, add_special_tokens=False)["input_ids"]), items


def _finds_answer_in_text(grader: str) -> bool:
    """Whether a grader may read an answer out of a longer text; of functions nothing is known."""
    name = grader.partition("?")[0]
    return name in ("final_answer", "includes") or ":" in name
