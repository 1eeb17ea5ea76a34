"""Room for a completion, in tokens: from the answers that are measured, the graders, the tokenizers and the context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixwright.records import plain

if TYPE_CHECKING:
    from mixwright.config import MeasureConfig
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

LEAST, MOST = 16, 2048
"""Fewest and most tokens that are taken without being asked for."""
SOLUTION = 512
"""Tokens for a worked solution, where a grader reads a final answer out of it; GSM8K's own take at most 350 or so."""
HEADROOM = 1.25
"""Times the longest answer: a right answer may be said in more words."""


@dataclass(frozen=True, slots=True)
class Room:
    """How long completions may be."""

    tokens: int
    """Longest completion, its end token included."""
    why: str
    """What it was taken from, for people."""


def room_for(learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig) -> Room:
    """Longest completion that the items which are measured need.

    A grader that reads a final answer (`final_answer`, or a function of the user's) gets room for a worked solution.

    Args:
        learners: the models that are measured, whose tokenizers count; all get the same room.
        corpus: items are picked from it as measuring does.
        config: how many items.

    Raises:
        InputError: nothing to grade, or chat prompts without a chat template.
    """
    from mixwright.measure.passes import Passes

    items = Passes(learners[0], None, config, corpus).items
    texts = list({text for item in items for text in (item.answer or "", plain(item.target)) if text})
    longest = max(len(ids) for one in learners for ids in one.tokenizer(texts, add_special_tokens=False)["input_ids"])
    wanted = max(LEAST, 8 * math.ceil((HEADROOM * longest + 1) / 8))
    why = f"the longest answer of {len(items):,} items has {longest:,} tokens"
    reading = sorted({corpus.tasks[item.task].grader for item in items if _reads(corpus.tasks[item.task].grader)})
    if reading and wanted < SOLUTION:
        wanted, why = SOLUTION, f"{', '.join(reading)} may read a final answer out of a worked solution; {why}"
    if wanted > MOST:
        wanted, why = MOST, f"{why}, and no more than {MOST:,} is taken unasked"
    left = [(one.context - max(len(one.encode(item.prompt)) for item in items), one) for one in learners if one.context]
    rest, tightest = min(left, key=lambda pair: pair[0], default=(wanted, learners[0]))
    if rest < wanted:
        why = f"{tightest.name} has a context of {tightest.context:,} tokens, and the longest prompt stands in it; {why}"
        wanted = max(1, rest)
    return Room(wanted, why)


def _reads(grader: str) -> bool:
    """Whether a grader may read an answer out of a longer text: `final_answer`, and functions, of which nothing is known."""
    name = grader.partition("?")[0]
    return name == "final_answer" or ":" in name
