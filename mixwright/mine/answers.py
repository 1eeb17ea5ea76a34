"""Answers of the model to training prompts, graded, and what pairs are made of them: margins, new rows, and their null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.mine.pairing import Candidate
from mixwright.records import Example, Text

if TYPE_CHECKING:
    from mixwright.corpus.timed_grades import TimedGrades
    from mixwright.learner.learner import Completion, Learner

MOST_NULL_ANSWERS_TRIED = 16
"""Answers to other prompts that are tried for the null of a pair."""


@dataclass(frozen=True)
class Answers:
    """What the model wrote for one prompt: different texts, each with whether it was cut."""

    right: dict[str, bool]
    """Those with full marks."""
    wrong: dict[str, bool]
    """All others."""


def shared_room(learner: Learner, rows: Sequence[Example], wanted: int) -> int:
    """Tokens that every prompt leaves room for. Raises InputError where that is none."""
    if learner.context is None:
        return wanted
    left = learner.context - max(len(learner.encode(row.prompt)) for row in rows)
    if left < 1:
        raise InputError(f"prompts of fewer than {learner.context} tokens", f"{learner.context - left}", "Shorten them.")
    return min(wanted, left)


def judge_answers(row: Example, written: Sequence[Completion], grades: TimedGrades) -> Answers:
    """Different answers to one prompt; of those that were cut only the wrong ones."""
    found = Answers({}, {})
    for made in written:
        cut = not made.finished
        right = grades.grade(row, made.text, cut=cut) >= RIGHT_FROM_SCORE
        if right and cut:
            continue  # whether the rest would have been right is not known
        (found.right if right else found.wrong).setdefault(made.text, cut)
    return found


def count_answer_tokens(learner: Learner, text: str) -> int:
    """Tokens of an answer, without the end token."""
    return len(learner.tokenizer(text, add_special_tokens=False)["input_ids"])


def margins_of(learner: Learner, rows: Sequence[Example], pairs: Sequence[Candidate]) -> np.ndarray:
    """Log-probability of the rejected answer minus that of the chosen one, nats, shape (pairs,)."""
    from mixwright.learner.warmup import completion_tokens

    prompts = [rows[pair.place].prompt for pair in pairs]
    sums = [
        np.array([sum(own) for own in learner.logprobs(prompts, [completion_tokens(learner, text) for text in side])])
        for side in ([pair.rejected for pair in pairs], [pair.chosen for pair in pairs])
    ]
    return sums[0] - sums[1]


def _as_completion(prompt: Text, text: str) -> Text:
    return text if isinstance(prompt, str) else ({"role": "assistant", "content": text},)


def pair_example(row: Example, pair: Candidate, margin: float) -> Example:
    """The new row: prompt and answer of its parent, both answers, and how it was made."""
    by = "both written by the model" if pair.own else "one of them from the data or edited"
    extra: dict[str, Any] = {
        **row.extra,
        "parents": [row.id],
        "provenance": f"A right and a wrong answer to one prompt, {by}.",
        "error_class": pair.kind,
        "closeness": round(pair.closeness, 4),
        "margin": round(margin, 4),
    }
    chosen, rejected = (_as_completion(row.prompt, text) for text in (pair.chosen, pair.rejected))
    return replace(row, id=f"{row.id}:pair", target=chosen, chosen=chosen, rejected=rejected, source="pairs", extra=extra)


def null_of(
    rows: Sequence[Example],
    answers: Sequence[Answers],
    made: Sequence[Example],
    pairs: Sequence[Candidate],
    grades: TimedGrades,
    rng: np.random.Generator,
) -> tuple[Example, ...]:
    """The same prompts and chosen answers, with wrong answers to other prompts of the task; empty where one lacks any."""
    pools: dict[str, list[tuple[int, str]]] = {}
    for place, own in enumerate(answers):
        pools.setdefault(rows[place].task, []).extend((place, text) for text, cut in own.wrong.items() if not cut)
    found = []
    for example, pair in zip(made, pairs, strict=True):
        pool = [text for place, text in pools[example.task] if place != pair.place]
        order = (pool[at] for at in rng.permutation(len(pool)).tolist()[:MOST_NULL_ANSWERS_TRIED])
        other = next((t for t in order if grades.grade(rows[pair.place], t) < RIGHT_FROM_SCORE and t != pair.chosen), None)
        if other is None:
            return ()
        kept = {name: example.extra[name] for name in example.extra if name not in ("error_class", "closeness", "margin")}
        extra = {**kept, "provenance": "A right answer, and a wrong one that was given to another prompt of the task."}
        found.append(
            replace(example, id=f"{example.id}:random", rejected=_as_completion(example.prompt, other), extra=extra)
        )
    return tuple(found)
