"""Answers of an evaluation log as a table, with S and chance levels where a grader of ours repeats the harness's scores.

Source: judged tasks (`judged.py`) and the grader that was found for each (`found_grader.py`).
Unit: shares.
Cost: linear in the answers; with a grader, each answer is graded on up to 64 other items of its cell.
Blind spot: a grader that agrees on own prompts may disagree on others; success itself is always the harness's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixwright.answers.nulls import add_nulls
from mixwright.answers.table import Answers, Header
from mixwright.corpus.cells import chance_rules
from mixwright.corpus.proposed_graders import propose_grader
from mixwright.graders import load_grader
from mixwright.logs.found_grader import FoundGrader, text_of, to_example
from mixwright.logs.judged import JudgedTask


def answers_of(task: JudgedTask, side: int, decoding: str, grader: FoundGrader | None, form: str) -> Answers:
    """Answers to one task in one log.

    Args:
        task: what is judged.
        side: which of the logs.
        decoding: `greedy` or `sampled`.
        grader: what repeats the scores; None if nothing does.
        form: of the log.
    """
    rows: list[dict[str, Any]] = []
    form_grader = propose_grader([to_example(item) for item in task.items if item.gold]).grader  # scores nothing here
    reader = load_grader(form_grader) if form_grader and decoding == "greedy" else None
    for item in task.items:
        own, scores = item.answers[side], task.scores(item, side)
        place = {"item": item.id, "task": task.name, "level": item.level, "decoding": decoding}
        place |= {"prompt": _mend(item.prompt), "gold": _mend(item.gold)}
        for sample, (answer, score) in enumerate(zip(own, scores, strict=True)):
            read = text_of(answer, task.metric, grader.basis) if grader is not None else None
            row = {"sample": sample, "cut": answer.cut, "score": score, "right": score}
            if reader is not None and answer.completion:
                row["parts"] = list(reader.parts(to_example(item), answer.completion).items())
            rows.append(place | row | {"text": _mend(answer.completion), "read": _mend(read)})
    answers = Answers.from_rows(rows, Header(log=form))
    if grader is None:
        return answers
    rules = chance_rules(grader.judge, grader.grade)
    return add_nulls(answers, grader.examples, grader.grade, lambda _: rules, {}, np.random.default_rng([0, side]))


def _mend(text: str | None) -> str | None:
    """The text without halves of characters, which JSON can hold and no table: a cut completion may end in one."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
