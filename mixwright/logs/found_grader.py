"""Built-in grader that repeats a harness's scores, so that answers can also be graded on other prompts.

It is the one that agrees best in the log where it agrees less; one below `MIN_AGREEMENT` is never taken.
Source: completions, right answers and scores of the log.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mixwright.corpus.proposed_graders import propose_grader
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.graders import Grader, load_grader
from mixwright.graders.final_answer import FinalAnswer
from mixwright.logs.entries import LoggedAnswer
from mixwright.logs.judged import JudgedTask
from mixwright.logs.pairing import Item
from mixwright.records import Example

MIN_AGREEMENT, MIN_KIND_AGREEMENT = 0.98, 0.95
"""Share of a log's scores that a grader has to repeat, and share of those that are right, and of those that are wrong."""
MAX_ANSWERS_TRIED = 2000
"""Answers of a task in each log that graders are tried on, evenly spread."""
FEW_ANSWERS, HOPELESS = 100, 0.8
"""Answers that are tried first, and share of agreement on them below which a grader is given up: one that repeats 98 % of
the scores falls below it on fewer than one in 10^15 draws of 100."""
PLAIN_GRADERS, OTHER_GRADERS = ("exact", "numeric"), ("final_answer", "includes")
"""Graders that are tried before and after the one that the right answers look like: those that read least come first."""
BASES = ("reading", "completion")
"""What of an answer is graded: what the harness read out of it, else the whole."""
NO_TEXTS = "the log has no right answers next to the answers"


@dataclass(frozen=True, slots=True)
class FoundGrader:
    """A grader that repeats a harness's scores."""

    name: str
    """Of the grader."""
    basis: str
    """What it grades: `reading` or `completion`."""
    agreement: float
    """Share of scores that it repeats, in the log in which it repeats fewer."""
    judge: Grader
    """Itself."""
    examples: Sequence[Example]
    """The items, with right answers as it compares them."""

    def grade(self, example: Example, completion: str, *, cut: bool = False) -> float:
        """Score of an answer to one of them, 0..1; no limit of time, since the grader is our own and no text hangs it."""
        return self.judge.grade_cut(example, completion) if cut else self.judge.grade(example, completion)


def find_grader(task: JudgedTask) -> FoundGrader | str:
    """The grader that agrees with the scores of every log; in words why there is none."""
    sides = range(len(task.items[0].answers))
    answers = [answer for item in task.items for own in item.answers for answer in own]
    known = [basis for basis in BASES if all(text_of(answer, task.metric, basis) is not None for answer in answers)]
    if not known or any(item.gold is None for item in task.items):
        return NO_TEXTS
    if any(score not in (0.0, 1.0) for item in task.items for side in sides for score in task.scores(item, side)):
        return f"{task.metric} is not 0 or 1 for every answer"
    whole = [to_example(item) for item in task.items]
    best: FoundGrader | None = None
    for basis in known:
        for rows, name in _list_candidates(task, whole):
            tried = FoundGrader(name, basis, 0.0, _load_grader(name), rows)
            agreement = _find_agreement(task, tried)
            if agreement >= MIN_AGREEMENT and (best is None or agreement > best.agreement):
                best = replace(tried, agreement=agreement)
            if agreement == 1.0:
                break
        if best is not None:
            return best
    return f"no built-in grader reproduces {MIN_AGREEMENT:.0%} of the scores ({task.metric})"


def _list_candidates(task: JudgedTask, whole: Sequence[Example]) -> Iterator[tuple[Sequence[Example], str]]:
    """Items, as a grader compares them, with the grader's name; most tasks need the first alone, so others are made late."""
    if all(len(item.options) > 1 for item in task.items):
        yield whole, "choice"
    short: list[Example] | None = None
    for name in PLAIN_GRADERS:
        yield whole, name
        # `so 6 + 2 = 8 #### 8` is compared as 8, which is quicker and what the harness reads out of it, too
        short = short or [replace(row, answer=FinalAnswer().reading(row.answer or "")) for row in whole]
        yield short, name
    for name in dict.fromkeys(filter(None, (propose_grader(whole).grader, *OTHER_GRADERS))):
        yield whole, name


def to_example(item: Item) -> Example:
    """An item as a row of a corpus."""
    extra = {"options": list(item.options)} if item.options else {}
    return Example(item.id, item.task, item.prompt or "", answer=item.gold, level=item.level, extra=extra)


def text_of(answer: LoggedAnswer, metric: str, basis: str) -> str | None:
    """Text of an answer that a grader reads, None if the log does not have it."""
    return answer.readings.get(metric) if basis == "reading" else answer.completion


_load_grader = functools.cache(load_grader)


def _find_agreement(task: JudgedTask, grader: FoundGrader) -> float:
    """Share of scores that a grader repeats, in the log where it is less; 0 where it misses a kind of score, or the gold."""
    examples, shares = grader.examples, list[float]()
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for side in range(len(task.items[0].answers)):
        rows = [
            (example, text_of(answer, task.metric, grader.basis) or "", score >= RIGHT_FROM_SCORE)
            for item, example in zip(task.items, examples, strict=True)
            for answer, score in zip(item.answers[side], task.scores(item, side), strict=True)
        ]
        rows = rows[:: max(1, -(-len(rows) // MAX_ANSWERS_TRIED))]
        few = rows[:: max(1, len(rows) // FEW_ANSWERS)]
        if _share([(grader.grade(example, text) >= RIGHT_FROM_SCORE) == right for example, text, right in few]) < HOPELESS:
            return 0.0
        agreed = [(right, (grader.grade(example, text) >= RIGHT_FROM_SCORE) == right) for example, text, right in rows]
        shares.append(_share([same for _, same in agreed]))
        for right, same in agreed:
            hits[right].append(same)
    golds = examples[:: max(1, -(-len(examples) // MAX_ANSWERS_TRIED))]
    kinds = [[grader.grade(example, example.answer or "") >= RIGHT_FROM_SCORE for example in golds], *hits.values()]
    if any(kind and _share(kind) < MIN_KIND_AGREEMENT for kind in kinds):
        return 0.0
    return min(shares)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)
