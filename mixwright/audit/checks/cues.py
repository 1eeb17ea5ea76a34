"""Check of cues: surface features of prompts, or positions of options, that nearly always come with one answer.

Source: Li et al. 2026 (arXiv 2603.29025): where cue and rule disagree, models follow the cue; the tests are our own.
Unit: training rows with a cue, and those of them that have another answer.
Cost: at most 2,000 rows of a task and 100,000 in all are read.
Blind spot: whether the cue is the rule; two features together; phrases; words in under 15 % of a task's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixwright.audit.cue_features import describe_feature
from mixwright.audit.cues import Cue, CuesOfTask, find_cues
from mixwright.audit.rows import EXCERPT_CHARACTERS
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation, plain

MOST_TOLD = 3
"""Cues of one task that are told."""
REMEDY = (
    "If this is not the reason for the answer, add rows that have it but another answer, each "
    "next to a row that differs only in the real reason."
)
OPTION_REMEDY = "Shuffle the options, or write wrong options that also have it."


class Cues(Check):
    """Checks training rows whose answer is one of few, or one of the row's options.

    Args:
        columns: of the rows, whose values are looked at as features of prompts are.
    """

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each cue, and a note on the tasks without one."""
        found = find_cues(corpus, self.columns)
        observations = [_observe(cue, one) for one in found for cue in one.cues[:MOST_TOLD]]
        for one in found:
            if more := one.cues[MOST_TOLD:]:
                text = f"{len(more)} more features predict the answer in this task."
                observations.append(Observation("cues", one.task, "info", len(more), len(one.cues), text, ""))
        clean = [one for one in found if not one.cues]
        if clean:
            text = f"No cue predicts the answer in {len(clean)} of {len(found)} tasks with few different answers."
            null = "answers dealt out at random"
            observations.append(Observation("cues", None, "info", len(clean), len(found), text, "", null))
        return observations


def _observe(cue: Cue, of_task: CuesOfTask) -> Observation:
    count, read = cue.rows - cue.conflicts, f" of {of_task.read:,} that were read" if of_task.read < of_task.total else ""
    share = count / cue.rows
    if not cue.label:
        rule = describe_feature(cue.feature).capitalize()
        text = f"{rule} is right in {count:,} of {cue.rows:,} rows{read} "
        text += f"({share:.0%}; blind choice {1 - cue.rest:.0%})."
        null, remedy = "options in random order", OPTION_REMEDY
    else:
        text = (
            f"Where the prompt {describe_feature(cue.feature)}, {count:,} of {cue.rows:,} rows{read} ({share:.0%}) have the "
            f"answer {cue.label[:40]!r}; of the other rows {1 - cue.rest:.0%} have it."
        )
        null, remedy = "answers dealt out at random", REMEDY
    if cue.held_out:
        text += f" Of {cue.held_out:,} held-out rows with it {cue.held_out_conflicts:,} have another answer."
    evidence = tuple(_make_evidence(cue, example) for example in cue.examples)
    return Observation("cues", of_task.task, "warning", count, cue.rows, text, remedy, null, evidence)


def _make_evidence(cue: Cue, example: Any) -> dict[str, Any]:
    return {
        "id": example.id,
        "source": example.source,
        "cue": describe_feature(cue.feature),
        "prompt": plain(example.prompt)[:EXCERPT_CHARACTERS],
        "answer": (example.answer or plain(example.target) or "")[:EXCERPT_CHARACTERS],
    }
