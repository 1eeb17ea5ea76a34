"""Answers that a model ends by itself: how long they are, before measuring begins.

A few items are completed greedily with ever more room, until all have ended or more would take too long. What they need and
a quarter more is the room that all items get, on both sides of a comparison.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.measure.option_answers import options_of
from mixwright.measure.passes import Passes, evenly_spread, interleave
from mixwright.measure.room import (
    HEADROOM_FACTOR,
    MAX_TOKENS,
    MIN_TOKENS,
    PROMPTS_COUNTED,
    CompletionLimit,
    longest_answer,
    room_for,
)
from mixwright.records import Example, from_data, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

COMPLETED_ITEMS = 16
"""Items that are completed, spread over the tasks."""
CPU_TOKENS, GPU_TOKENS = 2048, 65_536
"""Tokens that all of them may have together: some 20 s of a model of 100 million parameters on two cores, or of a large one
on a GPU. Tokens are counted and not seconds, so that the room is the same on a busy machine."""
MAX_SECONDS = 60.0
"""Longest that completing them should take for one model, however slow it is."""
FIRST_TOKENS = 32
"""Room of the first attempt; each further one has room for twice as many."""
CONTINUED_FACTOR = 4
"""Times the room to which a completion that reaches it is continued before it is graded."""


@dataclass(frozen=True, slots=True)
class FreeAnswers:
    """What completing a few items freely showed of one model."""

    lengths: tuple[int, ...]
    """Tokens of each item's answer, its end included; of one that did not end, those that were written."""
    ended: tuple[bool, ...]
    """Whether it ended by itself."""

    @property
    def needed_tokens(self) -> int | None:
        """Tokens of the longest answer that ended; None where most did not end."""
        ended_lengths = [length for length, ended in zip(self.lengths, self.ended, strict=True) if ended]
        return max(ended_lengths) if 2 * len(ended_lengths) >= len(self.lengths) and ended_lengths else None


def spread_items(items: Sequence[Example], count: int = COMPLETED_ITEMS) -> list[Example]:
    """At most `count` items, in turn one of each task, evenly over its levels."""
    tasks: dict[str, list[Example]] = {}
    for item in items:
        tasks.setdefault(item.task, []).append(item)
    per_task = math.ceil(count / max(len(tasks), 1))
    return interleave([evenly_spread(task_items, per_task) for task_items in tasks.values()])[:count]


def written_items(items: Sequence[Example], corpus: Corpus, config: MeasureConfig) -> list[Example]:
    """The items that are answered by writing, without those whose options are read."""
    options = options_of(items, corpus, config)
    return [item for item_index, item in enumerate(items) if item_index not in options]


def complete_freely(
    learner: Learner,
    items: Sequence[Example],
    most_tokens: int = MAX_TOKENS,
    seconds: float = MAX_SECONDS,
    clock: Callable[[], float] = monotonic,
) -> FreeAnswers:
    """Greedy answers to these items, with ever more room.

    Args:
        learner: the model.
        items: few.
        most_tokens: longest answer, tokens.
        seconds: that they may take, about.
        clock: seconds.

    Raises:
        InputError: as `Learner.sample`.
    """
    began, prompts = clock(), [item.prompt for item in items]
    limit = CPU_TOKENS if learner.device.type == "cpu" else GPU_TOKENS
    tokens: list[tuple[int, ...]] = [()] * len(items)
    ended = [False] * len(items)
    waiting_indices, token_room = list(range(len(items))), min(FIRST_TOKENS, most_tokens)
    while waiting_indices:
        prefixes = [tokens[item_index] for item_index in waiting_indices] if any(tokens) else None
        waiting_prompts = [prompts[item_index] for item_index in waiting_indices]
        completions = learner.sample(
            waiting_prompts, count=1, temperature=0, max_new_tokens=token_room, seed=0, prefixes=prefixes
        )
        for item_index, (best,) in zip(waiting_indices, completions, strict=True):
            tokens[item_index], ended[item_index] = tuple(best.token_ids), best.finished
        waiting_indices = [item_index for item_index in waiting_indices if not ended[item_index]]
        seconds_spent, written_tokens = clock() - began, sum(map(len, tokens))
        further_tokens = token_room * len(waiting_indices)
        if (
            token_room >= most_tokens
            or written_tokens + further_tokens > limit
            or seconds_spent + seconds_spent / max(written_tokens, 1) * further_tokens > seconds
        ):
            break
        token_room = min(2 * token_room, most_tokens)
    return FreeAnswers(tuple(map(len, tokens)), tuple(ended))


