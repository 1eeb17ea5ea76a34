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
from mixwright.graders.follows import are_rules
from mixwright.measure.passes import Passes
from mixwright.records import Example, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

MIN_TOKENS, MAX_TOKENS = 16, 2048
"""Fewest and most tokens that are taken without being asked for."""
SOLUTION_TOKENS = 512
"""Tokens for a worked solution, where a grader reads a final answer out of it; GSM8K's own take at most 350 or so."""
PROMPTS_COUNTED = 2000
"""Prompts, the longest by characters, whose tokens are counted."""
HEADROOM_FACTOR = 1.25
"""Times the longest answer: a right answer may be said in more words."""


@dataclass(frozen=True, slots=True)
class CompletionLimit:
    """How long completions may be."""

    tokens: int
    """Longest completion, its end token included."""
    why: str
    """What it was taken from, for people."""


def keep_fitting_corpus(
    learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig, asked_tokens: int | None = None
) -> tuple[Corpus, list[str]]:
    """The corpus without the rows to measure whose prompts leave no room for an answer, and a line that counts them.

    An answer needs as much as the longest one and its end, `MIN_TOKENS` tokens at least; a quarter of the context at most.

    Args:
        learners: as for `room_for`.
        corpus: its held-out rows are looked at, all of them where there are none.
        config: how many items.
        asked_tokens: tokens of a completion that were asked for; they are needed, then.

    Raises:
        InputError: most rows have too long a prompt; or as `room_for`.
    """
    contexts = [learner.context for learner in learners if learner.context]
    if not contexts:
        return corpus, []
    limit = min(contexts)
    needed_tokens = asked_tokens or min(max(MIN_TOKENS, longest_answer(learners, corpus, config)[0] + 1), max(1, limit // 4))
    rows = corpus.measured()
    long_rows = [
        (row, tokens)
        for row in rows
        if len(plain(row.prompt).encode()) > (limit - needed_tokens) // 2  # tokens are bytes at worst, beside the chat's own
        and (tokens := max(len(learner.encode(row.prompt)) for learner in learners)) + needed_tokens > limit
    ]
    if not long_rows:
        return corpus, []
    (first_row, tokens), left_out_counts = long_rows[0], Counter(row.task for row, _ in long_rows)
    row_text = f"the first: {first_row.source or first_row.id} of task {first_row.task!r} with {tokens:,} tokens"
    room = f"an answer of {needed_tokens:,} tokens in a context of {limit:,}"
    if 2 * len(long_rows) > len(rows):
        remedy = "Shorten or remove long prompts, use a model with a longer context, or lower --max-new-tokens."
        raise InputError(
            f"prompts that leave room for {room}", f"{len(long_rows):,} of {len(rows):,} that do not; {row_text}", remedy
        )
    fitting_corpus = corpus.select(ids=[row.id for row in corpus if row.id not in {row.id for row, _ in long_rows}])
    counts = join_some([f"{task} ({count:,})" for task, count in sorted(left_out_counts.items())])
    note = f"{len(long_rows):,} of {len(rows):,} rows are left out, because their prompts leave no room for {room}: "
    note += f"{counts}; {row_text}"
    emptied_tasks = sorted(
        set(left_out_counts) - {row.task for row in fitting_corpus.select(split=None if rows is corpus else "eval")}
    )
    return fitting_corpus, [note + (f"; no rows are left of {', '.join(emptied_tasks)}" if emptied_tasks else "")]


def room_for(
    learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig, *, for_training: bool = False
) -> CompletionLimit:
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
    tokens = max(MIN_TOKENS, 8 * math.ceil((HEADROOM_FACTOR * longest + 1) / 8))
    why = f"the longest answer to {len(items):,} items has {longest:,} tokens"
    reading = sorted(filter(_finds_answer_in_text, {corpus.tasks[item.task].grader for item in items}))
    if reading and tokens < SOLUTION_TOKENS:
        tokens, why = SOLUTION_TOKENS, f"{', '.join(reading)} may read the final answer of a worked solution; {why}"
    if tokens > MAX_TOKENS:
        tokens, why = MAX_TOKENS, f"{why}; the default is at most {MAX_TOKENS:,}"
    rows = heapq.nlargest(PROMPTS_COUNTED, corpus if for_training else items, key=lambda row: len(plain(row.prompt)))
    contexts = [
        (learner.context, max(len(learner.encode(row.prompt)) for row in rows), learner)
        for learner in learners
        if learner.context
    ]
    context, prompt_tokens, tightest = min(contexts, key=lambda end: end[0] - end[1], default=(0, 0, learners[0]))
    if context and context - prompt_tokens < tokens:
        tokens = max(1, context - prompt_tokens)
        short = ", less than the longest answer and its end" if tokens < longest + 1 else ""
        room = f"a context of {context:,} tokens, of which the longest prompt takes {prompt_tokens:,}{short}"
        why = f"{tightest.name} has {room}; {why}"
    return CompletionLimit(tokens, why)


def longest_answer(learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig) -> tuple[int, Sequence[Example]]:
    """Tokens of the longest answer or target of the items that are measured, and those items; rules are no answer."""
    items = Passes(learners[0], None, config, corpus).items
    texts = {text for item in items for text in (item.answer or "", plain(item.target)) if text and not are_rules(text)}
    encoded = [learner.tokenizer([*texts], add_special_tokens=False)["input_ids"] for learner in learners if texts]
    return max((len(ids) for answers in encoded for ids in answers), default=0), items


def _finds_answer_in_text(grader: str) -> bool:
    """Whether a grader may read an answer out of a longer text; of functions nothing is known."""
    name = grader.partition("?")[0]
    return name in ("final_answer", "includes") or ":" in name
