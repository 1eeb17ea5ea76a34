"""Section of the form of answers: what changed between two checkpoints that needs no grader to be seen.

Source: completions.parquet of the comparison, greedy answers before and after; known_forms.json; verdict/form_changes.py.
Unit: items of a task; one-sided exact p values, corrected by Holm.
Cost: reads one table.
Blind spot: says nothing of content; a form that the task's own rows have, or that no mark of structure shows, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.answer_forms import form_changes_of, grouped
from mixwright.verdict.arm_words import listed
from mixwright.verdict.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.form_changes import ALPHA, Feature, FormChange
from mixwright.verdict.text import count, line, p_told

TOLD: dict[Feature, str] = {
    "empty": "empty",
    "cut": "cut at the token limit",
    "prompt copied": "a copy of the prompt",
    "one answer": "the one answer {}",
    "shorter": "at most half as long as its counterpart",
    "longer": "at least twice as long as its counterpart",
    "own form gone": "of the form {}",
    "new form": "marked by {}, the form of no task here",
    "form of another task": "marked by {}, the form of {}",
}
FAULTS: tuple[Feature, ...] = ("empty", "cut", "prompt copied", "one answer", "new form")
"""Features that stand in a line of their own; the others stand in the table."""
NAMED, MOST = 4, 60
"""Tasks that a line names, and characters of an answer that are shown."""


class AnswerForms(Section):
    """Tasks that went over to another task's form, other faults, and every reported feature."""

    ORDER: ClassVar[int] = 1

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing without completions before and after."""
        changes = form_changes_of(run)
        moved = [change for change in changes if change.before != change.after]
        found = [change for change in changes if change.reported]
        blocks: list[Block] = []
        for group in grouped(found):
            before, mark = sum(change.before for change in group.changes), line(group.changes[0].shown, limit=MOST)
            tasks = f" Tasks: {_named([c.task for c in group.changes])}." if len(group.changes) > 1 else ""
            text = f"{group.told} ({mark}); {before:,} did before. No grader is asked for this.{tasks}"
            blocks.append(Paragraph(text, "bad", "Form of answers"))
        for feature in FAULTS:
            if alike := [change for change in found if change.feature == feature]:
                blocks.append(Paragraph(_fault(feature, alike), "caution", "Form of answers"))
        if found:
            return [*blocks, _table("Form of answers, what changed", found)]
        if not moved:
            return blocks
        summary = f"Form of answers: none of {count(len(changes), 'test')} shows a change"
        return [*blocks, Fold(summary, (_table("Form of answers, changes that are not shown", moved),))]


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - NAMED
    return listed([*tasks[:NAMED], *([f"{more} more"] if more > 0 else [])])


def _fault(feature: Feature, changes: Sequence[FormChange]) -> str:
    """`12 of 30 answers of capitals are empty, 0 before`, task by task."""
    parts = [f"{c.after:,} of {c.items:,} in {c.task}, {c.before:,} before" for c in changes[:NAMED]]
    more = [f"and {count(len(changes) - NAMED, 'more task')}"] if len(changes) > NAMED else []
    shown = TOLD[feature].format(line(changes[0].shown, limit=MOST)) if len(changes) == 1 else _plain(feature)
    return f"Answers that are {shown}: {'; '.join([*parts, *more])}."


def _plain(feature: Feature) -> str:
    return {"one answer": "one and the same", "new form": "of a form that no task here has"}.get(feature, TOLD[feature])


def _table(caption: str, changes: Sequence[FormChange]) -> Table:
    rows = [
        (
            change.task,
            TOLD[change.feature].format(line(change.shown, limit=MOST), change.other),
            f"{change.before:,}",
            f"{change.after:,}",
            f"{change.items:,}",
            p_told(change.adjusted),
        )
        for change in changes
    ]
    return Table(
        f"{caption} (p < {ALPHA:g} after Holm's correction)",
        ("task", "answers that are", "before", "after", "items", "p"),
        rows,
        (2, 3, 4, 5),
    )
