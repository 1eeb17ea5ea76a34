"""Other form of prompts: a few items asked without the chat template, beside what was measured through it.

A checkpoint may have a template that it was never trained on. Nothing is switched: a large difference is a warning, and the
user says which form it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mixwright.corpus import Corpus
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.measure.passes import interleave
from mixwright.measure.stage import MeasureResult
from mixwright.records import Observation

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

OTHER_FORM_NOTE = "other form of prompts"
"""What `Observation.check` of the note says."""
ITEMS_ASKED, MIN_MORE_ITEMS_RIGHT = 8, 4
"""Items that are asked in the other form; how many more it must get right before it is worth a word."""


def other_form_notes(
    learner: Learner, corpus: Corpus, result: MeasureResult, max_new_tokens: int, *, chosen: bool
) -> list[Observation]:
    """A warning where plain text gets clearly more right than the chat template; else nothing.

    Args:
        learner: was measured.
        corpus: what it was measured on.
        result: its measurements.
        max_new_tokens: longest completion.
        chosen: whether the user named the form, so that nothing is asked.
    """
    if chosen or learner.form.template is not True or learner.form.system is not None or not result.completions:
        return []
    rows = sorted(result.completions, key=lambda row: hashlib.sha256(f"form {row['example']}".encode()).digest())
    tasks: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    asked_rows = interleave(tasks.values())[:ITEMS_ASKED]
    examples = {row.id: row for row in corpus.select(ids=[row["example"] for row in asked_rows])}
    asked_rows = [row for row in asked_rows if row["example"] in examples]
    plain_learner = learner.with_form(replace(learner.form, template=False))
    prompts = [examples[row["example"]].prompt for row in asked_rows]
    completions = plain_learner.sample(prompts, count=1, temperature=0, max_new_tokens=max_new_tokens, seed=0)
    right_with_template = sum(row["score"] >= RIGHT_FROM_SCORE for row in asked_rows)
    answered = [(examples[row["example"]], best) for row, (best,) in zip(asked_rows, completions, strict=True)]
    right_as_text = sum(corpus.grade(item, best.text, cut=not best.finished) >= RIGHT_FROM_SCORE for item, best in answered)
    if right_as_text - right_with_template < MIN_MORE_ITEMS_RIGHT:
        return []
    message = (
        f"of {len(asked_rows)} items {right_as_text} are right when prompts are given as plain text, and "
        f"{right_with_template} through the chat template"
    )
    remedy = "To use plain text: --no-chat-template, or model.chat_template: false in run.yaml."
    return [
        Observation(OTHER_FORM_NOTE, None, "warning", right_as_text - right_with_template, len(asked_rows), message, remedy)
    ]