def find_room(
    learners: Sequence[Learner],
    corpus: Corpus,
    config: MeasureConfig,
    say: Callable[[str], None],
    *,
    trained: bool = False,
    seconds: float = MAX_SECONDS,
) -> tuple[CompletionLimit, int]:
    """Return the room for measuring these models, and to how many tokens longer completions are continued.

    Args:
        learners: the models that are measured; all get the same room.
        corpus: items are picked from it as measuring does.
        config: how many items.
        say: told what is done.
        trained: completions are written to prompts of all rows, not only of those that are measured.
        seconds: that completing the items may take for each model, about.

    Raises:
        InputError: nothing to grade, or chat prompts without a chat template.
    """
    default_room = room_for(learners, corpus, config, for_training=trained)
    picked = Passes(learners[0], None, config, corpus).items
    items = spread_items(written_items(picked, corpus, config))
    if not items:
        return replace(default_room, why="all answers are options chosen by log-probability"), 0
    rows = heapq.nlargest(PROMPTS_COUNTED, corpus if trained else picked, key=lambda row: len(plain(row.prompt)))
    tokens_left = [
        learner.context - max(len(learner.encode(row.prompt)) for row in rows) for learner in learners if learner.context
    ]
    limit = max(1, min(tokens_left)) if tokens_left else None
    say(f"answer length: each model completes {len(items):,} items without a limit")
    most_tokens = MAX_TOKENS if limit is None else min(MAX_TOKENS, limit)
    answers = [_kept_or_completed(learner, items, most_tokens, seconds) for learner in learners]
    gold = longest_answer(learners, corpus, config)[0]
    return choose_room(answers, default_room, gold, limit)


def _kept_or_completed(learner: Learner, items: Sequence[Example], most_tokens: int, seconds: float) -> FreeAnswers:
    """Complete the items, or return what doing so showed when the measuring began that goes on: a clock decides it."""
    from mixwright.measure.kept_answers import KeepingLearner

    def make() -> dict[str, Any]:
        return asdict(complete_freely(learner, items, most_tokens, seconds))

    request = ["lengths of free answers", [learner.encode(item.prompt) for item in items], most_tokens]
    return from_data(FreeAnswers, learner.remember(request, make) if isinstance(learner, KeepingLearner) else make())


def choose_room(
    answers_by_model: Sequence[FreeAnswers], default_room: CompletionLimit, gold: int, limit: int | None = None
) -> tuple[CompletionLimit, int]:
    """The room that answers need, and to how many tokens those that reach it are continued (0: they are not).

    Args:
        answers_by_model: of each model that is compared; all get the same room, the largest that one of them needs.
        default_room: where most answers of every model did not end by themselves.
        gold: tokens of the longest gold answer.
        limit: longest completion that the contexts leave room for; None for any.
    """
    needed_tokens = [answers.needed_tokens for answers in answers_by_model if answers.needed_tokens is not None]
    if not needed_tokens:
        longest_written = max((max(answers.lengths, default=0) for answers in answers_by_model), default=0)
        tokens = max(min(default_room.tokens, longest_written), min(default_room.tokens, gold + 1))
        return CompletionLimit(tokens, f"most answers do not stop; {default_room.why}"), 0
    longest = max(needed_tokens)
    tokens = max(MIN_TOKENS, gold + 1, 8 * math.ceil(HEADROOM_FACTOR * longest / 8))
    items = max(len(answers.lengths) for answers in answers_by_model)
    why = f"of {items:,} trial answers the longest has {longest:,} tokens"
    if gold + 1 > 8 * math.ceil(HEADROOM_FACTOR * longest / 8):
        why += f", and the longest gold answer {gold:,}"
    if limit is not None and tokens > limit:
        tokens, why = limit, f"limited by the context; {why}"
    continued = CONTINUED_FACTOR * tokens if limit is None else min(CONTINUED_FACTOR * tokens, limit)
    return CompletionLimit(tokens, why), continued if continued > tokens else 0
