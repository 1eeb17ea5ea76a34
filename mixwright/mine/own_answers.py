"""Rows to rehearse: those with a completion as they are, prompts without one with the model's own answer.

Answers are greedy, must end by themselves, and repeat neither themselves nor the prompt; those that are graded wrong are
left out where a gold answer is known. A task most of whose answers were cut gets twice the room, again and again up to a
limit: short rooms would keep only the kinds of answers that are short, and those alone would be rehearsed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.audit.leaks import find_leaks
from mixwright.corpus.chosen_graders import SENTENCE_GRADER
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.corpus.identity import prompt_key
from mixwright.corpus.proposed_graders import proposed_graders
from mixwright.corpus.rows import SCHEMA, decode
from mixwright.errors import InputError, join_some
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import Example, plain
from mixwright.words import copies_prompt, repeats_itself

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Completion, Learner

FIRST_ROOM_TOKENS = 32
"""Tokens of an answer that are tried first."""
TIMED_ROWS = 16
"""Requests that are answered between two looks at the clock."""
ENOUGH_ENDED_SHARE = 0.75
"""Share of a task's prompts whose answers must have ended before no more room is tried."""


@dataclass(frozen=True, slots=True)
class RehearsalRows:
    """Rows to rehearse, ready to be trained on."""

    rows: tuple[Example, ...]
    """With a completion each; `extra` has `parents` and `provenance`."""
    notes: tuple[str, ...]
    """What was left out, and what the model answered; a sentence each."""


def rehearsal_rows(
    corpus: Corpus,
    load: Callable[[], Learner],
    *,
    max_new_tokens: int = 256,
    seconds_left: Callable[[], float] | None = None,
) -> RehearsalRows:
    """The rows to rehearse of a corpus; the model is loaded where there are prompts without a completion.

    Args:
        corpus: with `rehearse` rows, held-out rows and training rows.
        load: gives the model that is to be trained.
        max_new_tokens: longest answer.
        seconds_left: as for `answer_prompts`.

    Raises:
        InputError: as `answer_prompts`.
    """
    ready, prompts, notes = usable_prompts(corpus)
    answered = RehearsalRows((), ())
    if prompts:
        answered = answer_prompts(load(), prompts, max_new_tokens=max_new_tokens, seconds_left=seconds_left)
        answered = _without_wrong_answers(answered, prompts, corpus)
    return RehearsalRows((*ready, *answered.rows), (*notes, *answered.notes))


