"""Room for a completion, in tokens: from the answers that are measured, and from those that the models end by themselves.

A few items are completed greedily with ever more room, until all have ended or more would take too long. What they need and
a quarter more is the room that all items get, on both sides of a comparison. Where most of them do not end, or nothing is
tried, the gold answers, the graders, the tokenizers and the context decide.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError, join_some
from mixwright.graders.follows import are_rules
from mixwright.measure.passes import Passes, evenly_spread, interleave
from mixwright.records import Example, from_data, plain

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
class CompletionLimit:
    """How long completions may be."""

    tokens: int
    """Longest completion, its end token included."""
    why: str
    """What it was taken from, for people."""
    continued: int = 0
    """Tokens to which a completion that reaches it is continued before it is graded; 0: it is not."""


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


def keep_fitting_corpus(
    learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig, asked_tokens: int | None = None
) -> tuple[Corpus, list[str]]:
    """The corpus without the rows to measure whose prompts leave no room for an answer, and a line that counts them.

    An answer needs as much as the longest one and its end, `MIN_TOKENS` tokens at least; a quarter of the context at most.

    Args:
        learners: as for `find_room`.
        corpus: its held-out rows are looked at, all of them where there are none.
        config: how many items.
        asked_tokens: tokens of a completion that were asked for; they are needed, then.

    Raises:
        InputError: most rows have too long a prompt; or as `find_room`.
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


def count_left_tokens(learners: Sequence[Learner], rows: Iterable[Example]) -> int | None:
    """Tokens that the tightest context leaves behind the longest prompt; None where no model has a limit of its context."""
    longest_rows = heapq.nlargest(PROMPTS_COUNTED, rows, key=lambda row: len(plain(row.prompt)))
    bounded = [(learner, learner.context) for learner in learners if learner.context]
    left = (context - max(len(learner.encode(row.prompt)) for row in longest_rows) for learner, context in bounded)
    return min(left, default=None)


def room_of_data(corpus: Corpus, items: Sequence[Example], longest: int, left_tokens: int | None) -> CompletionLimit:
    """Longest completion that items need by their answers.

    A grader that reads an answer out of a text (`final_answer`, `includes`, a function of the user's) gets room for a
    worked solution.

    Args:
        corpus: with the graders of the items.
        items: those that are measured.
        longest: tokens of their longest answer.
        left_tokens: as `count_left_tokens` has it.
    """
    tokens = max(MIN_TOKENS, 8 * math.ceil((HEADROOM_FACTOR * longest + 1) / 8))
    why = f"the longest answer to {len(items):,} items has {longest:,} tokens"
    reading = sorted(filter(_finds_answer_in_text, {corpus.tasks[item.task].grader for item in items}))
    if reading and tokens < SOLUTION_TOKENS:
        tokens, why = SOLUTION_TOKENS, f"{', '.join(reading)} may read the final answer of a worked solution; {why}"
    if tokens > MAX_TOKENS:
        tokens, why = MAX_TOKENS, f"{why}; the default is at most {MAX_TOKENS:,}"
    if left_tokens is not None and left_tokens < tokens:
        tokens = max(1, left_tokens)
        short = ", less than the longest answer and its end" if tokens < longest + 1 else ""
        why = f"the context leaves {left_tokens:,} tokens behind the longest prompt{short}; {why}"
    return CompletionLimit(tokens, why)


def longest_answer(learners: Sequence[Learner], corpus: Corpus, config: MeasureConfig) -> tuple[int, Sequence[Example]]:
    """Tokens of the longest answer or target of the items that are measured, and those items; rules are no answer."""
    items = Passes(learners[0], config, corpus).items
    texts = {text for item in items for text in (item.answer or "", plain(item.target)) if text and not are_rules(text)}
    encoded = [learner.tokenizer([*texts], add_special_tokens=False)["input_ids"] for learner in learners if texts]
    return max((len(ids) for answers in encoded for ids in answers), default=0), items


def _finds_answer_in_text(grader: str) -> bool:
    """Whether a grader may read an answer out of a longer text; of functions nothing is known."""
    name = grader.partition("?")[0]
    return name in ("final_answer", "includes") or ":" in name


def spread_items(items: Sequence[Example], count: int = COMPLETED_ITEMS) -> list[Example]:
    """At most `count` items, in turn one of each task, evenly over its levels."""
    tasks: dict[str, list[Example]] = {}
    for item in items:
        tasks.setdefault(item.task, []).append(item)
    per_task = math.ceil(count / max(len(tasks), 1))
    return interleave([evenly_spread(task_items, per_task) for task_items in tasks.values()])[:count]


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
) -> CompletionLimit:
    """Return the room for measuring these models.

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
    longest, picked = longest_answer(learners, corpus, config)
    left_tokens = count_left_tokens(learners, corpus if trained else picked)
    default_room = room_of_data(corpus, picked, longest, left_tokens)
    items = spread_items(picked)
    limit = None if left_tokens is None else max(1, left_tokens)
    say(f"answer length: each model completes {len(items):,} items without a limit")
    most_tokens = MAX_TOKENS if limit is None else min(MAX_TOKENS, limit)
    answers = [_kept_or_completed(learner, items, most_tokens, seconds) for learner in learners]
    return choose_room(answers, default_room, longest, limit)


def _kept_or_completed(learner: Learner, items: Sequence[Example], most_tokens: int, seconds: float) -> FreeAnswers:
    """Complete the items, or return what doing so showed when the measuring began that goes on: a clock decides it."""
    from mixwright.measure.kept_answers import KeepingLearner

    def make() -> dict[str, Any]:
        return asdict(complete_freely(learner, items, most_tokens, seconds))

    request = ["lengths of free answers", [learner.encode(item.prompt) for item in items], most_tokens]
    return from_data(FreeAnswers, learner.remember(request, make) if isinstance(learner, KeepingLearner) else make())


def choose_room(
    answers_by_model: Sequence[FreeAnswers], default_room: CompletionLimit, gold: int, limit: int | None = None
) -> CompletionLimit:
    """The room that answers need.

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
        return CompletionLimit(tokens, f"most answers do not stop; {default_room.why}")
    longest = max(needed_tokens)
    with_headroom = 8 * math.ceil(HEADROOM_FACTOR * longest / 8)
    tokens = max(MIN_TOKENS, gold + 1, with_headroom)
    items = max(len(answers.lengths) for answers in answers_by_model)
    why = f"of {items:,} trial answers the longest has {longest:,} tokens"
    if gold + 1 > with_headroom:
        why += f", and the longest gold answer {gold:,}"
    if limit is not None and tokens > limit:
        tokens, why = limit, f"limited by the context; {why}"
    continued = CONTINUED_FACTOR * tokens if limit is None else min(CONTINUED_FACTOR * tokens, limit)
    return CompletionLimit(tokens, why, continued if continued > tokens else 0)