def read_rows(path: Path) -> list[Example]:
    """Read a table with the columns of a corpus. Raises InputError for a file that is broken."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [decode(row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
    except (OSError, pa.ArrowException) as error:
        raise InputError("a table of rows", str(error)[:120], "Mine again.", file=path) from None


def usable_prompts(corpus: Corpus) -> tuple[list[Example], list[Example], list[str]]:
    """The rows to rehearse without those that stand in the held-out rows, or that repeat a training row or each other.

    A held-out row is recognised as the audit recognises a leak: the same, nearly the same, or with text around it.

    Returns:
        Rows that are ready (with a completion, or a pair where training rows are pairs), rows without a completion, and a
        sentence on each reason why others are left out.
    """

    def key_of(row: Example) -> Any:
        return prompt_key(row.prompt or row.target or "")

    splits = corpus.table["split"].to_pylist()
    rehearse_numbers = [number for number, split in enumerate(splits) if split == REHEARSE_SPLIT]
    if not rehearse_numbers:
        return [], [], []
    leaks = find_leaks(corpus) if "eval" in splits else None
    copied = None if leaks is None else leaks.copied | leaks.nearly_copied
    held_out, used_keys = (set(map(key_of, corpus.select(split=split))) for split in ("eval", "train"))
    usable: list[Example] = []
    left_out_counts: Counter[str] = Counter()
    for number in rehearse_numbers:
        row = corpus[number]
        key = key_of(row)
        if key in held_out or (copied is not None and copied[number]):
            left_out_counts["they are in the held-out rows"] += 1
        elif key in used_keys:
            left_out_counts["they repeat a training row or each other"] += 1
        else:
            used_keys.add(key)
            usable.append(row)
    notes = [
        f"{count} of {len(rehearse_numbers)} rows to replay are left out: {why}."
        for why, count in sorted(left_out_counts.items())
    ]
    ungraded_tasks = _ungraded_tasks(corpus) if any(row.answer is not None and row.target is None for row in usable) else ()
    usable = [
        replace(row, target=row.answer) if row.target is None and row.task in ungraded_tasks else row for row in usable
    ]
    pairs = trains_on_pairs(corpus)
    ready_ids = {row.id for row in usable if row.target is not None or (pairs and row.rejected is not None)}
    origin = "As it was given to rehearse."
    ready = [
        replace(row, extra={**row.extra, "parents": [row.id], "provenance": origin}) for row in usable if row.id in ready_ids
    ]
    return ready, [row for row in usable if row.id not in ready_ids], notes


def _ungraded_tasks(corpus: Corpus) -> set[str]:
    """Find tasks whose answers cannot be graded, such as texts of several sentences, and that no grader was named for."""
    proposals = proposed_graders(corpus.select(split=REHEARSE_SPLIT))
    return {task for task, proposal in proposals.items() if proposal.grader is None and corpus.graders[task] == "exact"}


def _without_wrong_answers(answered: RehearsalRows, prompts: Sequence[Example], corpus: Corpus) -> RehearsalRows:
    """Leave out own answers that are graded wrong, and count them; a prompt without a gold answer is not graded.

    An answer that states the gold answer in a sentence is right, too, whatever grader the task has.
    """
    prompt_by_id = {row.id: row for row in prompts}
    judges = [corpus, corpus.with_graders(dict.fromkeys(corpus.tasks, SENTENCE_GRADER))]

    def is_wrong(row: Example) -> bool:
        prompt, text = prompt_by_id[row.extra["parents"][0]], plain(row.target)
        return prompt.answer is not None and all(judge.grade(prompt, text) < RIGHT_FROM_SCORE for judge in judges)

    wrong_rows = list(filter(is_wrong, answered.rows))
    if not wrong_rows:
        return answered
    tasks = join_some([f"{task} {count}" for task, count in sorted(Counter(row.task for row in wrong_rows).items())])
    note = f"{len(wrong_rows)} of {len(answered.rows)} of the model's answers are left out because they are wrong: {tasks}."
    rows = tuple(row for row in answered.rows if row not in wrong_rows)
    return replace(answered, rows=rows, notes=(*answered.notes, note))


def trains_on_pairs(corpus: Corpus) -> bool:
    """Whether all training rows are pairs: pairs to rehearse stay pairs then."""
    train = corpus.select(split="train").table
    return bool(len(train)) and not train["rejected"].null_count


def answer_prompts(
    learner: Learner,
    prompts: Sequence[Example],
    *,
    max_new_tokens: int = 256,
    seconds_left: Callable[[], float] | None = None,
) -> RehearsalRows:
    """The model's own greedy answers that ended by themselves, as rows to train on.

    Args:
        learner: the model that is to be trained, before it is.
        prompts: rows without completions.
        max_new_tokens: longest answer, tokens; the room is doubled up to it.
        seconds_left: gives the time that is left; requests for which none is left stay unanswered. None sets no limit.

    Raises:
        InputError: chat prompts without a chat template.
    """
    context = learner.context
    prompt_tokens = {row.id: len(learner.encode(row.prompt)) for row in prompts} if context else {}
    answer_tokens = min(FIRST_ROOM_TOKENS, max_new_tokens)

    def with_room(rows: Sequence[Example]) -> list[Example]:
        return [row for row in rows if context is None or prompt_tokens[row.id] + answer_tokens <= context]

    shown = [row for row in prompts if not row.extra.get("tools")]
    waiting = fitting = with_room(shown)
    notes, copies = list[str](), 0
    if left_out := len(prompts) - len(shown):
        lack = "they have tools, which are not shown to the model here, so its answers would differ"
        notes.append(f"{left_out} of {len(prompts)} requests to replay are left out: {lack}.")
    if left_out := len(shown) - len(fitting):
        lack = f"they leave no room for an answer of {answer_tokens} tokens in the context of {context or 0:,}"
        notes.append(f"{left_out} of {len(prompts)} requests to replay are left out: {lack}.")
    prompt_counts = Counter(row.task for row in fitting)
    answers: dict[str, str] = {}
    ended = set[str]()
    ended_counts, room = Counter[str](), dict.fromkeys(prompt_counts, 0)
    seconds_per_token, unasked = 0.0, 0
    while waiting:
        part_count = 1 if seconds_left is None else math.ceil(len(waiting) / TIMED_ROWS)
        completions: list[tuple[Example, Completion]] = []
        for part in (waiting[start::part_count] for start in range(part_count)):  # each has all kinds
            seconds, tokens = math.inf if seconds_left is None else seconds_left(), len(part) * answer_tokens
            if seconds <= seconds_per_token * tokens:
                unasked += len(part)
                continue
            texts = learner.sample(
                [row.prompt for row in part], count=1, temperature=0, max_new_tokens=answer_tokens, seed=0
            )
            completions += [(row, completion) for row, (completion,) in zip(part, texts, strict=True)]
            seconds_per_token = 0.0 if seconds_left is None else (seconds - seconds_left()) / tokens
        room |= dict.fromkeys({row.task for row, _ in completions}, answer_tokens)
        for row, completion in completions:
            ended |= {row.id} if completion.finished else set()
            if completion.finished and copies_prompt(_last_message(row), completion.text, merely=True):
                copies += 1
            elif completion.finished and completion.text.strip() and not repeats_itself(completion.text):
                answers[row.id] = completion.text  # as it was written: after plain text it may begin with a space
        ended_counts = Counter(row.task for row in fitting if row.id in answers)
        if answer_tokens == max_new_tokens or unasked:
            break
        answer_tokens = min(2 * answer_tokens, max_new_tokens)
        unanswered = [
            row
            for row in waiting
            if row.id not in ended and ended_counts[row.task] < ENOUGH_ENDED_SHARE * prompt_counts[row.task]
        ]
        waiting = with_room(unanswered)
    rows = []
    for row in fitting:
        if row.id in answers:
            origin = {"parents": [row.id], "provenance": f"Greedy answer of {learner.name} before training."}
            blank = {"answer": None, "chosen": None, "rejected": None, "extra": {**row.extra, **origin}}
            identity = {"id": f"{row.id}:own", "source": "rehearsal", "split": REHEARSE_SPLIT}
            rows.append(replace(row, target=answers[row.id], **identity, **blank))
    if unasked:
        notes.append(
            f"{unasked} of {len(prompts)} requests are not answered in up to {answer_tokens} tokens: no time is left."
        )
    if copies:
        notes.append(f"{copies} of {len(fitting)} own answers are left out because they copy their prompt.")
    if fitting:
        by_task = sorted(
            (ended_counts[task] / count, f"{task} {ended_counts[task]} of {count}") for task, count in prompt_counts.items()
        )
        fewest = join_some([text for share, text in by_task if share < 1])
        left_out = f"; the others are left out ({fewest})" if fewest else ""
        notes.append(f"{len(answers)} of {len(fitting)} own answers ended within {max(room.values())} tokens{left_out}.")
    return RehearsalRows(tuple(rows), tuple(notes))


def _last_message(row: Example) -> str:
    """Return the text that an answer would copy."""
    return row.prompt if isinstance(row.prompt, str) else plain(row.prompt[-1:] if row.prompt else None)


def check_rehearsal(objective: str, corpus: Corpus) -> None:
    """Whether an objective can use rows to rehearse. Raises InputError: own answers have no rejected side for DPO."""
    rows = corpus.select(split=REHEARSE_SPLIT)
    if len(rows) and objective == "grpo":
        remedy = "Leave it out: for GRPO a plan replays by its weights (plan.options: mastered_share)."
        raise InputError("rows to replay (corpus.rehearse) for SFT", "the objective grpo", remedy)
    if len(rows) and objective == "dpo" and rows.table["rejected"].null_count:
        got = f"{rows.table['rejected'].null_count} of {len(rows)} rows to replay without a rejected answer"
        raise InputError("pairs to replay for DPO", got, "Use pairs, or leave corpus.rehearse out.")
    if len(rows) and (first_row := next(iter(corpus.select(split="train")), None)) is not None:
        form = _describe_prompt_kind(first_row)
        if other_row := next((row for row in rows if _describe_prompt_kind(row) != form), None):
            got = f"{_describe_prompt_kind(other_row)} at {other_row.source or other_row.id}"
            expected, remedy = (
                "rows to replay in the format of the training rows",
                "Write all rows in the same format, because a trainer takes only one.",
            )
            raise InputError(f"{expected}, {form}", got, remedy)
    incomplete = sum(row.rejected is not None and row.target is None for row in rows) if objective == "sft" else 0
    if incomplete and trains_on_pairs(corpus):
        remedy = "Add completions, or leave the column of rejected answers out (corpus.columns)."
        raise InputError("rows to replay with completions for SFT", f"{incomplete} of {len(rows)} that are pairs", remedy)


def _describe_prompt_kind(row: Example) -> str:
    if not row.prompt:
        return "text without a prompt"
    return "prompts as plain text" if isinstance(row.prompt, str) else "prompts as chat messages"
